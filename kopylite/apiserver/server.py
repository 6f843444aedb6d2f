"""ApiServer: the parts joined, started and stopped."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kopylite.apiserver.access.kubeconfig import kubeconfig
from kopylite.apiserver.admission import unheeded
from kopylite.apiserver.assembly import AccessOptions, assemble
from kopylite.apiserver.bootstrap.cluster import bootstrap
from kopylite.apiserver.depth import deep_stack
from kopylite.apiserver.request.request import ADMIN, HttpRequest, Response
from kopylite.apiserver.storage.persistence import DataFile
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.apiserver.world import NEWEST_MINOR, Hooks, World
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from aiohttp.web import BaseSite
    from aiohttp.web_protocol import RequestHandler

    from kopylite.apiserver.controllers import Controllers
    from kopylite.serving.authority import CertificateAuthority

# A connection without a whole request is closed after this time, be it idle or half-sent; kube-apiserver's IdleTimeout.
_IDLE_SECONDS = 90.0
# Go's DefaultMaxHeaderBytes.
_MAX_HEADER_BYTES = 1 << 20
_MAX_FILES = 65_536
# Open watches end at once when the server stops; this is for answers still being written.
_SHUTDOWN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ApiServerOptions:
    """How to serve.

    Attributes:
        host, port: where to listen; port 0 takes a free one.
        listen: False: no socket at all, in-process requests only.
        tls: with a fresh CA; needs `cryptography`.
        token: of the administrator; "" makes a random one.
        anonymous: let requests without credentials in, as system:anonymous. Without `rbac` that gives every right to
            every process that reaches the server.
        rbac: enforce Roles and bindings; off, everybody who is let in may do everything.
        minor: the emulated Kubernetes minor.
        data: a file in which the objects survive; held from the making of the server until its end.
        data_sync: wait for the disk at each write; off, a loss of power may take the last ones.
        controllers: which parts of a cluster's controller manager run: names of `controllers.NAMES`.
        own_warnings: say in a Warning header of objects that are kept and not acted upon that it is so; a real server
            has none of these.
        webhook_services: where Services that webhook configurations name are reached: a port of this machine for
            "namespace/name" or "namespace/name:port".
    """

    host: str = "127.0.0.1"
    port: int = 0
    listen: bool = True
    tls: bool = False
    token: str = ""
    anonymous: bool = False
    rbac: bool = False
    minor: int = NEWEST_MINOR
    data: Path | None = None
    data_sync: bool = True
    controllers: tuple[str, ...] = ()
    own_warnings: bool = False
    webhook_services: Mapping[str, int] = field(default_factory=dict)


class ApiServer:
    """An API server in this process, serving from entering the context until leaving it.

    Args:
        store: take over this store (a fork of another server's, say) instead of an empty one.
        authority: sign with this CA instead of a fresh one, so that clients of an earlier server know this one.
        hooks: take over these hooks.

    Raises:
        UsageError: the data file cannot be read, is in use, or holds other objects than `store`.

    Attributes:
        world: store, registry, hooks and clock.
        port: where it listens, once it does.
        core: answers requests; `handle` is the way in for in-process clients.
    """

    def __init__(
        self,
        options: ApiServerOptions = ApiServerOptions(),
        *,
        clock: Clock = SYSTEM_CLOCK,
        store: ObjectStore | None = None,
        authority: CertificateAuthority | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.options = options
        self.token = options.token or secrets.token_urlsafe(24)
        self._file = DataFile(options.data, sync=options.data_sync) if options.data else None
        try:
            with deep_stack():
                store = self._stored(store, clock)
        except BaseException:
            self._close_file()
            raise
        self.world = World(store, clock=clock, hooks=hooks or Hooks(), minor=options.minor)
        access = AccessOptions(
            {self.token: ADMIN}, anonymous=options.anonymous, rbac=options.rbac, services=options.webhook_services
        )
        with deep_stack():  # it reads the stored CRDs
            self.assembly = assemble(self.world, access, is_ready=lambda: self._ready)
        if options.own_warnings:
            self.world.validating.append(unheeded.note)
        self.core = self.assembly.core
        self.authority = authority
        self.port = 0
        self._ready = False
        self._connections: Callable[[], Iterable[RequestHandler]] = tuple
        self._site: BaseSite | None = None
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Load, bootstrap and listen.

        Raises:
            UsageError: the address cannot be listened on.
        """
        async with AsyncExitStack() as stack:
            stack.callback(self._close_file)
            stack.push_async_callback(self.assembly.hooks.aclose)
            await bootstrap(self.core, self._certificate())
            self.assembly.api_services.publish()
            if self.options.listen:
                await self._listen(stack)
            if self.options.controllers:
                await stack.enter_async_context(self._controllers())
            self._exit = stack.pop_all()
        self._ready = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ready = False
        await self.stop_listening()
        self.world.store.close()
        await self._exit.aclose()

    async def handle(self, request: HttpRequest) -> Response:
        """Answer a request in process, as the user that it names."""
        return await self.core.handle(request)

    def cut_connections(self) -> None:
        """Close every connection at once, in the middle of whatever it does, as a killed process would."""
        for connection in self._connections():
            connection.force_close()

    async def stop_listening(self) -> None:
        """Take no new connections. It comes before those that there are end, whose clients dial again at once.

        Of a connection that comes in the very turn of the event loop in which it stops listening, Python forgets the
        socket (python/cpython#109564).
        """
        site, self._site = self._site, None
        if site is not None:
            await site.stop()

    @property
    def url(self) -> str:
        return f"{'https' if self.options.tls else 'http'}://{self.options.host}:{self.port}"

    def kubeconfig(self, *, namespace: str = "default") -> str:
        """The text of a kubeconfig file for the administrator. Holds the token: write it for its owner only."""
        return kubeconfig(self.url, {"token": self.token}, self._certificate(), namespace)

    def _stored(self, store: ObjectStore | None, clock: Clock) -> ObjectStore:
        if self._file is None:
            return store or ObjectStore(clock=clock)
        if store is None:
            return self._file.load(clock)
        self._file.keep(store)
        return store

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()

    async def _listen(self, stack: AsyncExitStack) -> None:
        from aiohttp import web

        from kopylite.apiserver.front import Front, FrontServer

        # A client that leaves ends its watch: the place in the history must not be held for nobody.
        server = FrontServer(
            Front(self.core, self.assembly.authenticator, self.options.host),
            handler_cancellation=True,
            keepalive_timeout=_IDLE_SECONDS,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
            auto_decompress=False,  # a compressed body is refused, as the real server does: it could be a bomb
        )
        _allow_many_connections()
        self._connections = lambda: list(server.connections)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, self.options.host, self.options.port, ssl_context=self._ssl_context())
        try:
            await site.start()
        except OSError as error:
            where = f"{self.options.host}:{self.options.port}"
            raise UsageError(f"cannot listen on {where}: {error.strerror or error}") from error
        self._site = site
        self.port = runner.addresses[0][1]
        self.core.discovery.server_address = f"{self.options.host}:{self.port}"
        self.assembly.openid.url = self.url

    def _controllers(self) -> Controllers:
        from kopylite.apiserver.controllers import Controllers

        return Controllers(self.core, self.options.controllers, self._certificate())

    def _certificate(self) -> bytes:
        """Of the CA, PEM; b"" without TLS."""
        if self.authority is None and self.options.tls:
            from kopylite.serving.authority import CertificateAuthority

            self.authority = CertificateAuthority(clock=self.world.clock)
        return self.authority.certificate if self.authority else b""

    def _ssl_context(self) -> ssl.SSLContext | None:
        if not self.options.tls:
            return None
        from kopylite.apiserver.access.tls import server_context

        assert self.authority is not None, "made before the bootstrap"
        return server_context(self.authority, [self.options.host, "localhost", "127.0.0.1"])


def _allow_many_connections() -> None:
    """Let the process open as many files as it may; Go's runtime does the same. A thousand slow clients need it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
