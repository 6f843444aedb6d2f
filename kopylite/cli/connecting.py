"""What commands have in common that ask a cluster: which one, and how they end."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from kopylite.cli.environment import names, seconds, whole_number
from kopylite.cli.exitcodes import Exit
from kopylite.cli.target import AttributeNotFound, ModuleNotLoaded
from kopylite.errors import KopyliteError, KubeconfigError, RegistrationError, TransportError, UsageError

if TYPE_CHECKING:
    from kopylite.client import ClientConfig


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Which cluster."""
    group = parser.add_argument_group("cluster")
    group.add_argument("--kubeconfig", metavar="PATH", help="instead of $KUBECONFIG, the pod's own, ~/.kube/config")
    group.add_argument("--context", metavar="NAME", help="of the kubeconfig, instead of its current one")
    group.add_argument("--anonymous", action="store_true", help="connect as nobody")
    group.add_argument(
        "--allow-plain-http", action="store_true", help="credentials may go to another machine over http"
    )


def connection_of(args: argparse.Namespace) -> ClientConfig:
    """The settings that these options name. Raises KubeconfigError."""
    from kopylite.client import load_config

    return load_config(args.kubeconfig, args.context, anonymous=args.anonymous, allow_plain_http=args.allow_plain_http)


def played(command: str, work: Coroutine[Any, Any, int], refused: int) -> int:
    """The exit code of what a command does, or of its error, which is printed.

    Args:
        command: as people type it.
        refused: the code for what the cluster refuses.
    """
    try:
        return asyncio.run(work)
    except UsageError as error:
        print(f"kopylite {command}: {error}", file=sys.stderr)
        return exit_code(error)
    except TransportError as error:
        print(f"kopylite {command}: {error}; `kopylite doctor` finds out why", file=sys.stderr)
        return Exit.UNREACHABLE
    except KopyliteError as error:
        print(f"kopylite {command}: {error}", file=sys.stderr)
        return refused


def exit_code(error: UsageError) -> int:
    """The code for what ends a command early."""
    for kind, code in (
        (ModuleNotLoaded, Exit.MODULE),
        (AttributeNotFound, Exit.ATTRIBUTE),
        (RegistrationError, Exit.REGISTRATION),
        (KubeconfigError, Exit.KUBECONFIG),
    ):
        if isinstance(error, kind):
            return code
    return Exit.USAGE


def option(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """For argparse, which keeps the text of no ValueError to itself."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, UsageError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _duration(text: str) -> float:
    value = seconds(text)
    if value <= 0:
        raise ValueError(f"{text!r} is no time above 0")
    return value


namespaces_option, count_option, duration_option = option(names), option(whole_number), option(_duration)
