"""ControllerSpec: what a controller is declared to be. Data only, checked when it is made."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kopylite.cache import parse_label_selector
from kopylite.checks import require_count, require_flag, require_seconds, require_text, require_workers
from kopylite.client.selecting import SelectorLike, field_selector_text, label_selector_text
from kopylite.controller.timers import Timer
from kopylite.errors import RegistrationError, UsageError
from kopylite.objects import HasKey, Kind
from kopylite.reconcile.request import Request, Result
from kopylite.triggers import Predicate
from kopylite.workqueue.ratelimiters import RateLimit

if TYPE_CHECKING:
    from kopylite.reconcile.context import Context
    from kopylite.reconcile.synchronous import SyncReconcile

Reconcile = Callable[["Context", Request], Awaitable[Result | None]]
"""The user's function: reads the present state of one object and takes the next step towards the desired one."""

MapFunction = Callable[[Any, "Context"], Awaitable[Iterable[Request]]]
"""Says whose reconcile a change of a watched object concerns. May fail: it is retried."""

KeysFunction = Callable[["Context"], Awaitable[Iterable[HasKey]]]
"""Names the keys that a timer runs. May fail: then its next round tries again."""

ChannelFunction = Callable[["Context"], AsyncIterable[HasKey]]
"""Opens a stream of keys. May fail, also later: then it is called again after a pause."""

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
        labels: a label selector, evaluated by the server: other objects are not cached either. Reads of a kind that
            is cached in part only go to the server. Where somebody watches the kind whole, too (the app owns it, for
            one), reads come from that cache; if it is behind this watch's event, that is handed on a second time when
            it has caught up. To narrow by `predicates` saves the second cache.
        namespace: only this namespace; None: those of the manager.
        metadata_only: cache and deliver only the metadata.
        fields: a field selector, e.g. "spec.nodeName=n1"; as `labels`. The server says which fields it knows.
        any_owner: in `owns`, a change runs every owner of the kind, and not only the controlling one.

    Raises:
        RegistrationError: `predicates` is no Predicate, or `labels` no label selector.
    """

    kind: Kind | type[Any]
    map: MapFunction | None = None
    predicates: Predicate | None = None
    labels: str = ""
    namespace: str | None = None
    metadata_only: bool = False
    fields: str = ""
    any_owner: bool = False

    def __post_init__(self) -> None:
        where = f"watch({getattr(self.kind, '__name__', self.kind)})"
        _require_predicate(self.predicates, where, self.kind, metadata_only=self.metadata_only is True)
        _require_selector(self.labels, where)
        require_text(self.fields, f"{where}: fields")
        require_flag(self.metadata_only, f"{where}: metadata_only")
        require_flag(self.any_owner, f"{where}: any_owner")
        if self.any_owner and self.map is not None:
            raise RegistrationError(f"{where}: any_owner=True and map= both say whose run a change means; keep one")
        if self.namespace is not None:
            require_text(self.namespace, f"{where}: namespace")


def watch(
    kind: Kind | type[Any],
    *,
    map: MapFunction | None = None,  # noqa: A002  (reads as what it is at the call)
    predicates: Predicate | None = None,
    labels: SelectorLike = "",
    fields: SelectorLike = "",
    namespace: str | None = None,
    metadata_only: bool = False,
    any_owner: bool = False,
) -> Watch:
    """Declare one more kind that a reconciler follows: an entry of its `watches=` or `owns=`. See Watch.

    Raises:
        RegistrationError: `map` is not an `async def`, or see Watch.
    """
    if map is not None:
        require_async(map, "map function", "obj: Unstructured, ctx: Context", "list[Request]")
    where = f"watch({getattr(kind, '__name__', kind)})"
    return Watch(
        kind,
        map,
        predicates,
        label_selector_text(labels, f"{where}: labels", RegistrationError),
        namespace,
        metadata_only,
        field_selector_text(fields, f"{where}: fields", RegistrationError),
        any_owner,
    )


@dataclass(frozen=True, slots=True)
class Periodic:
    """Runs of some keys in every round of a timer. Made by `periodic()`.

    Args:
        keys: asked in each round, with a Context that has no request.
        seconds: between two rounds.
    """

    keys: KeysFunction
    seconds: float


def periodic(keys: KeysFunction, *, every: float | timedelta) -> Periodic:
    """Declare a timer: an entry of a reconciler's `sources=`. For what no event tells of.

    The rounds have low priority, and pauses that are up to 10 % shorter or longer than `every`; the first round
    comes after one pause. A single key that wants to be looked at again has `Result(requeue_after=...)`.

    Args:
        keys: `async def (ctx) -> Iterable[Request]`: whose run it is time for.
        every: seconds, or a timedelta.

    Raises:
        RegistrationError: `keys` is not an `async def`, or `every` is no time above 0.
    """
    require_async(keys, "keys function", "ctx: Context", "list[Request]")
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    require_seconds(seconds, f"periodic({_name_of(keys)}): every")
    return Periodic(keys, seconds)


@dataclass(frozen=True, slots=True)
class Channel:
    """Runs of the keys that a stream brings. Made by `channel()`.

    Args:
        open: opens the stream, with a Context that has no request.
    """

    open: ChannelFunction


def channel(open: ChannelFunction) -> Channel:  # noqa: A002  (reads as what it is)
    """Declare a stream of keys from outside of the cluster: an entry of a reconciler's `sources=`.

    A stream that raises is opened again after a pause; one that ends is over. What the outside says while no
    stream is open is lost, so let the first thing that a new stream brings be everything that may have changed.

    Args:
        open: an async generator `async def (ctx)` that yields Requests, or a function that returns one.

    Raises:
        RegistrationError: `open` is an `async def` that yields nothing, or takes other arguments.
    """
    name = _name_of(open)
    form = f"\n\n    async def {name}(ctx: Context) -> AsyncIterator[Request]:\n        yield ...\n"
    if not callable(open) or inspect.iscoroutinefunction(open):
        raise RegistrationError(f"channel {name!r} has to yield Requests. Write:{form}")
    _require_arguments(open, f"channel {name!r}", 1, form)
    return Channel(open)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSpec:
    """Everything that a Controller is built from.

    Args:
        name: unique in its manager; the `controller` label of metrics and logs.
        kind: what its Requests name.
        reconcile: the user's `async def (ctx, request) -> Result | None`, or with `threads` a plain `def`.
        owns: kinds whose objects it creates; a change of one runs the object's controlling owner.
        watches: other kinds, each with a function that says whose run their change means.
        sources: what else brings keys: `periodic(...)`, `channel(...)`.
        predicates: drops events of its own kind.
        labels: narrows its own kind by a label selector; see Watch.
        workers: how many reconciles run at the same time; None: the manager's default.
        threads: `reconcile` is a plain `def (ctx: SyncContext, request)`, which runs in so many threads, one a worker.
        timeout: seconds after which a run is cancelled and counts as an error; None: never. It is cancelled as
            anyio cancels: what its `finally` blocks await is cancelled too, unless they shield it.
        max_retries: give up a key after this many retries in a row, until its next event; None: never.
        rate_limit: how long a failed key waits.
        failure_events: publish an Event about an object when its reconcile raised a TerminalError, or was given up
            after `max_retries`: one for each cause, with a count; of many objects the first 100, then one a second.
        paused_condition: keep a condition `Paused` in the status of objects that are, or were, paused by the annotation
            `kopylite.dev/paused`. Their status has to have conditions.
        leader: False: with leader election, it works in every process all the same, also beside others of its kind.
        timer: `reconcile` runs for each object of its kind by this schedule, and events do not run it.

    Raises:
        RegistrationError: a value is out of its range, or `reconcile` is no function of two arguments, or not of
            the kind that it has to be.
    """

    name: str
    kind: Kind | type[Any]
    reconcile: Reconcile | SyncReconcile
    owns: tuple[Watch, ...] = ()
    watches: tuple[Watch, ...] = ()
    sources: Sequence[Periodic | Channel] = ()
    predicates: Predicate | None = None
    labels: SelectorLike = ""
    workers: int | None = None
    threads: int | None = None
    timeout: float | None = DEFAULT_TIMEOUT
    max_retries: int | None = None
    rate_limit: RateLimit = DEFAULT_RATE_LIMIT
    failure_events: bool = True
    paused_condition: bool = False
    leader: bool = True
    timer: Timer | None = None

    def __post_init__(self) -> None:
        require_text(self.name, "name of a controller")
        if not self.name:
            raise RegistrationError("a controller needs a name: it is the label of its metrics and logs")
        where = f"controller {self.name!r}"
        if self.threads is None:
            require_async(self.reconcile, "reconcile", "ctx: Context, request: Request", "Result | None")
        else:
            require_workers(self.threads, f"{where}: threads")
            _require_plain(self.reconcile, where)
            if self.workers not in (None, self.threads):
                raise RegistrationError(f"{where}: give threads or workers, not both: each thread is a worker")
            object.__setattr__(self, "workers", self.threads)
        _require_predicate(self.predicates, where, self.kind)
        _require_selector(self.labels, where)
        if self.workers is not None:
            require_workers(self.workers, f"{where}: workers")
        if self.timeout is not None:
            require_seconds(self.timeout, f"{where}: timeout (None: no limit)")
        if self.max_retries is not None:
            require_count(self.max_retries, f"{where}: max_retries (None: no limit)")
        require_flag(self.failure_events, f"{where}: failure_events")
        require_flag(self.paused_condition, f"{where}: paused_condition")
        require_flag(self.leader, f"{where}: leader")
        if not isinstance(self.rate_limit, RateLimit):
            raise RegistrationError(f"{where}: rate_limit is a RateLimit(...), not {self.rate_limit!r}")


def require_async(function: Callable[..., Any], what: str, arguments: str, returns: str) -> None:
    """Refuse a function that would block the event loop, or that does not take these arguments.

    Raises:
        RegistrationError: with a message that shows the form it should have.
    """
    name = _name_of(function)
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
            + ("; or let all of it run in threads: @app.reconciler(..., threads=8)" if what == "reconcile" else "")
        )
    _require_arguments(function, f"{what} {name!r}", len(arguments.split(", ")), form)


def _require_plain(function: Callable[..., Any], where: str) -> None:
    """Refuse a function that threads cannot run.

    Raises:
        RegistrationError: with a message that shows the form it should have.
    """
    name = _name_of(function)
    form = f"\n\n    def {name}(ctx: SyncContext, request: Request) -> Result | None:\n        ...\n"
    if inspect.isclass(function) or not callable(function):
        raise RegistrationError(f"{where}: reconcile {name!r} is no function. Write:{form}")
    called = function if inspect.isroutine(function) or hasattr(function, "func") else type(function).__call__
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called) or inspect.isgeneratorfunction(called):
        raise RegistrationError(
            f"{where}: threads= is for a reconcile that is a plain def, and {name!r} is none. Leave threads out, "
            f"workers= says how many run at a time; or write:{form}"
        )
    _require_arguments(function, f"reconcile {name!r}", 2, form)


def _require_arguments(function: Callable[..., Any], what: str, count: int, form: str) -> None:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError as error:
        number = ("one argument", "two arguments")[count - 1]
        raise RegistrationError(f"{what} cannot be called with {number} ({error}). Write:{form}") from None


def _require_predicate(predicates: object, where: str, kind: Kind | type[Any], *, metadata_only: bool = False) -> None:
    """Refuse what a newcomer may take for predicates (a list of them, a function), and one that does not fit the kind.

    Raises:
        RegistrationError: it is neither a Predicate nor None, or looks at a field that the kind does not have.
    """
    if predicates is None:
        return
    if isinstance(predicates, Predicate):
        try:
            predicates.bound_to(kind, metadata_only=metadata_only)
        except UsageError as error:
            raise RegistrationError(f"{where}: {error}") from None
        return
    if callable(predicates):
        way_out = f"wrap the function: predicates=when({_name_of(predicates)})"
    else:
        way_out = "combine several with & and |: predicates=generation_changed | labels_changed"
    raise RegistrationError(f"{where}: predicates is one Predicate, not {type(predicates).__name__}; {way_out}")


def _require_selector(labels: SelectorLike, where: str) -> None:
    try:
        parse_label_selector(label_selector_text(labels, f"{where}: labels", RegistrationError))
    except RegistrationError:
        raise
    except UsageError as error:
        raise RegistrationError(f"{where}: {error}; write labels='app=web' or labels='tier in (a, b)'") from None


def _name_of(function: object) -> str:
    """The name of a function for messages that show code; a lambda has none that could stand there."""
    name = str(getattr(function, "__name__", type(function).__name__))
    return name if name.isidentifier() else "function"
