"""The rooms' tests on every Python that kopylite supports, and with the oldest dependencies that it says it works with.

`make matrix` runs all of them that this machine can, one after the other, in environments under .matrix/;
`make matrix ARGS="3.13 lowest"` some. Interpreters are found by uv: on the PATH, pyenv's, its own. One that is missing
said, and with `--require` a failure, as CI wants it. `lowest`: the lowest version of each direct dependency, of all
extras, on the oldest Python; the tools of the tests stay as they are locked.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".matrix"
UV = Path(sys.executable).with_name("uv")
LOWEST = "lowest"


def supported() -> list[str]:
    """The versions that pyproject.toml names, oldest first."""
    classifiers = read_project()["project"]["classifiers"]
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in classifiers]
    return [match[1] for match in found if match]


def read_project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def interpreter(version: str) -> str:
    """The path of a Python, "" if this machine has none of that version."""
    places = [os.environ.get(f"PYTHON{version.replace('.', '')}", ""), f"cpython@{version}"]
    for place in filter(None, places):
        done = uv("python", "find", "--no-project", "--python-preference", "system", "--no-python-downloads", place)
        if done.returncode == 0:
            return done.stdout.strip()
    return ""


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    # pyenv's shims answer for versions that are not chosen; its interpreters are found by their folders.
    pythons = [str(path) for path in sorted((Path.home() / ".pyenv/versions").glob("*/bin"))]
    environment["PATH"] = os.pathsep.join([environment["PATH"], *pythons])
    command = [str(UV), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def install(version: str, python: str, *, lowest: bool) -> tuple[Path, str]:
    """An environment with the project and its test tools; what went wrong, or ""."""
    home = HOME / (LOWEST if lowest else version)
    target = home / "bin" / "python"
    commands: list[Sequence[str | Path]] = [("venv", "-q", "--clear", "--python", python, home)]
    if lowest:
        pins = HOME / "lowest.txt"
        commands += [
            ("pip", "compile", "-q", "--all-extras", "--resolution", "lowest-direct", "--python-version", version,
             "--no-annotate", "pyproject.toml", "-o", pins),
            ("pip", "install", "-q", "--python", target, "-r", pins, "-c", HOME / "tools.txt", "--group", "dev"),
        ]  # fmt: skip
    else:
        commands += [("pip", "install", "-q", "--python", target, "--require-hashes", "-r", "requirements-dev.lock")]
    commands += [("pip", "install", "-q", "--python", target, "--no-deps", "-e", ".")]
    for command in commands:
        if "--group" in command:
            (HOME / "tools.txt").write_text(tools_beside((HOME / "lowest.txt").read_text()))
        done = uv(*command)
        if done.returncode:
            return target, f"uv {' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return target, ""


def tools_beside(pins: str) -> str:
    """The locked versions of what is not pinned already."""
    taken = set(re.findall(r"^([\w.-]+)==", pins, re.MULTILINE))
    locked = re.findall(r"^(([\w.-]+)==\S+)", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE)
    return "".join(f"{line}\n" for line, name in locked if name not in taken)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    every = [*supported(), LOWEST]
    parser.add_argument(
        "which", nargs="*", metavar="VERSION", help=f"of {', '.join(every)}; all of them if none is named"
    )
    parser.add_argument("--require", action="store_true", help="a Python that is not there is a failure")
    parser.add_argument("--target", default="test-rooms", help="of the Makefile: test for all that needs only Python")
    args = parser.parse_args()
    if unknown := set(args.which) - set(every):
        parser.error(f"{', '.join(sorted(unknown))}: pyproject.toml names {', '.join(every)}")
    results: dict[str, str] = {}
    for name in args.which or every:
        results[name] = try_one(name, args.target)
        print(f"== {name}: {results[name]}", flush=True)
    print("\n" + "\n".join(f"{name:7} {result}" for name, result in results.items()))
    missing = [name for name, result in results.items() if result.startswith("not here")]
    failed = [name for name, result in results.items() if result.startswith("FAILED")]
    return 1 if failed or (args.require and missing) else 0


def try_one(name: str, make_target: str) -> str:
    version = supported()[0] if name == LOWEST else name
    python = interpreter(version)
    if not python:
        return f"not here: install it, or name one, PYTHON{version.replace('.', '')}=/path/of/python{version}"
    print(f"== {name}: {python}", flush=True)
    HOME.mkdir(exist_ok=True)
    target, problem = install(version, python, lowest=name == LOWEST)
    if problem:
        return f"FAILED to install: {problem}"
    started = time.monotonic()
    # The Makefile's own list of tests; its environment is made above, and so is old and new enough.
    (target.parent.parent / ".installed").touch()
    done = subprocess.run(["make", make_target, f"VENV={target.parent.parent}"], cwd=ROOT, check=False)
    return f"{'FAILED' if done.returncode else 'passed'} in {time.monotonic() - started:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
