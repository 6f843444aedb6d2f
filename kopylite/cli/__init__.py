"""The command line: one module a command, each with `add_parser(subparsers)` and `run(args, signals) -> exit code`.

What a command needs is imported when it runs, after the signal handlers are there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from kopylite.cli.commands import COMMANDS, SERVING
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.streams import code_of_unwritten, open_streams

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Kubernetes operators in asyncio."

EPILOG = """\
start here:
  kopylite init web-cache                    a new project: operator, tests, image, manifests
  kopylite run hello.py --dev                run an operator on a cluster of its own: nothing else is needed
  kopylite run hello.py                      run it against the cluster of your kubeconfig
  kopylite sweep hello.py --scenario FILE    crash it after each write, hide events from it, and see what it leaves
  kopylite manifests hello.py --image IMAGE  what brings it into a cluster, with the least rights
  kopylite doctor hello.py                   what is wrong with it, or with its cluster, and what mends it
  kopylite run --help                        its options, environment variables and exit codes
"""

__all__ = ["main", "make_parser", "script"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code. A wrong command line exits with code 2.

    It handles SIGTERM and SIGINT until it returns, and starts an event loop of its own: so it is called in the main
    thread, and where no loop runs; elsewhere it says so and returns code 2. Inside of a loop there is `Manager`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if problem := _misplaced():
        print(f"kopylite: {problem}", file=sys.stderr)
        return Exit.USAGE
    with _signals(arguments) as signals:
        return _run(arguments, signals)


def script() -> NoReturn:
    """Be the process: as `main`, and a signal does no harm in the last moments either."""
    arguments = sys.argv[1:]
    signals = _signals(arguments)
    signals.stay()
    open_streams()
    # As it was called: by the script, by -m, with options of Python's.
    program = [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(arguments)]]
    try:
        try:
            code = _run(arguments, signals, program)
        finally:
            sys.stdout.flush()
    except OSError as error:
        code = code_of_unwritten(error)
    signals.ended(code)
    sys.exit(code)


def make_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command line.

    Args:
        only: the command that is asked for; the others are then known by their names, and not imported. "" is none.
    """
    import argparse

    parser = argparse.ArgumentParser(
        prog="kopylite",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the versions of kopylite and Python")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name, text in COMMANDS.items():
        if only in (None, name):
            _command(name).add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=text)
    return parser


def installed_version() -> str:
    """Of kopylite; "" for a folder that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kopylite")
    except PackageNotFoundError:
        return ""


def _run(arguments: Sequence[str], signals: StopSignals, program: Sequence[str] = ()) -> int:
    # No option of `kopylite` itself takes a value, so the first word is the command.
    parser = make_parser(next((word for word in arguments if not word.startswith("-")), ""))
    args = parser.parse_args(arguments)
    # For who begins such a process again.
    args.program, args.arguments = program or [sys.executable, "-m", "kopylite"], arguments
    if args.version:
        version = installed_version() or "of a folder that is not installed"
        print(f"kopylite {version} (Python {sys.version.split()[0]})")
        return Exit.STOPPED
    if args.command is None:
        parser.error(f"which command? There are {', '.join(COMMANDS)}")
    code: int = _command(args.command).run(args, signals)
    return code


def _command(name: str) -> Any:
    return importlib.import_module(f"kopylite.cli.{name}")


def _signals(arguments: Sequence[str]) -> StopSignals:
    return StopSignals(Exit.STOPPED if arguments and arguments[0] in SERVING else None)


def _misplaced() -> str:
    """Why the command line cannot be run where it was called; "" if it can."""
    import threading

    if "asyncio" in sys.modules and sys.modules["asyncio"]._get_running_loop() is not None:
        return (
            "kopylite.cli.main starts an event loop of its own, and one runs here already. In it, run the App by "
            "`await Manager(app, load_config()).run()`, of kopylite.manager and kopylite.client"
        )
    if threading.current_thread() is not threading.main_thread():
        return (
            "kopylite.cli.main handles signals, which only the main thread can. In another one, run the App by "
            "`anyio.run(Manager(app, load_config()).run)`, of kopylite.manager and kopylite.client"
        )
    return ""
