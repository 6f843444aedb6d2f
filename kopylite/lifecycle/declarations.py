"""LifecycleDeclarations: the decorators of an App for everything but its reconciles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from kopylite.boundary import name_of, show
from kopylite.errors import RegistrationError
from kopylite.lifecycle.spec import (
    CHECK_SECONDS,
    START_SECONDS,
    STOP_SECONDS,
    CheckSpec,
    Endpoint,
    LifecycleHook,
    LifePlan,
    TaskSpec,
)

if TYPE_CHECKING:
    from kopylite.reconcile.context import Context

HookT = TypeVar("HookT", bound=Callable[["Context"], Awaitable[None]])
LifespanT = TypeVar("LifespanT", bound=Callable[["Context"], AsyncIterator[Any] | AbstractAsyncContextManager[Any]])
CheckT = TypeVar("CheckT", bound=Callable[["Context"], Awaitable[str | bool | None] | str | bool | None])


class MetricsCollector(Protocol):
    """What prometheus_client calls a Collector: each of its metrics, and whatever has its `collect`."""

    def collect(self) -> Any: ...


CollectorT = TypeVar("CollectorT", bound=MetricsCollector)


class UserMetrics:
    """The collectors of an App: shown at /metrics while it runs, beside kopylite's own.

        BUILDS = app.metrics.register(Counter("myapp_builds", "Images built", ["result"], registry=None))

    With `registry=None` a metric of prometheus_client is in this place only, and not in the process's registry too.
    """

    def __init__(self, plan: LifePlan) -> None:
        self._plan = plan

    def register(self, collector: CollectorT) -> CollectorT:
        """Show a collector, and return it. A name that is taken is refused when a Manager is made of the App.

        Raises:
            RegistrationError: it is none, or was registered before.
        """
        if not callable(getattr(collector, "collect", None)) or isinstance(collector, type):
            raise RegistrationError(
                f"app.metrics.register takes a metric of prometheus_client, such as Counter('name', 'text', "
                f"registry=None), or another collector; {show(collector)} is none"
            )
        if any(collector is known for known in self._plan.collectors):
            raise RegistrationError(f"app.metrics: {show(collector)} was registered before")
        self._plan.collectors.append(collector)
        return collector


class LifecycleDeclarations:
    """The part of an App that is no controller. `ctx` is a Context without a request."""

    name: str

    def __init__(self) -> None:
        super().__init__()  # of the other declarations of an App
        self.life = LifePlan()
        self.metrics = UserMetrics(self.life)

    @overload
    def task(self, function: HookT, /) -> HookT: ...
    @overload
    def task(
        self, *, name: str | None = None, leader: bool = True, fatal: bool = False
    ) -> Callable[[HookT], HookT]: ...
    def task(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        leader: bool = True,
        fatal: bool = False,
    ) -> Any:
        """Declare the decorated `async def (ctx)` as a task that runs beside the reconciles. See TaskSpec.

        It begins with the controllers, and is cancelled at the end, after the last reconcile.

        Raises:
            RegistrationError: names what is declared wrongly, the rule, and the way out.
        """

        def register(function: HookT) -> HookT:
            chosen = name_of(function) if name is None else name
            spec = TaskSpec(name=chosen, function=function, leader=leader, fatal=fatal)
            self.life.require_new(self.name, tasks=[spec])
            self.life.tasks.append(spec)
            return function

        return register if function is None else register(function)

    @overload
    def on_start(self, function: HookT, /) -> HookT: ...
    @overload
    def on_start(self, *, timeout: float | None = START_SECONDS) -> Callable[[HookT], HookT]: ...
    def on_start(self, function: Any = None, *, timeout: float | None = START_SECONDS) -> Any:
        """Call the decorated `async def (ctx)` when the API server was reached, before anything is watched.

        If it fails, or takes longer than `timeout` seconds, nothing begins, and the run ends with an error
        that names it.

        Raises:
            RegistrationError: as for `task`.
        """

        def register(function: HookT) -> HookT:
            self.life.hooks.append(LifecycleHook(stage="on_start", function=function, timeout=timeout))
            return function

        return register if function is None else register(function)

    @overload
    def on_stop(self, function: HookT, /) -> HookT: ...
    @overload
    def on_stop(self, *, timeout: float = STOP_SECONDS) -> Callable[[HookT], HookT]: ...
    def on_stop(self, function: Any = None, *, timeout: float = STOP_SECONDS) -> Any:
        """Call the decorated `async def (ctx)` at the end, after the last reconcile; the client still works.

        At the end everything goes in reverse order of declaration, lifespans too. A failure is told of and hinders
        nothing; after `timeout` seconds it is cancelled.

        Raises:
            RegistrationError: as for `task`.
        """

        def register(function: HookT) -> HookT:
            self.life.hooks.append(LifecycleHook(stage="on_stop", function=function, stop_timeout=timeout))
            return function

        return register if function is None else register(function)

    @overload
    def lifespan(self, function: LifespanT, /) -> LifespanT: ...
    @overload
    def lifespan(
        self, *, timeout: float | None = START_SECONDS, stop_timeout: float = STOP_SECONDS
    ) -> Callable[[LifespanT], LifespanT]: ...
    def lifespan(
        self,
        function: Any = None,
        *,
        timeout: float | None = START_SECONDS,
        stop_timeout: float = STOP_SECONDS,
    ) -> Any:
        """Run the decorated async function, which yields once, around all work: on_start and on_stop in one.

        What it yields is shared under its class, as `ctx.state[State]`. It has a task of its own, so it may hold a
        task group; when that fails, the run ends in order, with an error. An @asynccontextmanager is as good.

        Args:
            timeout: seconds until it has yielded; None: any time.
            stop_timeout: seconds that it has after that, at the end.

        Raises:
            RegistrationError: as for `task`.
        """

        def register(function: LifespanT) -> LifespanT:
            spec = LifecycleHook(stage="lifespan", function=function, timeout=timeout, stop_timeout=stop_timeout)
            self.life.hooks.append(spec)
            return function

        return register if function is None else register(function)

    def health(self, name: str, *, timeout: float = CHECK_SECONDS) -> Callable[[CheckT], CheckT]:
        """Make the decorated function of a Context a check of /healthz: one that fails has the process restarted.

        It returns None or True while all is well, else what is wrong, and may raise. An async one must not block; a
        plain one is called in a thread. It is asked while the App works: not before the end of its start.

        Args:
            name: for `/healthz/NAME` and `/healthz?verbose`.
            timeout: seconds after which it counts as failed.

        Raises:
            RegistrationError: as for `task`.
        """
        return self._check("health", name, timeout)

    def ready(self, name: str, *, timeout: float = CHECK_SECONDS) -> Callable[[CheckT], CheckT]:
        """Make the decorated function a check of /readyz, which tells what works at the moment. See `health`."""
        return self._check("ready", name, timeout)

    def _check(self, endpoint: Endpoint, name: str, timeout: float) -> Callable[[CheckT], CheckT]:
        if callable(name):
            raise RegistrationError(f"@app.{endpoint} is used without a name. Write: @app.{endpoint}('database')")

        def register(function: CheckT) -> CheckT:
            spec = CheckSpec(endpoint=endpoint, name=name, function=function, timeout=timeout)
            self.life.require_new(self.name, checks=[spec])
            self.life.checks.append(spec)
            return function

        return register
