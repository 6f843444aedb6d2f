"""Is this checkout fit to be published? Builds it, looks into what was built, and uses it as a stranger would.

`make release-check` runs it with the locked tools of requirements-release.lock; some minutes. What was built is left in
dist/: the wheel, the sdist and a bill of materials (CycloneDX). Each step says what it found; the first fault ends it.
`--release` also asks for what only a release has: a section in CHANGELOG.md, and a clean checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Collection, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
MEGABYTE = 2**20
WHEEL_LIMIT = 4 * MEGABYTE


class Unfit(Exception):
    """What is wrong, and where."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


def changelog_problem(text: str, version: str, *, release: bool) -> str:
    """Why a changelog does not fit a version; "" if it does."""
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    dated = [section for section in sections if re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", section)]
    if not sections:
        return "CHANGELOG.md has no section"
    if release and (not dated or sections[0] != dated[0]):
        return (
            f"CHANGELOG.md begins with {sections[0]!r}: a release of {version} needs '## {version} - YYYY-MM-DD' there"
        )
    if not release and sections[0] != "Unreleased" and not dated:
        return f"CHANGELOG.md begins with {sections[0]!r}, which is neither 'Unreleased' nor {version} with its date"
    if sections[0] == "Unreleased" and dated:
        return f"CHANGELOG.md has {version} already, and something after it: give pyproject.toml the next version"
    return ""


def wheel_problems(names: Collection[str], package_files: Collection[str]) -> list[str]:
    """What a wheel has that it should not have, and the other way round; package_files: as the checkout has them."""
    own = [name for name in names if ".dist-info/" not in name]
    told = [f"{name} is in the wheel, and not in the repository" for name in own if name not in package_files]
    told += [
        f"{name} is in the wheel: tests stay in the repository"
        for name in own
        if re.match(r"(?!kopylite/starter/files/)(.*/)?(tests?|samples)/", name)
    ]
    told += [f"{name} is not in the wheel" for name in package_files if name not in names]
    return sorted(told)


def metadata_problems(text: str, declared: dict[str, Any]) -> list[str]:
    """How a wheel's METADATA differs from what the project says."""
    headers = HeaderParser().parsestr(text)
    told = [
        f"{name} is {headers[name]!r}, and not {wanted!r}"
        for name, wanted in (
            ("Name", declared["name"]),
            ("Version", declared["version"]),
            ("Requires-Python", declared["requires-python"]),
            ("License-Expression", declared["license"]),
        )
        if headers[name] != wanted
    ]
    extras = set(headers.get_all("Provides-Extra", ()))
    if extras != set(declared["optional-dependencies"]):
        told.append(f"the extras are {sorted(extras)}")
    bare = [line for line in headers.get_all("Requires-Dist", ()) if "extra ==" not in line]
    if len(bare) != len(declared["dependencies"]):
        told.append(f"without extras it needs {bare}, and not {declared['dependencies']}")
    links = re.findall(r"\]\(([^)\s]+)\)", str(headers.get_payload()))
    told += [f"the description has a link into the checkout: {link}" for link in links if not re.match(r"\w+:|#", link)]
    return told


def say(step: str, work: Callable[[], str]) -> None:
    started = time.monotonic()
    print(f"  {step} ...", end=" ", flush=True)
    found = work()
    print(f"{found} ({time.monotonic() - started:.0f} s)", flush=True)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unfit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_version(release: bool) -> str:
    version = project()["version"]
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        raise Unfit(f"pyproject.toml: version {version!r} is none of SemVer's, as PEP 440 writes them")
    if problem := changelog_problem((ROOT / "CHANGELOG.md").read_text(), version, release=release):
        raise Unfit(problem)
    if release and (changed := run("git", "status", "--porcelain")):
        raise Unfit(f"the checkout has changes that are not committed:\n{changed}")
    return str(version)


def build() -> str:
    """From a copy of what the repository has, so that nothing that lies about gets in; and twice, to compare."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        for name in run("git", "ls-files", "-z", "--cached").split("\0"):
            if name and (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        run(BIN / "python", "-m", "build", "--no-isolation", "--outdir", DIST, copy)
        run(BIN / "python", "-m", "build", "--no-isolation", "--wheel", "--outdir", Path(folder) / "again", copy)
        [again] = (Path(folder) / "again").glob("*.whl")
        if hashlib.sha256(again.read_bytes()).digest() != hashlib.sha256(wheel().read_bytes()).digest():
            raise Unfit("the wheel made from the sdist and the one made from the checkout differ")
    return ", ".join(f"{path.name} {path.stat().st_size // 1024} KiB" for path in sorted(DIST.iterdir()))


def wheel() -> Path:
    [found] = DIST.glob("*.whl")
    return found


def check_content() -> str:
    package = run("git", "ls-files", "kopylite").split()
    with zipfile.ZipFile(wheel()) as archive:
        names = archive.namelist()
        told = wheel_problems(names, package)
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        told += metadata_problems(archive.read(metadata).decode(), project())
    if wheel().stat().st_size > WHEEL_LIMIT:
        told.append(
            f"the wheel is bigger than {WHEEL_LIMIT // MEGABYTE} MiB: is something in it that users do not need?"
        )
    [sdist] = DIST.glob("*.tar.gz")
    with tarfile.open(sdist) as source:
        inside = {name.partition("/")[2] for name in source.getnames()}
    told += [f"{name} is not in the sdist" for name in [*package, "LICENSE", "pyproject.toml"] if name not in inside]
    if told:
        raise Unfit("\n".join(told[:20]))
    return f"{len(names)} files, all of the package and nothing else"


def locked() -> Path:
    """The versions of requirements-dev.lock, without hashes, as constraints."""
    lines = re.findall(r"^([\w.-]+==[^\s\\;]+[^\\\n]*)", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE)
    path = DIST / "constraints.txt"
    path.write_text("\n".join(line.strip() for line in lines) + "\n")
    return path


def use(extras: Sequence[str], python: str) -> str:
    """Install the wheel alone into a new environment, and play a user's first minutes in it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        run(BIN / "uv", "venv", "-q", "--python", python, environment)
        interpreter = environment / "bin" / "python"
        target = f"{wheel()}[{','.join(extras)}]" if extras else wheel()
        constraints = locked()
        try:
            run(BIN / "uv", "pip", "install", "-q", "--python", interpreter, "-c", constraints, target)
        finally:
            constraints.unlink()
        run(BIN / "uv", "pip", "check", "--python", interpreter)
        run(interpreter, "-I", ROOT / "scripts/release_probe.py", project()["version"], *extras, cwd=Path(folder))
        packages = run(BIN / "uv", "pip", "list", "-q", "--python", interpreter).splitlines()[2:]
        if extras == sorted(project()["optional-dependencies"]):
            bill_of_materials(interpreter)
    return f"{len(packages)} packages; imports, --help, and an operator on the built-in server"


def bill_of_materials(interpreter: Path) -> None:
    """What an installation with all extras brings along, with licences, in the form of CycloneDX."""
    target = DIST / f"kopylite-{project()['version']}.cdx.json"
    run(BIN / "cyclonedx-py", "environment", "--pyproject", ROOT / "pyproject.toml", "--mc-type", "library",
        "--output-reproducible", "--of", "JSON", "-o", target, interpreter)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="make release-check", description=__doc__)
    parser.add_argument(
        "--release", action="store_true", help="it is to be published now: the changelog has its section"
    )
    parser.add_argument("--python", default=sys.executable, help="of the environments that it is tried in")
    args = parser.parse_args()
    extras = sorted(project()["optional-dependencies"])
    try:
        say("version and changelog", lambda: check_version(args.release))
        say("build, twice", build)
        say("twine check --strict", lambda: run(BIN / "twine", "check", "--strict", *DIST.iterdir()) and "fit for PyPI")
        say("content", check_content)
        for chosen in [[], *([extra] for extra in extras), extras]:
            say(f"installed with {' + '.join(chosen) or 'no extra'}", lambda chosen=chosen: use(chosen, args.python))  # type: ignore[misc]
    except Unfit as problem:
        print(f"\n{problem}")
        return 1
    print("fit; in dist/: " + ", ".join(sorted(path.name for path in DIST.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
