"""`kopylite apiserver`: the embedded API server on its own, for kubectl and operators in any language."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kopylite.cli.commands import COMMANDS
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.streams import announce
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.apiserver.server import ApiServerOptions

DEFAULT_KUBECONFIG = Path("kopylite.kubeconfig")

EPILOG = """\
examples:
  kopylite apiserver                                    a cluster in memory, at a free port
  kopylite apiserver --port 6443 --data dev.db          one that survives a restart
  kopylite apiserver --crds crds/ --crds more.yaml      one with custom resources
  kubectl --kubeconfig kopylite.kubeconfig get namespaces

Pods run only in its imagination: Deployments and other workloads become ready, and no container exists. With
--no-simulator they stay as they are; with --no-controllers nothing collects garbage or ends namespaces either, as
in a bare kube-apiserver.

Who may do what: the administrator, by the token in the kubeconfig; with --rbac, others by Roles and bindings. With
--anonymous and without --rbac every process of this machine is an administrator. Web pages are not: on loopback the
Host of a request must be 127.0.0.1, localhost or the --host, and writes from a page of another origin are refused,
unless a bearer token comes along. It ends at SIGTERM or Ctrl-C.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `apiserver` and its options."""
    parser = subparsers.add_parser(
        "apiserver",
        help=COMMANDS["apiserver"],
        description="Serve a Kubernetes API from this process: kubectl, operators and other clients can use it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument(
        "--allow-remote", action="store_true", help="permit an address that other machines can reach; needs TLS"
    )
    parser.add_argument(
        "--write-kubeconfig",
        metavar="FILE",
        type=Path,
        default=DEFAULT_KUBECONFIG,
        help="where the administrator's kubeconfig goes, readable by you only; one of others gets a context more "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--crds", metavar="PATH", type=Path, action="append", default=[],
        help="install the CRDs of a YAML or JSON file, or of a folder's; repeatable",
    )  # fmt: skip
    parser.add_argument("--data", metavar="FILE", type=Path, help="keep the objects in this file, also if it is killed")
    parser.add_argument(
        "--data-sync",
        choices=("on", "off"),
        default="on",
        help="wait for the disk at each write (default), or be faster and let a loss of power take the last ones",
    )
    _add_access_options(parser)


def _add_access_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tls",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="serve https with a fresh CA (default); kubectl sends its credentials over https only, and without it "
        "web pages that a browser of this machine shows can reach the server, too",
    )
    parser.add_argument("--rbac", action="store_true", help="enforce Roles and bindings")
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="let requests without credentials in, as system:anonymous: "
        "without --rbac every process of this machine is an administrator then",
    )
    parser.add_argument("--no-simulator", action="store_true", help="play no workloads: no pod runs")
    parser.add_argument(
        "--no-controllers", action="store_true", help="nor collect garbage, nor end namespaces: the API and no more"
    )
    parser.add_argument(
        "--no-own-warnings",
        action="store_true",
        help="leave out the Warning of an object that is kept and not acted upon, such as a HorizontalPodAutoscaler",
    )
    parser.add_argument("--kubernetes-version", metavar="1.NN", default="1.37", help="the version to behave like")


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Serve until a signal comes; the exit code is one of `Exit`."""
    import anyio

    from kopylite.devcluster.cluster import crds_in

    # What its own controllers tell is of interest only when it is trouble.
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        simulate = not (args.no_simulator or args.no_controllers)
        options = options_of(args)
        for path in args.crds:  # a bad one is told before anything is served
            crds_in(path)
        signals.nothing_to_end = False
        anyio.run(_serve, options, args.write_kubeconfig.absolute(), simulate, signals, args.crds)
    except UsageError as error:
        print(f"kopylite apiserver: {error}", file=sys.stderr)
        return Exit.USAGE
    return Exit.STOPPED


def options_of(args: argparse.Namespace) -> ApiServerOptions:
    """The server's options. Raises UsageError for what must not be combined."""
    from kopylite.apiserver.controllers import NAMES
    from kopylite.apiserver.endpoints.version import parse_kubernetes_version
    from kopylite.apiserver.server import ApiServerOptions
    from kopylite.serving.address import is_loopback

    if not is_loopback(args.host):
        if not args.allow_remote:
            text = "other machines could reach it; add --allow-remote if that is what you want"
            raise UsageError(f"--host {args.host}: {text}")
        if not args.tls or args.anonymous:
            raise UsageError(f"--host {args.host}: needs TLS, and refuses --anonymous")
    try:
        minor = parse_kubernetes_version(args.kubernetes_version)
    except ValueError as error:
        raise UsageError(f"--kubernetes-version: {error}") from error
    return ApiServerOptions(
        host=args.host,
        port=args.port,
        tls=args.tls,
        anonymous=args.anonymous,
        rbac=args.rbac,
        minor=minor,
        data=args.data,
        data_sync=args.data_sync == "on",
        controllers=() if args.no_controllers else NAMES,
        own_warnings=not args.no_own_warnings,
    )


async def _serve(
    options: ApiServerOptions, kubeconfig: Path, simulate: bool, signals: StopSignals, crds: Sequence[Path]
) -> None:
    import anyio

    from kopylite.apiserver.server import ApiServer
    from kopylite.cli.kubeconfigs import publish_kubeconfig
    from kopylite.devcluster.cluster import install_crds
    from kopylite.devcluster.simulator import Simulation, Simulator
    from kopylite.wholefiles import write_private

    stopping = anyio.Event()
    with signals.passed_to(stopping.set):
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(ApiServer(options))
            # Of its own: the current context of the other one may be somebody else's cluster.
            own = Path(stack.enter_context(TemporaryDirectory(prefix="kopylite-")), "kubeconfig")
            write_private(own, server.kubeconfig())
            if crds:
                await install_crds(own, *crds)
            context = await anyio.to_thread.run_sync(publish_kubeconfig, kubeconfig, server.kubeconfig())
            if simulate:
                await stack.enter_async_context(Simulator(Simulation(), own))
            if options.anonymous and not options.rbac:
                text = "with --anonymous and without --rbac every process of this machine is an administrator"
                print(f"kopylite apiserver: {text}", file=sys.stderr, flush=True)
            announce(f"serving at {server.url}", f"  export KUBECONFIG={kubeconfig}")
            if context:
                announce(f"  kubectl --context {context} get namespaces")
            await stopping.wait()
