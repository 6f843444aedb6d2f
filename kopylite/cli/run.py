"""`kopylite run`: bring an App to life."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopylite.cli.commands import COMMANDS
from kopylite.cli.election import add_election_options, election_options
from kopylite.cli.environment import OptionGroup, choice, globs, path, positive_int, selector, unknown_variables
from kopylite.cli.exitcodes import Exit
from kopylite.cli.processes import OVERTIME, check_shared, fields_of, own_address, supervise, tell_address, tie_of
from kopylite.cli.signals import StopSignals
from kopylite.cli.target import AttributeNotFound, ModuleNotLoaded, load_apps
from kopylite.cli.webhooks import add_webhook_options, webhook_options
from kopylite.errors import (
    ConnectionFailed,
    KopyliteError,
    KubeconfigError,
    LifecycleError,
    RegistrationError,
    UsageError,
)

if TYPE_CHECKING:
    from kopylite.app import App
    from kopylite.diagnostics import Bar
    from kopylite.manager import Manager, Options
    from kopylite.supervision import ProcessPlace, Tie

logger = logging.getLogger(__name__)

# Objects that are made between two looks for garbage, while modules are loaded.
LOADING = 100_000

EPILOG = f"""\
examples:
  kopylite run hello.py                                the App named `app` in a file, all namespaces
  kopylite run hello.py --dev                          with a cluster of its own, in this process; for kubectl too
  kopylite run shop.operator:app -n shop -n shop-test  an App in a module, two namespaces
  kopylite run shop.operator:app -n 'team-*' -n shop   and every namespace of such a name, while they come and go
  kopylite run shop.operator:app --namespaces-labelled tier=prod
                                                       the namespaces with a label; both need the right to list and
                                                       watch namespaces
  kopylite run shop.operator:app shop.billing:app      several Apps in one process, with caches in common
  kopylite run shop.operator:app --metrics-address 0.0.0.0:8080 --health-address 0.0.0.0:8081 --log-format json
                                                       in a pod: probes and metrics face the network
  kopylite run shop.operator:app --leader-elect        of several such processes, one works; the others stand by
  kopylite run shop.operator:app --shards 8            all of them work, each on its fair part of the objects
  kopylite run shop.operator:app --shards 8 --processes 2
                                                       two on this machine: one Python uses one core
  kopylite run shop.operator:app --health-address 127.0.0.1:8080
                                                       metrics and probes on one address

Every option can be given by the environment variable named with it; the flag wins. Durations are seconds, or
numbers with s, m or h.

exit codes:
{Exit.table()}
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` and its options."""
    parser = subparsers.add_parser(
        "run",
        help=COMMANDS["run"],
        description="Run the App of a module against the cluster of the kubeconfig, or of the pod it runs in.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "target",
        metavar="MODULE[:APP]",
        nargs="+",
        help="package.module:attribute or path/to/file.py:attribute; default :app; several run side by side",
    )
    _add_cluster_options(parser)
    _add_dev_options(parser)
    _add_running_options(parser)
    add_election_options(parser)
    add_webhook_options(parser)
    _add_watching_options(parser)


def _add_cluster_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster")
    options = OptionGroup(group)
    options.add(
        "-n", "--namespace", parse=globs, collect=True, metavar="NAME",
        help="only this namespace; repeatable. A glob, 'team-*', means those that there are at any time",
    )  # fmt: skip
    options.add(
        "--namespaces-labelled", parse=selector, metavar="SELECTOR",
        help="instead of --namespace: only namespaces with these labels, as in tier=prod, at any time",
    )  # fmt: skip
    group.add_argument(
        "-A", "--all-namespaces", action="store_true",
        help="all namespaces: the default; overrides KOPYLITE_NAMESPACE and KOPYLITE_NAMESPACES_LABELLED",
    )  # fmt: skip
    options.add("--kubeconfig", parse=str, metavar="PATH", help="instead of $KUBECONFIG, the pod's own, ~/.kube/config")
    options.add("--context", parse=str, metavar="NAME", help="of the kubeconfig, instead of its current one")
    group.add_argument(
        "--anonymous",
        action="store_true",
        help="connect as nobody; without it, a context without credentials is an error",
    )
    group.add_argument(
        "--allow-plain-http", action="store_true", help="let credentials go to another machine over http"
    )
    options.add_duration("--connect-timeout", "60s", "how long to try to reach the API server at the start")


def _add_dev_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("development")
    group.add_argument(
        "--dev", action="store_true",
        help="run with an embedded cluster instead: needs kopylite[dev], and nothing else installed",
    )  # fmt: skip
    group.add_argument(
        "--crds", metavar="PATH", type=Path, action="append", default=[],
        help="of --dev: install other CRDs too, of a YAML or JSON file, or of a folder's; repeatable",
    )  # fmt: skip
    group.add_argument("--dev-data", type=Path, metavar="FILE", help="of --dev: keep its objects in this file")
    group.add_argument("--dev-port", type=int, default=0, metavar="PORT", help="of --dev; default a free one")
    group.add_argument("--no-simulator", action="store_true", help="of --dev: no pod runs, no Deployment gets ready")


def _add_running_options(parser: argparse.ArgumentParser) -> None:
    options = OptionGroup(parser.add_argument_group("running"))
    options.add(
        "--workers", parse=positive_int, default=8, metavar="N",
        help="reconciles at the same time, for each controller that declares no number of its own",
    )  # fmt: skip
    options.add_duration("--grace-period", "30s", "how long running reconciles may go on after a signal to stop")
    options.add(
        "--record-rbac", parse=path, metavar="PATH",
        help="add what it asks of the API server to this file, or to one in this folder; see `kopylite manifests`",
    )  # fmt: skip
    options.add(
        "--loop", parse=choice("auto", "uvloop", "asyncio"), default="auto", metavar="NAME",
        help="the event loop: auto takes uvloop if it is installed (kopylite[fast])",
    )  # fmt: skip


def _add_watching_options(parser: argparse.ArgumentParser) -> None:
    options = OptionGroup(parser.add_argument_group("metrics, probes, logs"))
    address = "host:port, :port on 127.0.0.1 (0 takes a free one), or off"
    options.add(
        "--metrics-address", parse=_address, default="127.0.0.1:8080", metavar="ADDRESS",
        help=f"where /metrics listens: {address}",
    )  # fmt: skip
    options.add(
        "--health-address", parse=_address, default="127.0.0.1:8081", metavar="ADDRESS",
        help="where /healthz and /readyz listen; may be the metrics address",
    )  # fmt: skip
    options.add("--log-format", parse=choice("text", "json"), default="text", metavar="FORM", help="text or json")
    options.add(
        "--log-level", parse=choice("debug", "info", "warning", "error"), default="info", metavar="LEVEL",
        help="debug, info, warning or error",
    )  # fmt: skip


def _address(text: str) -> str:
    from kopylite.serving import parse_address

    parse_address(text)
    return text


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the Apps until a signal stops it. Every failure is one line in the log and an exit code of its own."""
    with _loading():
        from kopylite.diagnostics import configure_logging
        from kopylite.reconcile import running_fields

    place: ProcessPlace | None = args.place
    several = place is None and args.processes > 1
    fields = partial(fields_of, place, running_fields)
    bar = configure_logging(args.log_format, args.log_level, fields, bar=place is None and not several)
    for warning in unknown_variables() if place is None else ():  # its parent has said so
        logger.warning("%s", warning)
    try:
        if several:
            return supervise(args, signals)
        tie = tie_of(args, signals)
        with _loading():
            apps = load_apps(args.target)
            _require_controllers(apps, args.target)  # before --dev starts a cluster for nothing
        if place is not None:
            check_shared(apps, options_of(args), place)
        signals.nothing_to_end = False
        with _cluster(apps, args), asyncio.Runner(loop_factory=_loop_factory(args.loop)) as runner:
            finished = bool(signals.asked) or runner.run(_operate(apps, args, signals, bar, tie))
    except KopyliteError as error:
        return _explain(error)
    except Exception:
        logger.critical("a part that must not end has failed", exc_info=True)
        return Exit.INTERNAL
    return Exit.STOPPED if finished else Exit.UNFINISHED


@contextmanager
def _loading() -> Iterator[None]:
    """Let modules be loaded with garbage looked for seldom: they make little, and looking is a tenth of their time."""
    before = gc.get_threshold()
    seldom = (before[0] and max(LOADING, before[0]), *before[1:])  # 0: never
    gc.set_threshold(*seldom)
    try:
        yield
    finally:
        if gc.get_threshold() == seldom:  # else a module has its own idea
            gc.set_threshold(*before)


def _require_controllers(apps: Sequence[App], targets: Sequence[str]) -> None:
    from kopylite.manager import check_apps

    try:
        check_apps(apps)
    except RegistrationError as error:
        raise RegistrationError(f"{', '.join(targets)}: {error}") from None


@contextmanager
def _cluster(apps: Sequence[App], args: argparse.Namespace) -> Iterator[None]:
    """With --dev, a cluster of its own, which the arguments name from here on."""
    if not args.dev:
        if args.dev_data or args.dev_port or args.no_simulator or args.crds:
            raise UsageError("--crds, --dev-data, --dev-port and --no-simulator say how --dev works; add --dev")
        yield
        return
    from kopylite.cli.dev import dev_cluster

    if args.kubeconfig or args.context:
        raise UsageError("--dev brings its own cluster; leave out --kubeconfig and --context")
    simulate = not args.no_simulator
    with dev_cluster(apps, data=args.dev_data, port=args.dev_port, simulate=simulate, crds=args.crds) as kubeconfig:
        args.kubeconfig = str(kubeconfig)
        yield


async def _operate(
    apps: Sequence[App], args: argparse.Namespace, signals: StopSignals, bar: Bar | None = None, tie: Tie | None = None
) -> bool:
    """Whether all running reconciles had finished when it stopped."""
    with _loading():
        from kopylite.client import load_config
        from kopylite.manager import Manager
    gc.collect()  # the manager freezes what there is, and garbage would stay for ever

    config = load_config(
        args.kubeconfig, args.context, anonymous=args.anonymous, allow_plain_http=args.allow_plain_http
    )
    manager = Manager(apps, config, options_of(args))
    manager.bar = bar
    if tie is not None:
        manager.on_listening = partial(tell_address, tie, manager)
    asyncio.get_running_loop().set_exception_handler(on_loop_error)
    with (
        _recorded(manager, args.record_rbac),
        signals.passed_to(manager.stop, within=args.grace_period + OVERTIME, left=partial(_left, manager)),
    ):
        return await manager.run()


@contextmanager
def _recorded(manager: Manager, path: Path | None) -> Iterator[None]:
    """Keep what the Apps ask of the API server in a file, or in one of its own in a folder."""
    if path is None:
        yield
        return
    from kopylite.deploy.recorder import Recorder

    manager.recorder = recorder = Recorder()
    try:
        yield
    finally:
        recorder.recording.add_to(path / f"{os.getpid()}.json" if path.is_dir() else path)


def _left(manager: Manager) -> str:
    """The functions of the user that still run."""
    runs = [f"reconcile of {run.request}" for each in manager.controllers for run in each.active_runs()]
    calls = [
        f"{call.what} {call.name} of {call.subject}" for each in manager.controllers for call in each.active_calls()
    ]
    return ", ".join(runs + calls)


def on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop has to tell of nobody's task, without what is no error.

    A connection that is closed in the middle of its TLS handshake, by a stop or a time limit, may get one more record
    from the server. uvloop then tries to answer on the closed transport and calls that fatal, with a traceback.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and "SSL" in context.get("message", "") and "closed" in str(error):
        logger.debug("a connection was closed in its TLS handshake: %s", error)
        return
    loop.default_exception_handler(context)


def options_of(args: argparse.Namespace) -> Options:
    """The manager's options that a command line asks for."""
    from kopylite.manager import Options

    return Options(
        namespaces=() if args.all_namespaces else tuple(dict.fromkeys(args.namespace or ())),
        namespaces_labelled="" if args.all_namespaces else args.namespaces_labelled or "",
        workers=args.workers,
        metrics_address=own_address(args.metrics_address, args.place),
        health_address=own_address(args.health_address, args.place),
        grace_period=args.grace_period,
        connect_timeout=args.connect_timeout,
        freeze_garbage=True,
        **election_options(args),
        webhook_shared=args.place is not None,
        **webhook_options(args),
    )


# First match wins: subclasses before their bases.
_CODES: tuple[tuple[type[KopyliteError], Exit], ...] = (
    (ModuleNotLoaded, Exit.MODULE),
    (AttributeNotFound, Exit.ATTRIBUTE),
    (RegistrationError, Exit.REGISTRATION),
    (LifecycleError, Exit.LIFECYCLE),
    (KubeconfigError, Exit.KUBECONFIG),
    (UsageError, Exit.USAGE),
    (ConnectionFailed, Exit.UNREACHABLE),
)


def _explain(error: KopyliteError) -> Exit:
    code = next((code for kind, code in _CODES if isinstance(error, kind)), Exit.INTERNAL)
    # Only a module's own failure needs a traceback: it is the user's code that has to be mended.
    shown = error.__cause__ if isinstance(error, ModuleNotLoaded | LifecycleError) or code is Exit.INTERNAL else None
    logger.error("%s", error, exc_info=shown)
    return code


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, or None for asyncio's own.

    Raises:
        UsageError: uvloop is asked for and not installed.
    """
    if name == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if name == "auto":
            return None
        raise UsageError("--loop uvloop: it is not installed; pip install 'kopylite[fast]'") from None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
