"""The command line: one module a command, each with `add_parser(subparsers)` and `run(args) -> exit code`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from kopylite.cli import apiserver, crd, models, run

COMMANDS = {"run": run, "apiserver": apiserver, "crd": crd, "models": models}

DESCRIPTION = "Kubernetes operators in asyncio."

EPILOG = """\
start here:
  kopylite run samples/hello/operator.py     run an operator against the cluster of your kubeconfig
  kopylite run --help                        its options, environment variables and exit codes
"""

__all__ = ["main", "make_parser"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code. A wrong command line exits with code 2."""
    args = make_parser().parse_args(argv)
    code: int = COMMANDS[args.command].run(args)
    return code


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="kopylite",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS.values():
        command.add_parser(subparsers)
    return parser
