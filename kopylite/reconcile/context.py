"""Context: what a running reconcile can use, and what its log lines carry."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import anyio
import anyio.to_thread
import msgspec

from kopylite.boundary import name_of
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import Forbidden, ForgottenAwait
from kopylite.objects import Kind, ObjectKey, Shard
from kopylite.reconcile.chains import ChainLink, Version
from kopylite.reconcile.request import Request
from kopylite.reconcile.state import SharedState
from kopylite.reconcile.threads import THREADS

if TYPE_CHECKING:
    from kopylite.client import Client
    from kopylite.reconcile.recorder import EventRecorder, Severity

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("kopylite.reconcile")

RUNNING: ContextVar[Context | None] = ContextVar("kopylite_running", default=None)
"""The Context of the reconcile that runs in the present task; also seen by tasks that it starts."""


class Environment(msgspec.Struct, frozen=True):
    """What all runs of one controller share.

    Args:
        controller: its name.
        client: reads from the cache, writes to the server.
        recorder: publishes Events about objects; None: there are none.
        logger: where `ctx.log` writes.
        clock: source of reconcile ids.
        on_forbidden: told of each run that failed because the API server refused something.
        on_call: told of each call of a map, periodic or channel function: its kind, its name, and how it ended.
        on_run: told of each run that ended: what it was in a chain of runs (None: it wrote nothing), and the time.
        writer: the run that wrote a state of an object, if it was one of this process.
        kind: whose objects its requests name.
        shard: of which these objects are; None: there are no shards.
        state: what all parts of the App share.
    """

    controller: str
    client: Client
    recorder: EventRecorder | None = None
    logger: logging.Logger = logger
    clock: Clock = SYSTEM_CLOCK
    on_forbidden: Callable[[Forbidden], None] = lambda error: None
    on_call: Callable[[str, str, str], None] = lambda what, name, result: None
    on_run: Callable[[ChainLink | None, float], None] = lambda step, now: None
    writer: Callable[[Version], ChainLink | None] = lambda to: None
    kind: Kind | None = None
    shard: Shard | None = None
    state: SharedState = msgspec.field(default_factory=SharedState)


class ReconcileLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds the fields of its run to every line, as `record.fields` (`name` itself is taken by logging)."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = kwargs.get("extra") or {}
        kwargs["extra"] = {**extra, "fields": {**(self.extra or {}), **extra.get("fields", {})}}
        return msg, kwargs


class Context:
    """What one run of a reconcile has at hand. Lives as long as the run; keep nothing from it.

    Making one is cheap: the logger and the id are made when they are asked for.

    Attributes:
        client: reads from the cache where the app watches the kind, else from the server; writes to the server.
            `client.live` always asks the server.
        request: namespace and name of the object to reconcile.
        reasons: why this run happens, e.g. "Deployment changed", merged over all events since the last run. For
            logs and diagnosis only: never decide by it, since after a restart the reason is always the same.
        forgotten: async functions that the run called without `await`, with their lines: they make it fail.
        causes, priority: the states that caused this run, where nothing else did, and how urgent it is; for kopylite.
        step: what kopylite knows of this run's writes; None: there were none.
    """

    __slots__ = (
        "_environment", "_id", "_log", "causes", "client", "forgotten", "priority", "reasons", "request", "step",
    )  # fmt: skip

    def __init__(
        self,
        environment: Environment,
        request: Request,
        reasons: tuple[str, ...] = (),
        causes: tuple[Version, ...] = (),
        priority: int = 0,
    ) -> None:
        self.client = environment.client
        self.causes = causes
        self.priority = priority
        self.step: ChainLink | None = None
        self.request = request
        self.reasons = reasons
        self.forgotten: list[str] = []
        self._environment = environment
        self._id = ""
        self._log: ReconcileLogger | None = None

    def __repr__(self) -> str:
        about = f"{self.controller} {self.request}" if self.request.name else self.controller
        return f"<{type(self).__name__} of {about}: {', '.join(self.reasons) or 'no reasons'}>"

    @property
    def controller(self) -> str:
        """The name of the controller whose run this is."""
        return self._environment.controller

    @property
    def shard(self) -> int | None:
        """The number of the shard, from 0 on, that this run is of; None: there are no shards."""
        return None if self._environment.shard is None else self._environment.shard.index

    def is_about(self, kind: Kind, key: ObjectKey) -> bool:
        """Whether an object is the one that this run reconciles."""
        own = self._environment.kind
        return own is not None and own.group_kind == kind.group_kind and key == self.request

    @property
    def reconcile_id(self) -> str:
        """A random UUID, the same for the whole run."""
        if not self._id:
            self._id = self._environment.clock.uuid()
        return self._id

    @property
    def state(self) -> SharedState:
        """What all parts of the App share, by its class: `ctx.state[Pool]`."""
        return self._environment.state

    @property
    def log(self) -> ReconcileLogger:
        """A logger whose lines carry controller, namespace, name, reconcile_id and reasons."""
        if self._log is None:
            self._log = ReconcileLogger(self._environment.logger, self.fields())
        return self._log

    def now(self) -> datetime:
        """The wall clock, aware, in UTC; in tests, the clock of the test."""
        return self._environment.clock.now()

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
        recorder = self._environment.recorder
        if recorder is not None:
            recorder.event(regarding, reason, note, type=type, action=action, related=related)

    def fields(self) -> dict[str, object]:
        """What the log lines of this run carry."""
        return {
            "controller": self._environment.controller,
            "namespace": self.request.namespace,
            "name": self.request.name,
            "reconcile_id": self.reconcile_id,
            "reasons": self.reasons,
        }


def running_fields() -> Mapping[str, object]:
    """The fields of the reconcile that runs in the present task; empty outside of one. For log formatters."""
    context = RUNNING.get()
    return {} if context is None else context.fields()


async def in_run(context: Context, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of the user that is no reconcile, with its log lines and forgotten awaits known as its own.

    Raises:
        ForgottenAwait: it called an async function without `await`.
    """
    RUNNING.set(context)  # in a context of its own, which ends with the call: see Guard
    result = await function(*args, **kwargs)
    if context.forgotten:
        raise ForgottenAwait("; ".join(context.forgotten))
    return result


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread, so that the other reconciles go on; up to 40 functions at a time.

    A thread cannot be stopped. A run that passes its timeout is cancelled as soon as the function has returned, here,
    and the log says so at the timeout: a key whose thread is still at work never runs a second time. Give the function
    a limit of its own. At the end of the grace period nobody waits for it: the process ends.
    """
    threads, call = THREADS.get(), partial(function, *args, **kwargs)
    if threads is None:
        return await anyio.to_thread.run_sync(call)
    async with anyio.to_thread.current_default_thread_limiter():
        return await threads.run(call, name_of(function), owner=RUNNING.get())
