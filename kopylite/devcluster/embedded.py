"""EmbeddedCluster: the embedded API server as a control plane; starts in milliseconds, needs no binaries."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.devcluster.cluster import Cluster, CrdSource
from kopylite.devcluster.faults import Faults, past_of
from kopylite.devcluster.requestlog import RequestLog
from kopylite.errors import UsageError
from kopylite.wholefiles import write_private

if TYPE_CHECKING:
    from kopylite.apiserver.server import ApiServer, ApiServerOptions
    from kopylite.apiserver.storage.store import ObjectStore
    from kopylite.apiserver.world import Hooks
    from kopylite.devcluster.simulator import Simulation
    from kopylite.serving.authority import CertificateAuthority

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a cluster held at one moment, with its history. Any number of clusters can start from it."""

    store: ObjectStore

    @property
    def resource_version(self) -> str:
        """The newest resourceVersion in it."""
        return str(self.store.version)


class ServerParams(TypedDict, total=False):
    """How an EmbeddedCluster serves.

    Attributes:
        rbac: enforce Roles and bindings (the default). The `kubeconfig` may do everything in any case.
        tls: serve https (the default), which kubectl insists on; off, the start is some milliseconds faster.
        minor: the Kubernetes minor to behave like; left out: the newest that is known.
        port: where to listen; left out: a free one.
        data_sync: whether each write to the data file waits for the disk (the default). Off, only a loss of power can
            take the last ones; a killed process loses nothing either way.
        own_warnings: say in a Warning header of objects that are kept and not acted upon that it is so (the default).
        token: the bearer token of the administrator; left out: a random one.
        webhook_services: where Services that webhook configurations name are reached: a port of this machine for
            "namespace/name" or "namespace/name:port".
    """

    rbac: bool
    tls: bool
    minor: int
    port: int
    data_sync: bool
    own_warnings: bool
    token: str
    webhook_services: Mapping[str, int]


class EmbeddedCluster(Cluster):
    """A control plane in this process, on loopback, with RBAC on as EnvTest has it.

        async with EmbeddedCluster(crds=[MyApp]) as cluster, cluster.client() as client:
            ...

    It runs in the event loop that starts it, so whatever blocks that loop blocks the server too; its methods may be
    called from any loop and thread.

    Args:
        crds: installed, and waited for, at start; see `install_crds`.
        controllers: collect garbage, end namespaces, and give each namespace its ServiceAccount; or the names of
            those that shall run (see `apiserver.controllers.NAMES`). False makes it a bare API server, as EnvTest is.
        simulator: play workloads too: Deployments get ReplicaSets, these get Pods, which become ready. True, or a
            Simulation that says how fast and what fails. It needs the garbage collector.
        clock: of the server; a VirtualClock makes its time stamps and timers obey the test.
        snapshot: begin with this world instead of an empty one.
        data: a file in which the objects survive the end of the cluster, however it ends. One cluster at a time.
        server: see ServerParams.

    Attributes:
        requests: what was asked and answered, newest last.
        hooks: what happens with each request; empty by default, and kept over restarts of the server.
        faults: what may go wrong, for the requests that you choose; see Faults.

    Raises:
        UsageError: the package `cryptography` (extra `dev`) is not installed, and `tls` is on (at start).
    """

    def __init__(
        self,
        *,
        crds: Sequence[CrdSource] = (),
        controllers: bool | Collection[str] = True,
        simulator: bool | Simulation = False,
        clock: Clock = SYSTEM_CLOCK,
        snapshot: Snapshot | None = None,
        data: Path | None = None,
        **server: Unpack[ServerParams],
    ) -> None:
        from kopylite.apiserver.world import Hooks

        self._crds = tuple(crds)
        self._simulator = simulator
        self._options = _server_options(controllers, data, server)
        self._clock = clock
        self._store = snapshot.store.fork() if snapshot else None
        self._server: ApiServer | None = None
        self._authority: CertificateAuthority | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files = ExitStack()
        self._running = AsyncExitStack()
        self.home = Path()
        self.hooks: Hooks = Hooks()
        self.faults = Faults(self.hooks, clock, lambda: past_of(self.server.world), self.compact)
        self.requests = RequestLog(clock)
        self.hooks.after.append(self.requests.note)

    @property
    def server(self) -> ApiServer:
        """The running server, for what this class does not offer. Not to be touched from other threads."""
        if self._server is None:
            raise UsageError("the embedded control plane does not run: enter its `async with` block first")
        return self._server

    @property
    def url(self) -> str:
        """https://127.0.0.1:port of the API server; stays the same over its restarts."""
        return self.server.url

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.home = Path(self._files.enter_context(tempfile.TemporaryDirectory(prefix="kopylite-embedded-")))
        await self._start_server()
        if self._simulator:
            await self._start_simulator()
        if self._crds:
            await self.install_crds(*self._crds)

    async def stop(self) -> None:
        if self._loop is not None:
            await self._in_loop(self._running.aclose)
            await self._in_loop(self._stop_server)
        self._files.close()

    async def kill_api_server(self) -> None:
        """Cut all connections; nothing answers until `start_api_server`. What was written stays."""

        async def kill() -> None:
            await self.server.stop_listening()
            # In one turn of the event loop: nobody is told of a write that is not in it.
            self._store = self.server.world.store.fork()
            self.server.cut_connections()
            await self._stop_server()

        await self._in_loop(kill)

    async def start_api_server(self) -> None:
        """Start the API server again, on the same port and data."""
        await self._in_loop(self._start_server)

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for `user`, who may do nothing until RBAC says so. Needs `tls`."""
        from kopylite.apiserver.access.kubeconfig import certificate_user, kubeconfig

        if self._authority is None:
            raise UsageError("users are told apart by their certificates: start the control plane, with tls=True")
        path = self.home / f"kubeconfig-{user.replace('/', '-').replace(':', '-')}"
        client = certificate_user(self._authority.client(user, groups))
        write_private(path, kubeconfig(self.url, client, self._authority.certificate))
        return path

    def snapshot(self) -> Snapshot:
        """Everything that it holds now. Costs no copies of objects."""
        return Snapshot(self._at_once(lambda: self.server.world.store.fork()))

    def fork(self, snapshot: Snapshot | None = None) -> EmbeddedCluster:
        """A second cluster, not yet started, that begins where this one is (or was, at `snapshot`).

        From there on the two have nothing in common; times, options and simulation are alike.
        """
        twin = EmbeddedCluster(simulator=self._simulator, clock=self._clock, snapshot=snapshot or self.snapshot())
        twin._options = replace(self._options, port=0, token="", data=None)
        return twin

    def compact(self) -> int:
        """Forget the history up to now: watches from older resourceVersions get 410 Expired. Returns the newest."""
        return self._at_once(lambda: self.server.world.store.compact())

    async def _start_server(self) -> None:
        from kopylite.apiserver.server import ApiServer

        server = ApiServer(
            self._options, clock=self._clock, store=self._store, authority=self._authority, hooks=self.hooks
        )
        await server.__aenter__()
        self._server, self._store, self._authority = server, None, server.authority
        # What clients know of it must hold for the next start too.
        self._options = replace(self._options, port=server.port, token=server.token)
        self.kubeconfig = self.home / "kubeconfig"
        write_private(self.kubeconfig, server.kubeconfig())

    async def _stop_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.__aexit__(None, None, None)

    async def _start_simulator(self) -> None:
        from kopylite.devcluster.simulator import Simulation, Simulator

        plan = self._simulator if isinstance(self._simulator, Simulation) else Simulation()
        await self._running.enter_async_context(Simulator(plan, self.kubeconfig, clock=self._clock))

    async def _in_loop(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in the server's loop, and wait for it in the caller's."""
        loop = self._loop
        if loop is None or loop is _running_loop():
            return await work()

        async def called() -> T:
            return await work()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(called(), loop))

    def _at_once(self, work: Callable[[], T]) -> T:
        """Do something in one turn of the server's loop; blocks the caller for that turn."""
        loop = self._loop
        if loop is None or loop is _running_loop():
            return work()

        async def called() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(called(), loop).result()


def _server_options(controllers: bool | Collection[str], data: Path | None, server: ServerParams) -> ApiServerOptions:
    from kopylite.apiserver.controllers import NAMES
    from kopylite.apiserver.server import ApiServerOptions

    chosen = (NAMES if controllers else ()) if isinstance(controllers, bool) else tuple(controllers)
    wanted: ServerParams = {"rbac": True, "tls": True, "own_warnings": True, **server}
    # A real server lets strangers in, too, as a user whom next to nothing is granted.
    return ApiServerOptions(controllers=chosen, data=data, anonymous=wanted["rbac"], **wanted)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
