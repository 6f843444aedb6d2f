"""What an App is declared to do besides its reconciles. Data only, checked when it is made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from kopylite.boundary import name_of
from kopylite.checks import require_flag, require_seconds, require_text
from kopylite.controller.spec import require_async
from kopylite.errors import RegistrationError

if TYPE_CHECKING:
    from kopylite.reconcile.context import Context

HookFunction = Callable[["Context"], Awaitable[None]]
"""The function of a task, an on_start or an on_stop."""

CheckFunction = Callable[["Context"], "Awaitable[str | bool | None] | str | bool | None"]
"""None or True: all is well; a text, or False: what is wrong."""

Stage = Literal["on_start", "on_stop", "lifespan"]
Endpoint = Literal["health", "ready"]

START_SECONDS = 60.0
STOP_SECONDS = 10.0
# A kubelet waits for a probe so long, unless it is told.
CHECK_SECONDS = 1.0

# It becomes a part of a URL, and of a line of /healthz?verbose.
_CHECK_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
# The checks of kopylite itself have names that begin so.
RESERVED = ("event-loop", "running", "watch-", "workers-", "lease-", "informer-", "controller-", "shard-", "shards-")


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A function that runs beside the reconciles.

    Args:
        name: unique in its App; for logs and metrics.
        function: `async def (ctx)`. When it returns, it is done; when it raises, see `fatal`.
        leader: with leader election, it runs in the leader only, and is cancelled when the term ends.
        fatal: a failure ends the process, in order and with an error. Else it is begun again after 1 s, doubling to
            60 s; a run of more than 60 s begins the doubling anew.

    Raises:
        RegistrationError: a value is none of these.
    """

    name: str
    function: HookFunction
    leader: bool = True
    fatal: bool = False

    def __post_init__(self) -> None:
        require_async(self.function, "task", "ctx: Context", "None")
        require_text(self.name, "name of a task")
        if not self.name:
            raise RegistrationError("a task needs a name: it is the label of its metrics and logs")
        require_flag(self.leader, f"task {self.name!r}: leader")
        require_flag(self.fatal, f"task {self.name!r}: fatal")


class LifecycleHook(msgspec.Struct, frozen=True, kw_only=True):
    """A function that is called at the start, at the end, or (a lifespan) both.

    Args:
        stage: which of them.
        function: `async def (ctx)`; of a lifespan, one that yields, or returns an async context manager.
        timeout: seconds that the start may take; None: any time.
        stop_timeout: seconds that the end may take before it is cancelled.

    Raises:
        RegistrationError: a value is none of these.
    """

    stage: Stage
    function: Callable[[Context], Any]
    timeout: float | None = START_SECONDS
    stop_timeout: float = STOP_SECONDS

    def __post_init__(self) -> None:
        if self.stage == "lifespan":
            _require_lifespan(self.function)
        else:
            require_async(self.function, self.stage, "ctx: Context", "None")
        if self.timeout is not None:
            require_seconds(self.timeout, f"{self}: timeout (None: no limit)")
        require_seconds(self.stop_timeout, f"{self}: {'stop_' if self.stage == 'lifespan' else ''}timeout")

    def __str__(self) -> str:
        return f"{self.stage} {name_of(self.function)!r}"


class CheckSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A check behind /healthz ("health") or /readyz ("ready").

    Args:
        name: unique at its endpoint: `/healthz/NAME`.
        function: of a Context, async or plain; a plain one is called in a thread.
        timeout: seconds after which it counts as failed.

    Raises:
        RegistrationError: a value is none of these.
    """

    endpoint: Endpoint
    name: str
    function: CheckFunction
    timeout: float = CHECK_SECONDS

    def __post_init__(self) -> None:
        where = f"@app.{self.endpoint}({self.name!r})"
        if not isinstance(self.name, str) or not _CHECK_NAME.fullmatch(self.name):
            raise RegistrationError(
                f"{where}: a check is named by up to 63 letters, digits, and inner dashes, dots and underscores, as in "
                f"@app.{self.endpoint}('database')"
            )
        if self.name.startswith(RESERVED):
            raise RegistrationError(f"{where}: kopylite has checks of such names itself; name it after what it checks")
        require_seconds(self.timeout, f"{where}: timeout")
        form = f"\n\n    {where}\n    async def check(ctx: Context) -> str | None:\n        return None  # well\n"
        if inspect.isclass(self.function) or not callable(self.function):
            raise RegistrationError(f"{where} is for a function. Write:{form}")
        _require_one_argument(self.function, where, form)


class LifePlan(msgspec.Struct):
    """All that an App has besides its controllers, in the order of declaration."""

    tasks: list[TaskSpec] = msgspec.field(default_factory=list)
    hooks: list[LifecycleHook] = msgspec.field(default_factory=list)
    checks: list[CheckSpec] = msgspec.field(default_factory=list)
    collectors: list[Any] = msgspec.field(default_factory=list)

    def require_new(self, app: str, tasks: Iterable[TaskSpec] = (), checks: Iterable[CheckSpec] = ()) -> None:
        """Refuse names that are taken.

        Raises:
            RegistrationError: one is.
        """
        for task in tasks:
            if any(task.name == known.name for known in self.tasks):
                raise RegistrationError(
                    f"app {app!r} has a task {task.name!r} already: names are the labels of metrics and logs, so they "
                    f"are unique. Give one of them another: @app.task(name='{task.name}-2')"
                )
        for check in checks:
            if any((check.endpoint, check.name) == (known.endpoint, known.name) for known in self.checks):
                raise RegistrationError(
                    f"app {app!r} has a check {check.name!r} already: probes tell them apart by their names. Give one "
                    f"of them another: @app.{check.endpoint}('{check.name}-2')"
                )

    def include(self, app: str, other: LifePlan) -> None:
        """Take over what `other` has. Collectors that both have stay one.

        Raises:
            RegistrationError: both have a task or a check of one name. Then nothing is taken over.
        """
        self.require_new(app, other.tasks, other.checks)
        self.tasks += other.tasks
        self.hooks += other.hooks
        self.checks += other.checks
        self.collectors += [new for new in other.collectors if not any(new is known for known in self.collectors)]


def _require_lifespan(function: Callable[..., Any]) -> None:
    name = name_of(function)
    form = (
        f"\n\n    @app.lifespan\n    async def {name}(ctx: Context) -> AsyncIterator[State]:\n"
        "        async with open_pool() as pool:\n            yield State(pool)\n"
    )
    if inspect.isclass(function) or not callable(function):
        raise RegistrationError(f"lifespan {name!r} is no function. Write:{form}")
    plain = inspect.unwrap(function)
    if not inspect.isasyncgenfunction(plain) and (
        inspect.iscoroutinefunction(plain) or inspect.isgeneratorfunction(plain)
    ):
        raise RegistrationError(f"lifespan {name!r} has to be an async function that yields once. Write:{form}")
    _require_one_argument(function, f"lifespan {name!r}", form)


def _require_one_argument(function: Callable[..., Any], what: str, form: str) -> None:
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise RegistrationError(f"{what} cannot be called with one argument ({error}). Write:{form}") from None
