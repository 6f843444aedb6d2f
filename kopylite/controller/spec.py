"""ControllerSpec: what a controller is declared to be. Data only, checked when it is made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kopylite.errors import RegistrationError
from kopylite.objects import Kind
from kopylite.reconcile.request import Request, Result
from kopylite.workqueue.ratelimiters import RateLimit

if TYPE_CHECKING:
    from kopylite.reconcile.context import Context
    from kopylite.triggers import Predicate

Reconcile = Callable[["Context", Request], Awaitable[Result | None]]
"""The user's function: reads the present state of one object and takes the next step towards the desired one."""

MapFunction = Callable[[Any, "Context"], Awaitable[Iterable[Request]]]
"""Says whose reconcile a change of a watched object concerns. May fail: it is retried."""

# A reconcile that hangs holds its worker and its key; controller-runtime has no limit unless told.
DEFAULT_TIMEOUT = 300.0
DEFAULT_RATE_LIMIT = RateLimit()


@dataclass(frozen=True, slots=True)
class Watch:
    """One kind that a controller follows, besides its own. Made by `watch()`.

    Args:
        kind: a CustomResource class, a Kind, or a kubernetes_asyncio model class.
        map: whose Requests a change stands for. None: in `owns`, the controlling owner's; in `watches`, the
            Request with the object's own namespace and name.
        predicates: drops events before they are mapped. Never narrows what is cached.
        labels: a label selector, evaluated by the server: other objects are not cached either.
        namespace: only this namespace; None: those of the manager.
        metadata_only: cache and deliver only the metadata.
    """

    kind: Kind | type[Any]
    map: MapFunction | None = None
    predicates: Predicate | None = None
    labels: str = ""
    namespace: str | None = None
    metadata_only: bool = False


def watch(
    kind: Kind | type[Any],
    *,
    map: MapFunction | None = None,  # noqa: A002  (reads as what it is at the call)
    predicates: Predicate | None = None,
    labels: str | None = None,
    namespace: str | None = None,
    metadata_only: bool = False,
) -> Watch:
    """Declare one more kind that a reconciler follows: an entry of its `watches=` or `owns=`. See Watch.

    Raises:
        RegistrationError: `map` is not an `async def`.
    """
    if map is not None:
        require_async(map, "map function", "obj: Unstructured, ctx: Context", "list[Request]")
    return Watch(kind, map, predicates, labels or "", namespace, metadata_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSpec:
    """Everything that a Controller is built from.

    Args:
        name: unique in its manager; the `controller` label of metrics and logs.
        kind: what its Requests name.
        reconcile: the user's `async def (ctx, request) -> Result | None`.
        owns: kinds whose objects it creates; a change of one runs the object's controlling owner.
        watches: other kinds, each with a function that says whose run their change means.
        predicates: drops events of its own kind.
        labels: narrows its own kind by a label selector; see Watch.
        workers: how many reconciles run at the same time; None: the manager's default.
        timeout: seconds after which a run is cancelled and counts as an error; None: never. It is cancelled as
            anyio cancels: what its `finally` blocks await is cancelled too, unless they shield it.
        max_retries: give up a key after this many retries in a row, until its next event; None: never.
        rate_limit: how long a failed key waits.

    Raises:
        RegistrationError: a value is out of its range, or `reconcile` is not an `async def` of two arguments.
    """

    name: str
    kind: Kind | type[Any]
    reconcile: Reconcile
    owns: tuple[Watch, ...] = ()
    watches: tuple[Watch, ...] = ()
    predicates: Predicate | None = None
    labels: str = ""
    workers: int | None = None
    timeout: float | None = DEFAULT_TIMEOUT
    max_retries: int | None = None
    rate_limit: RateLimit = DEFAULT_RATE_LIMIT

    def __post_init__(self) -> None:
        if not self.name:
            raise RegistrationError("a controller needs a name: it is the label of its metrics and logs")
        require_async(self.reconcile, "reconcile", "ctx: Context, request: Request", "Result | None")
        if self.workers is not None and self.workers < 1:
            raise RegistrationError(f"controller {self.name!r}: workers must be at least 1, not {self.workers}")
        if self.timeout is not None and self.timeout <= 0:
            raise RegistrationError(
                f"controller {self.name!r}: timeout must be above 0, not {self.timeout}; None switches it off"
            )
        if self.max_retries is not None and self.max_retries < 0:
            raise RegistrationError(
                f"controller {self.name!r}: max_retries must not be negative ({self.max_retries}); None: no limit"
            )


def require_async(function: Callable[..., Any], what: str, arguments: str, returns: str) -> None:
    """Refuse a function that would block the event loop, or that cannot be called with two arguments.

    Raises:
        RegistrationError: with a message that shows the form it should have.
    """
    name = getattr(function, "__name__", type(function).__name__)
    form = f"\n\n    async def {name}({arguments}) -> {returns}:\n        ...\n"
    if inspect.isclass(function) or not callable(function):
        raise RegistrationError(f"{what} {name!r} is no function. Write:{form}")
    called = function if inspect.isroutine(function) or hasattr(function, "func") else type(function).__call__
    if inspect.isasyncgenfunction(called):
        raise RegistrationError(f"{what} {name!r} yields; it has to return its result. Write:{form}")
    if not inspect.iscoroutinefunction(called):
        raise RegistrationError(
            f"{what} {name!r} is a plain def: it would stop every other reconcile while it runs. Write:{form}\n"
            "and move blocking calls to a thread: `await run_in_thread(function, argument)`"
        )
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise RegistrationError(
            f"{what} {name!r} cannot be called with two arguments ({error}). Write:{form}"
        ) from None
