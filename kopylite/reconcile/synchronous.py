"""Reconciles that are a plain `def`: each run in a thread, with a client that waits for its answers."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kopylite.boundary import name_of
from kopylite.client.synchronous import SyncClient
from kopylite.reconcile.context import Context, ReconcileLogger
from kopylite.reconcile.finalizers import begin_finalize
from kopylite.reconcile.request import Request, Result
from kopylite.reconcile.state import SharedState
from kopylite.reconcile.threads import Calls, Threads

if TYPE_CHECKING:
    from kopylite.reconcile.recorder import Severity

P = ParamSpec("P")
T = TypeVar("T")


class SyncContext:
    """What one run of a synchronous reconcile has at hand: as Context, for the thread of the run alone.

    When the run is cancelled (timeout, end of the grace period), its next use of the client raises CancelledError, and
    so does each one after it. That is no Exception, so `except Exception` lets it through.

    Attributes:
        client: the Client's verbs, without `await`.
        request: namespace and name of the object to reconcile.
        reasons: why this run happens, for logs alone.
    """

    __slots__ = ("_calls", "_context", "client", "reasons", "request")

    def __init__(self, context: Context, calls: Calls) -> None:
        self._context = context
        self._calls = calls
        self.client = SyncClient(context.client, calls)
        self.request = context.request
        self.reasons = context.reasons

    def __repr__(self) -> str:
        return repr(self._context)

    @property
    def controller(self) -> str:
        """The name of the controller whose run this is."""
        return self._context.controller

    @property
    def shard(self) -> int | None:
        """The number of the shard, from 0 on, that this run is of; None: there are no shards."""
        return self._context.shard

    @property
    def reconcile_id(self) -> str:
        """A random UUID, the same for the whole run."""
        return self._context.reconcile_id

    @property
    def state(self) -> SharedState:
        """What all parts of the App share, by its class: `ctx.state[Pool]`. It is the same for all threads."""
        return self._context.state

    @property
    def log(self) -> ReconcileLogger:
        """A logger whose lines carry controller, namespace, name, reconcile_id and reasons."""
        return self._context.log

    def now(self) -> datetime:
        """The wall clock, aware, in UTC; in tests, the clock of the test."""
        return self._context.now()

    def event(
        self,
        regarding: Any,
        reason: str,
        note: str,
        *,
        type: Severity = "Normal",  # noqa: A002  (the field's name)
        action: str = "Reconcile",
        related: Any = None,
    ) -> None:
        """Publish an Event about an object, for people to read with kubectl. See EventRecorder.event()."""

        async def publish() -> None:
            self._context.event(regarding, reason, note, type=type, action=action, related=related)

        self.call(publish)

    def finalize(
        self,
        target: Any,
        name: str,
        cleanup: Callable[[SyncContext, Any], object],
        *,
        replaces: Sequence[str] = (),
    ) -> bool:
        """Keep a finalizer on a living object; clean up and release one that is being deleted.

        As `finalize(ctx, target, name, cleanup)` of asynchronous reconciles, with a plain function as `cleanup`.
        """
        step = self.call(begin_finalize, self._context, target, name, replaces)
        if step.names:
            cleanup(self, step.obj)
            self.client.remove_finalizer(step.obj, *step.names)
        return step.going

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await an async function in the event loop, as part of this run, and return what it returns."""
        return self._calls.call(function, *args, **kwargs)


SyncReconcile = Callable[[SyncContext, Request], Result | None]
"""As Reconcile, in a thread."""


def in_threads(function: SyncReconcile, threads: Threads) -> Callable[[Context, Request], Awaitable[Result | None]]:
    """A reconcile that calls a plain function in a thread."""

    @functools.wraps(function, updated=())
    async def reconcile(ctx: Context, request: Request) -> Result | None:
        calls = Calls()
        run = functools.partial(function, SyncContext(ctx, calls), request)
        return await threads.run(run, name_of(function), owner=ctx, calls=calls)

    return reconcile
