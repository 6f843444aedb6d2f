"""`kopylite init`: a new project, complete and small."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from kopylite.cli.commands import COMMANDS
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError

EPILOG = """\
examples:
  kopylite init web-cache                                   web-cache/, with the kind WebCache of example.com
  kopylite init shop --kind Order --group shop.example.com  the kind Order of your domain
  mkdir shop && cd shop && git init && kopylite init shop --dir .     into a folder that is there

What it writes is yours: there is nothing to keep up to date but the version of kopylite. In it, `make test`, `make run`
(on an API server of its own) and `make check` work at once; its README leads into a cluster. Nothing is ever
overwritten, and on a failure nothing is written.
"""

# A registry that is nobody's; the Makefile of the project has it, too.
IMAGE = "registry.example.com/{name}:0.1.0"
RECORDING = "rbac.json"
_SECONDS = 120


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `init` and its options."""
    parser = subparsers.add_parser(
        "init",
        help=COMMANDS["init"],
        description="Write a complete small project: a resource, its operator, tests, Dockerfile, manifests, CI.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="of the operator: lower-case letters, digits and dashes, as in web-cache")
    add("--kind", metavar="KIND", default="", help="of its resource; default: from NAME, as in WebCache")
    add("--group", metavar="GROUP", default="", help="of its API, a domain of yours; default: example.com")
    add("--dir", metavar="DIR", type=Path, help="where to, a new or empty folder; default: NAME")


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0 or one of `Exit`."""
    from kopylite.cli import installed_version
    from kopylite.deploy import Recording
    from kopylite.starter import files_of, names_of, write_project

    signals.nothing_to_end = False  # a signal would leave half a project behind; it takes two seconds
    try:
        names = names_of(args.name, args.kind, args.group)
        folder = args.dir or Path(names.name)
        command = ["manifests", f"{names.package}.operator:app", "--rbac-from", RECORDING]
        command += ["--image", IMAGE.format(name=names.name), "--output-dir", "deploy"]

        def complete(stage: Path) -> None:
            Recording().add_to(stage / RECORDING)  # in the order in which it is written anew
            _kopylite(command, stage)
            if signals.asked:
                raise UsageError(f"stopped by {signals.asked}; nothing was written")

        made = write_project(folder, files_of(names, installed_version()), complete)
    except UsageError as error:
        print(f"kopylite init: {error}", file=sys.stderr)
        return Exit.USAGE
    print(f"{folder}: {len(made)} files; a {names.kind} ({names.group}/v1) gets a Deployment. Now:\n")
    print(f"  cd {shlex.quote(str(folder))}" if folder.resolve() != Path.cwd() else "", end="")
    print("""
  make test     # makes .venv at first
  make run      # the operator on an API server of its own, for kubectl
  cat README.md # the rest, and the way into a cluster""")
    if not args.group:
        print(
            f"\nkopylite init: note: the group is {names.group}; --group names a domain of yours, and once objects are "
            "stored another one is another kind",
            file=sys.stderr,
        )
    return Exit.STOPPED


def _kopylite(arguments: list[str], folder: Path) -> None:
    """Run a command in a project: in a process of its own, which imports it."""
    here = str(Path(__file__).parent.parent.parent)
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KOPYLITE_")}
    environment |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "kopylite", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{shlex.join(command)} took longer than {_SECONDS} s; nothing was written") from None
    if done.returncode:
        why = (done.stderr or done.stdout).strip() or f"it ended with {done.returncode}"
        raise UsageError(f"the manifests cannot be made: {why}; nothing was written")
