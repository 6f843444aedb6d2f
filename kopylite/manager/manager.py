"""Manager: brings an App to life in one task group, stage by stage, and takes it down in reverse.

    1  HTTP servers                  a taken port fails before anything else happens
    2  the API server                waited for, visibly, until --connect-timeout
    3  caches and their controllers  each controller begins when its own caches are in sync; none waits for another's
    stop()
    3  controllers                   no new keys, readiness false; running reconciles get the grace period
    2  caches, then the client       so they had both until their end
    1  HTTP servers                  so probes and a last scrape are answered until the end

Whatever must not end, and does, ends the process: a controller that is dead beside a green probe is worse.
"""

from __future__ import annotations

import gc
import logging
import platform
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol

import anyio

from kopylite.cache import Informer, Scope, SharedCache
from kopylite.client import Client, ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import AiohttpTransport, Transport
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.controller import Controller, ControllerSpec, Watch
from kopylite.diagnostics import StallWatch, WaitingReport
from kopylite.errors import RegistrationError
from kopylite.manager.connection import wait_for_server
from kopylite.manager.health import liveness, readiness
from kopylite.manager.options import Options
from kopylite.manager.wiring import scopes_of, sources_of
from kopylite.metrics import Metrics
from kopylite.objects import kind_of
from kopylite.reconcile import Environment
from kopylite.reconcile.recorder import EventRecorder
from kopylite.serving import Address, Answer, Handler, HttpServer, Query, parse_address, probe

logger = logging.getLogger("kopylite.manager")


class Operator(Protocol):
    """What a Manager runs: an App, or whatever else has an App's declarations."""

    @property
    def name(self) -> str: ...
    @property
    def controllers(self) -> Sequence[ControllerSpec]: ...
    @property
    def cached(self) -> Sequence[Watch]: ...


class Manager:
    """Runs one App against one API server, once.

        manager = Manager(app, load_config())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            ...
            manager.stop()

    Args:
        app: what to run.
        config: which API server, as whom.
        options: how.
        clock: of everything in it.

    Attributes:
        metrics: its numbers; register collectors of your own in `metrics.registry`.

    Raises:
        RegistrationError: the App has no controllers.
        UsageError: an address is none.
    """

    def __init__(
        self, app: Operator, config: ClientConfig, options: Options | None = None, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        if not app.controllers:
            raise RegistrationError(
                f"app {app.name!r} has no controllers, so there is nothing to run. Declare one with "
                "@app.reconciler(MyKind), or app.include() the App that has them"
            )
        self.app = app
        self.options = options or Options()
        self.metrics = Metrics()
        # The server records the part up to "/" as the writer of a field when a request names none.
        self._config = replace(config, user_agent=f"{app.name}/kopylite")
        self._clock = clock
        self._stall = StallWatch(on_lag=self.metrics.loop_lag.observe, clock=clock)
        self._servers = self._plan_servers()
        self._cache: SharedCache | None = None
        self._controllers: list[Controller] = []
        self._stop = anyio.Event()
        self._synced = anyio.Event()
        # Only this is cut short by a stop; what has begun to work is ended in order.
        self._connecting = anyio.CancelScope()

    @property
    def controllers(self) -> Sequence[Controller]:
        """The running controllers; empty before the API server was reached."""
        return self._controllers

    @property
    def addresses(self) -> dict[str, Address]:
        """Where each path is served, while it is: {"/metrics": 127.0.0.1:8080, ...}."""
        return {path: server.address for server in self._servers for path in server.paths}

    def stop(self) -> None:
        """Ask for an orderly end; `run` returns when it is reached. Harmless when repeated."""
        self._stop.set()
        self._connecting.cancel()

    async def wait_synced(self) -> None:
        """Wait until every controller works: the first state of everything it watches is known."""
        await self._synced.wait()

    async def run(self) -> bool:
        """Run until `stop` was called.

        Returns:
            Whether all running reconciles ended by themselves; False: some had to be cancelled.

        Raises:
            UsageError: an address cannot be listened on.
            ConnectionFailed: the API server was not reached at the start.
            KubeconfigError: it refuses the credentials.
            ExceptionGroup: something that must not end has failed.
        """
        async with AsyncExitStack() as stack:
            for server in self._servers:
                await stack.enter_async_context(server)
            for path, address in self.addresses.items():
                logger.info("serving http://%s%s", address, path)
            transport = AiohttpTransport(self._config, observer=self.metrics.client, clock=self._clock)
            await stack.enter_async_context(transport)
            with self._connecting:
                await wait_for_server(transport, self._config, self.options.connect_timeout, self._clock)
            finished = self._stop.is_set() or await self._operate(transport)
        logger.info("stopped")
        return finished

    async def _operate(self, transport: Transport) -> bool:
        """Stage 3, up and down: whether all running reconciles ended by themselves."""
        services = self._build(transport)
        async with anyio.create_task_group() as background:
            for name, serve in services.items():
                background.start_soon(self._endless, name, serve)
            background.start_soon(self._note_synced)
            async with anyio.create_task_group() as running:
                for controller in self._controllers:
                    running.start_soon(self._endless, f"controller {controller.name}", controller.run)
                await self._stop.wait()
                finished = await self._drain()
            background.cancel_scope.cancel()
        return finished

    def _build(self, transport: Transport) -> dict[str, Callable[[], Awaitable[None]]]:
        """Make caches, client and controllers; returns what has to run in the background, by name."""
        resources = Resources(transport, self._clock)
        cache = SharedCache(transport, resources, clock=self._clock, observe=self.metrics.informer)
        client = Client(transport, resources=resources, cache=cache, field_manager=self.app.name, clock=self._clock)
        recorder = EventRecorder(
            client.live, controller=self.app.name, instance=platform.node() or self.app.name, clock=self._clock
        )
        for watch in self.app.cached:
            kind = kind_of(watch.kind)
            for namespace in scopes_of(kind, watch.namespace, self.options.namespaces):
                cache.acquire(kind, namespace=namespace, labels=watch.labels, metadata_only=watch.metadata_only)
        for spec in self.app.controllers:
            environment = Environment(spec.name, client, recorder, logging.getLogger(self.app.name), self._clock)
            self._controllers.append(self._build_controller(spec, environment, cache))
        self._cache = cache
        self.metrics.informer_statistics = cache.statistics
        report = WaitingReport(lambda: cache.informers, self._waiters, clock=self._clock)
        return {
            "the event loop's watch": self._stall.run,
            "the cache": cache.run,
            "the waiting report": report.run,
            "the event recorder": recorder.run,
        }

    def _build_controller(self, spec: ControllerSpec, environment: Environment, cache: SharedCache) -> Controller:
        metrics = self.metrics.controller(spec.name, spec.workers or self.options.workers)
        controller = Controller(
            spec,
            environment,
            sources=sources_of(spec, environment, cache, self.options.namespaces),
            workers=self.options.workers,
            observer=metrics.reconcile,
            queue_observer=metrics.queue,
        )
        metrics.statistics = lambda: controller.statistics().queue
        return controller

    async def _endless(self, name: str, serve: Callable[[], Awaitable[None]]) -> None:
        """Run something that may only end when it is cancelled, or after a stop."""
        await serve()
        if not self._stop.is_set():
            raise RuntimeError(f"{name} ended by itself")

    async def _note_synced(self) -> None:
        began = self._clock.monotonic()
        for controller in self._controllers:
            for source in controller.sources:
                await source.wait_synced()
        seconds, objects = (
            self._clock.monotonic() - began,
            sum(now.objects for now in self.metrics.informer_statistics()),
        )
        logger.info("all caches are in sync: %d objects after %.1f s", objects, seconds)
        if self.options.freeze_garbage:
            gc.freeze()
        self._synced.set()

    async def _drain(self) -> bool:
        """Let the running reconciles end, all controllers at the same time."""
        runs, grace, ended = sum(len(c.active_runs()) for c in self._controllers), self.options.grace_period, []
        logger.info("stopping: %d reconciles run, and have up to %.0f s to end", runs, grace)

        async def drain(controller: Controller) -> None:
            ended.append(await controller.drain(grace))

        async with anyio.create_task_group() as tasks:
            for controller in self._controllers:
                tasks.start_soon(drain, controller)
        return all(ended)

    def _waiters(self, scope: Scope) -> list[str]:
        return [
            controller.name
            for controller in self._controllers
            if any(source.name == str(scope) and not source.synced for source in controller.sources)
        ]

    def _plan_servers(self) -> list[HttpServer]:
        """One server for each address; an address that serves both has both's paths."""
        wanted: dict[Address, dict[str, Handler]] = {}
        for text, routes in (
            (self.options.metrics_address, {"/metrics": self._metrics}),
            (self.options.health_address, {"/healthz": self._healthz, "/readyz": self._readyz}),
        ):
            if (address := parse_address(text)) is not None:
                wanted.setdefault(address, {}).update(routes)
        return [HttpServer(address, routes) for address, routes in wanted.items()]

    def _metrics(self, query: Query) -> Answer:
        body, content_type = self.metrics.exposition(query.accept)
        return Answer(200, body, content_type)

    def _healthz(self, query: Query) -> Answer:
        return probe("healthz", liveness(self._stall.check, self._informers(), self._controllers), query)

    def _readyz(self, query: Query) -> Answer:
        ready = readiness(self._state, self._informers(), self._controllers)
        return probe("readyz", ready, query)

    def _state(self) -> str | None:
        """Why it is not ready though every part may be; None: it is."""
        if self._stop.is_set():
            return "stopping"
        return None if self._cache else "the API server was not reached yet"

    def _informers(self) -> list[Informer]:
        return self._cache.informers if self._cache else []
