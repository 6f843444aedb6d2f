"""Manager: brings an App to life in one task group, stage by stage, and takes it down in reverse.

    1  HTTP servers                  a taken port fails before anything else happens
    2  the API server                waited for, visibly, until --connect-timeout
    3  webhooks                      are served, and the API server is told of them: what follows may write through them
       on_start, lifespans           in the order of their declaration; one that fails ends the run
    4  caches and their controllers  each controller begins when its own caches are in sync; none waits for another's;
                                     with leader election, when this process leads, and again in each of its terms;
                                     tasks, beside them
    stop()
    4  controllers                   no new keys, readiness false; running reconciles get the grace period; then the
                                     tasks, the last Events, and then the lease is given back; the webhooks, when the
                                     calls in progress are answered; the caches
    3  lifespans, on_stop            in reverse order
    2  the client                    so all had it until their end
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
from functools import partial
from typing import TYPE_CHECKING

import anyio

from kopylite.boundary import say
from kopylite.cache import Informer
from kopylite.client import Api, ClientConfig, HttpTransport, LiveClient, Transport
from kopylite.client.transport import MAX_CONNECTIONS
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.controller import Controller
from kopylite.diagnostics import Bar, ProgressReport, StallWatch, WaitingReport, forgotten_awaits, reasons_of
from kopylite.errors import KopyliteError, UsageError
from kopylite.lifecycle.spec import Endpoint
from kopylite.manager.assembly import Assembly, Ground, assemble, prepare
from kopylite.manager.connection import Connect, missing_namespaces, opened, wait_for_server
from kopylite.manager.elections import Candidacy, check_elections, lease_config, leases_of
from kopylite.manager.health import liveness, readiness
from kopylite.manager.operator import Operator, check_apps
from kopylite.manager.options import Options
from kopylite.manager.reachability import Reachability
from kopylite.manager.recorded import RecordedTransport, RequestRecorder
from kopylite.manager.webhooks import hook_config, served, webhook_service
from kopylite.metrics import Metrics
from kopylite.observers import ClientObserver
from kopylite.serving import Address, Answer, Check, Query, guarded, probe, servers_of, wants
from kopylite.troubleshooting import Trouble

if TYPE_CHECKING:
    from kopylite.leaderelection import Elector
    from kopylite.serving import HttpServer
    from kopylite.webhooks.service import WebhookService

logger = logging.getLogger("kopylite.manager")


class Manager:
    """Runs an App, or several side by side, against one API server, once.

        manager = Manager(app, load_config())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            ...
            manager.stop()

    Args:
        app: what to run; several Apps share connections and caches, and each writes under its own name.
        config: which API server, as whom.
        options: how.
        clock: of everything in it.
        connect: makes what reaches the API server; tests put a server of their own process behind it.
        reports: look at the event loop, from a thread and by real time, and at what waits and is behind, for the log.

    Attributes:
        webhooks: what serves them, when it runs; None: there are none.
        metrics: its numbers; register collectors of your own in `metrics.registry`.
        recorder: hears of each request of the Apps; None: nobody. The pytest plugin sets it for all Managers.
        bar: where a terminal is shown how far the controllers are that are behind; None: every 10 s in the log.
        on_listening: called when metrics and probes are served, or would be; `addresses` says where.

    Raises:
        RegistrationError: an App has no controllers, two have a controller, task or check of one name, or a metric of
            an App has a name that is taken.
        UsageError: an address is none.
    """

    recorder: RequestRecorder | None = None
    on_listening: Callable[[], None] | None = None

    def __init__(
        self,
        app: Operator | Sequence[Operator],
        config: ClientConfig,
        options: Options | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        connect: Connect = HttpTransport,
        reports: bool = True,
    ) -> None:
        self.apps: tuple[Operator, ...] = tuple(app) if isinstance(app, Sequence) else (app,)
        check_apps(self.apps)
        self.options = options or Options()
        check_elections(self.apps, self.options)
        self.metrics = Metrics()
        self._collectors = [collector for each in self.apps for collector in each.life.collectors]
        for collector in self._collectors:
            self.metrics.registry.include(collector)
        self.bar: Bar | None = None
        # A connection for each worker, unless the configuration sets a number.
        specs = [spec for each in self.apps for spec in each.controllers]
        workers = sum(spec.workers or self.options.workers for spec in specs)
        connections = config.max_connections or max(MAX_CONNECTIONS, workers)
        # The server records the part up to "/" as the writer of a field when a request names none.
        self._config = replace(config, user_agent=f"{self.apps[0].name}/kopylite", max_connections=connections)
        self._clock, self._connect, self._reports = clock, partial(opened, connect, clock), reports
        self._stall = StallWatch(on_lag=self.metrics.loop_lag.observe, clock=clock)
        self._ask = guarded(clock.monotonic)
        self._servers = self._plan_servers()
        if any("/metrics" in server.paths for server in self._servers):
            _ = self.metrics.registry  # made now: its library is not loaded while the event loop runs
        self._parts: Assembly | None = None
        self.webhooks: WebhookService | None = None
        self._started = False
        self._stop = anyio.Event()
        # Set when all was in sync once (`_synced`), or will not be any more.
        self._settled = anyio.Event()
        self._synced = False
        self._failure: BaseException | None = None
        # What an App cannot do without and has failed: the run ends in order, and then with this.
        self._fatal: KopyliteError | None = None
        # Only this is cut short by a stop; what has begun to work is ended in order.
        self._connecting = anyio.CancelScope()

    @property
    def controllers(self) -> Sequence[Controller]:
        """The running controllers; none before the API server was reached, and none that wait for their term."""
        return [controller for crew in self._parts.crews for controller in crew.working] if self._parts else ()

    @property
    def electors(self) -> Sequence[Elector]:
        """One for each App with leader election; none before the API server was reached."""
        return self._parts.electors if self._parts else ()

    @property
    def addresses(self) -> dict[str, Address]:
        """Where each path is served, while it is: {"/metrics": 127.0.0.1:8080, ...}."""
        return {path: server.address for server in self._servers for path in server.paths}

    @property
    def synced(self) -> bool:
        """Whether all was in sync once; see `wait_synced`."""
        return self._synced

    def stop(self) -> None:
        """Ask for an orderly end; `run` returns when it is reached. Harmless when repeated."""
        self._stop.set()
        self._connecting.cancel()
        for lifespans in self._parts.lifespans if self._parts else ():
            lifespans.stop()

    async def wait_synced(self) -> None:
        """Wait until every controller works: the first state of everything it watches is known.

        Those that only the leader runs need not have begun: all that they need is in the caches.

        Raises:
            KopyliteError: `run` ended before that; what it raised is the cause.
        """
        await self._settled.wait()
        if not self._synced:
            why = "it was stopped" if self._failure is None else say(self._failure)
            raise KopyliteError(f"the Manager ended before all that it watches was in sync: {why}") from self._failure

    def waiting(self) -> list[str]:
        """What is not in sync and why, one text each, with the rules that are missing; none: all is in sync."""
        if self._parts is None:
            return ["the API server was not reached yet"]
        limited = self.options.scope.limited
        reasons = reasons_of(self._parts.cache.informers, self.apps[0].name, limited=limited)
        why = self.webhooks.check() if self.webhooks is not None else None
        return [*reasons, f"webhooks: {why}"] if why else reasons

    async def run(self) -> bool:
        """Run until `stop` was called. If it was called already, nothing is begun.

        The end takes the grace period, and some 10 s for what was cancelled then, for the last Events and for closing:
        runs that swallow their cancellation, and threads, are named and left. Only a blocked event loop can hold it up.

        Returns:
            Whether all running reconciles ended by themselves; False: some had to be cancelled.

        Raises:
            UsageError: an address cannot be listened on; or this manager runs, or ran, already, which goes on unharmed.
            ConnectionFailed: the API server was not reached at the start.
            KubeconfigError: it refuses the credentials.
            LifecycleError: an on_start, a lifespan or a fatal task of an App failed; all else has ended in order.
            ExceptionGroup: something that must not end has failed.
        """
        if self._started:
            raise UsageError("this Manager runs, or ran, already; each runs once: make a new one")
        self._started = True
        if self._stop.is_set():
            logger.warning("stopped before it ran: nothing was begun")
        try:
            return self._stop.is_set() or await self._run()
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._settled.set()
            for collector in self._collectors:
                self.metrics.registry.unregister(collector)

    async def _run(self) -> bool:
        """All stages, up and down: whether all running reconciles ended by themselves."""
        async with AsyncExitStack() as stack:
            stack.enter_context(forgotten_awaits())
            for server in self._servers:
                await stack.enter_async_context(server)
                logger.info("listening on http://%s for %s", server.address, " and ".join(server.paths))
            if self.on_listening is not None:
                self.on_listening()
            observer = Reachability(self.metrics.client, self._clock, self._server_reached)
            transport = self._connect(stack, self._config, observer)
            hooked = any(app.hooks or app.converters for app in self.apps)
            beside = self._connect(stack, hook_config(self._config), observer) if hooked else transport
            ways = self._recorded(transport), self._recorded(beside)
            candidacy = self._candidacy(stack, observer)
            with self._connecting:
                await wait_for_server(transport, self._config, self.options.connect_timeout, self._clock)
                ground = await prepare(self.apps, self.options, ways, candidacy, self._clock)
            finished = self._stop.is_set() or await self._operate(ground)
        if self._fatal is not None:
            raise self._fatal
        logger.info("stopped")
        return finished

    def _recorded(self, transport: Transport) -> Transport:
        return transport if self.recorder is None else RecordedTransport(transport, self.apps, self.recorder)

    def _candidacy(self, stack: AsyncExitStack, observer: ClientObserver) -> Candidacy | None:
        """As whom this process stands for Leases; None: no App has leader election."""
        leases = sum(leases_of(app, self.options) for app in self.apps)
        if not leases:
            return None
        # Of its own, so that nothing that the operator does can keep a renewal waiting.
        transport = self._connect(stack, lease_config(self._config, leases), observer)
        identity = f"{platform.node() or self.apps[0].name}_{self._clock.uuid()}"
        return Candidacy(transport, self._config.namespace, identity)

    async def _operate(self, ground: Ground) -> bool:
        """Stages 3 and 4, up and down: whether all running reconciles ended by themselves."""
        parts = self._parts = assemble(self.apps, self.options, ground, self.metrics, self._clock, self._fail)
        self.webhooks = webhook_service(parts.webhooks, self.options, self._config, self.metrics, self._clock)
        async with served(self.webhooks, self._fail, self._endless), AsyncExitStack() as stack:
            for checks in parts.checks:
                stack.callback(checks.close)
            for lifespans in parts.lifespans:
                await stack.enter_async_context(lifespans.lived())
            finished = self._stop.is_set() or await self._work(parts, ground)
        await parts.flush()
        return finished

    async def _work(self, parts: Assembly, ground: Ground) -> bool:
        """Stage 4, up and down: whether all running reconciles ended by themselves."""
        for app in self.apps:
            names = ", ".join(spec.name for spec in app.controllers)
            logger.info(
                "app %s: %s in %s", app.name, f"controllers {names}" if names else "no controller", self.options.scope
            )
        report = WaitingReport(lambda: parts.cache.informers, parts.waiting_for, parts.permissions, clock=self._clock)
        async with anyio.create_task_group() as background:
            background.start_soon(self._endless, "the cache", parts.cache.run)
            background.start_soon(self._endless, "the scope", parts.namespaces.run)
            background.start_soon(self._endless, "the hot-loop report", parts.loops.run)
            progress = ProgressReport(lambda: self.controllers, lambda: self.bar, clock=self._clock)
            if self._reports:
                background.start_soon(self._endless, "the watch on the event loop", self._stall.run)
                background.start_soon(self._endless, "the waiting report", report.run)
                background.start_soon(self._endless, "the progress report", progress.run)
            for recorder in parts.recorders:
                background.start_soon(self._endless, "the event recorder", recorder.run)
            for membership in parts.memberships:
                background.start_soon(self._endless, "the membership of the shards", membership.run)
            background.start_soon(self._note_synced, parts)
            background.start_soon(self._note_namespaces, ground)
            async with anyio.create_task_group() as running:
                for crew in parts.crews:
                    running.start_soon(crew.run)
                await self._stop.wait()
                runs, grace = sum(len(each.active_runs()) for each in self.controllers), self.options.grace_period
                logger.info("stopping: %d reconciles run, and have up to %.0f s to end", runs, grace)
                left = {each.name: ready for each in self.controllers if (ready := each.statistics().queue.ready)}
                for membership in parts.memberships:
                    membership.leave()
                for crew in parts.crews:
                    crew.stop()
            if self.webhooks is not None:
                await self.webhooks.end()
            background.cancel_scope.cancel()
        if left:
            names, total = ", ".join(f"{name} {ready}" for name, ready in left.items()), sum(left.values())
            logger.warning("%d keys were left without a run: %s; the next start looks at all", total, names)
        return all(crew.finished for crew in parts.crews)

    def _fail(self, error: KopyliteError) -> None:
        """End the run in order, and with this error."""
        if self._fatal is None:
            self._fatal = error
        logger.error("%s; stopping", error)
        self.stop()

    async def _endless(self, name: str, serve: Callable[[], Awaitable[None]]) -> None:
        """Run something that may only end when it is cancelled, or after a stop."""
        await serve()
        if not self._stop.is_set():
            raise RuntimeError(f"{name} ended by itself")

    def _server_reached(self) -> None:
        for controller in self.controllers:
            controller.server_reached()

    async def _note_synced(self, parts: Assembly) -> None:
        began = self._clock.monotonic()
        for crew in parts.crews:
            await parts.namespaces.wait_settled(crew.wait_warm)
        if self.webhooks is not None and self.options.webhook_manage:
            await self.webhooks.wait_ready()
        objects = sum(now.objects for now in self.metrics.informer_statistics())
        logger.info("all caches are in sync: %d objects after %.1f s", objects, self._clock.monotonic() - began)
        if self.options.freeze_garbage:
            gc.freeze()
        self._synced = True
        self._settled.set()

    async def _note_namespaces(self, ground: Ground) -> None:
        """A namespace that does not exist can be watched, and stays as empty as a misspelt one."""
        client = LiveClient(Api(ground.transport, ground.resources))
        if missing := await missing_namespaces(client, self.options.scope.names):
            logger.warning(
                "there is no namespace %s: nothing can be reconciled there before it is created; is it spelt rightly? "
                "See %s",
                *(", ".join(missing), Trouble.NOTHING_HAPPENS),
            )

    def _plan_servers(self) -> list[HttpServer]:
        options, probes = self.options, {"/healthz": self._healthz, "/readyz": self._readyz}
        return servers_of(
            ("--metrics-address", options.metrics_address, {"/metrics": self._metrics}),
            ("--health-address", options.health_address, probes),
        )

    def _metrics(self, query: Query) -> Answer:
        body, content_type = self.metrics.exposition(query.accept)
        return Answer(200, body, content_type)

    async def _healthz(self, query: Query) -> Answer:
        alive = liveness(self._stall.check, self._informers(), self.controllers, self.electors)
        return probe("healthz", alive | await self._own_checks("health", query), query, self._ask)

    async def _readyz(self, query: Query) -> Answer:
        memberships = self._parts.memberships if self._parts else ()
        excused = self._parts.namespaces.excused() if self._parts else ()
        ready = readiness(self._state, self._informers(), self.controllers, self.electors, memberships, excused)
        if self.webhooks is not None:
            ready["webhooks"] = self.webhooks.check
        return probe("readyz", ready | await self._own_checks("ready", query), query, self._ask)

    async def _own_checks(self, endpoint: Endpoint, query: Query) -> dict[str, Check]:
        """What the Apps' own checks say, of those that the query asks for, while their Apps are at work."""
        found: dict[str, Check] = {}
        for lifespans, checks in zip(self._parts.lifespans, self._parts.checks, strict=True) if self._parts else ():
            if lifespans.began:
                names = checks.names(endpoint)
                wanted = [name for name in names if wants(query, name)]
                answers = await checks.ask(endpoint, wanted)
                found |= {name: partial(answers.get, name) for name in names}
        return found

    def _state(self) -> str | None:
        """Why it is not ready though every part may be; None: it is."""
        if self._stop.is_set():
            return "stopping"
        if self._parts is None:
            return "the API server was not reached yet"
        return next((f"{life.starting} goes on" for life in self._parts.lifespans if life.starting), None)

    def _informers(self) -> list[Informer]:
        return self._parts.cache.informers if self._parts else []
