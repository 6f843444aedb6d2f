"""Several processes of one `kopylite run --processes N`: what the parent does, and what each process does for it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.app import App
    from kopylite.manager import Manager, Options
    from kopylite.supervision import ProcessPlace, Tie

logger = logging.getLogger(__name__)

# Seconds after the grace period for what was cancelled to clean up, for the last Events, and for connections to close.
OVERTIME = 10.0
# A process ends itself after these; the parent waits a little longer before it kills one that cannot.
PATIENCE = 5.0
# A restart mends none of these.
HOPELESS = frozenset(
    {Exit.USAGE, Exit.MODULE, Exit.ATTRIBUTE, Exit.REGISTRATION, Exit.KUBECONFIG, Exit.LIFECYCLE}
)  # fmt: skip
PLACE = "--place"


def place(text: str) -> ProcessPlace:
    """A parser for what a parent gives its processes."""
    from kopylite.supervision import ProcessPlace

    try:
        return ProcessPlace.parse(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def own_address(text: str, place: ProcessPlace | None) -> str:
    """Where a process serves its own metrics and probes: with a parent, which answers there, at a free port."""
    return text if place is None or text == "off" else "127.0.0.1:0"


def fields_of(place: ProcessPlace | None, fields: Callable[[], Mapping[str, object]]) -> Mapping[str, object]:
    """What each line of the log of a process carries."""
    return fields() if place is None else {"process": place.number, **fields()}


# The parent


def supervise(args: argparse.Namespace, signals: StopSignals) -> int:
    """Keep `--processes` processes of this command, until a signal comes: the exit code.

    Raises:
        UsageError: an option does not go with several processes, or an address cannot be listened on.
    """
    from kopylite.supervision import Supervisor, SupervisorSettings

    _check_options(args)
    settings = SupervisorSettings(
        count=args.processes,
        metrics_address=args.metrics_address,
        health_address=args.health_address,
        overtime=args.grace_period + OVERTIME + PATIENCE,
        hopeless=HOPELESS,
    )
    signals.nothing_to_end = False

    async def keep() -> int:
        supervisor = Supervisor(partial(_command, args), settings)
        with signals.passed_to(supervisor.stop):
            return await supervisor.run()

    code = asyncio.run(keep())
    return code if code >= 0 else Exit.UNFINISHED


def _check_options(args: argparse.Namespace) -> None:
    if sys.platform == "win32":
        raise UsageError("--processes needs a system with fork, sockets that are inherited, and signals")
    if args.dev:
        raise UsageError(
            "--processes and --dev: the cluster of --dev lives in the one process of its operator. Run `kopylite "
            "apiserver` in another terminal, and this with its --kubeconfig"
        )
    if args.record_rbac is not None and not args.record_rbac.is_dir():
        raise UsageError("--processes and --record-rbac: name a folder that exists; each process writes a file there")


def _command(args: argparse.Namespace, place: ProcessPlace) -> Sequence[str]:
    """As this process was begun, and its place; behind the command, since a "--" may come later."""
    command, *others = args.arguments
    return [*args.program, command, PLACE, str(place), *others]


# One of its processes


def tie_of(args: argparse.Namespace, signals: StopSignals) -> Tie | None:
    """Tie this process to its parent: it stops when that says so, or is gone; at once if it was stopping already.

    None: it has no parent.
    """
    if args.place is None:
        return None
    from kopylite.supervision import Tie

    def gone() -> None:
        if signals.asked:
            os._exit(Exit.FORCED)
        logger.error("the parent of this process is gone: stopping")
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(args.grace_period + OVERTIME)
        os._exit(Exit.UNFINISHED)

    return Tie(args.place.descriptor, signals.ask, gone)


def tell_address(tie: Tie, manager: Manager) -> None:
    """Tell the parent where a manager listens, now that it does."""
    tie.listens(str(next(iter(manager.addresses.values()), "")))


def check_shared(apps: Sequence[App], options: Options, place: ProcessPlace) -> None:
    """Refuse Apps of which each process would do everything.

    Raises:
        UsageError: there is one.
    """
    from kopylite.manager.elections import elects, has_led_parts, shards_of

    for app in apps:
        if not elects(app, options) and has_led_parts(app):
            raise UsageError(
                f"--processes {place.of}: each of them would do all the work of app {app.name!r}. Split it, by "
                f"--shards {2 * place.of} or App(shards=...); or let one of them work, by --leader-elect"
            )
        shards = shards_of(app, options)
        if 0 < shards < place.of and place.number == 1:
            logger.warning(
                "app %s has %d shards, fewer than there are processes: %d of them only stand by", app.name, shards,
                place.of - shards,
            )  # fmt: skip
