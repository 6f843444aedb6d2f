"""Memory: what kopf kept in the process for each object: its memo, its daemons, its tries. Lost with the process."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio

from kopylite.boundary import say
from kopylite.errors import TerminalError
from kopylite.migration.arguments import Memo, Views
from kopylite.objects import ObjectKey
from kopylite.reconcile import Context, Retry

# kopf's own default, between two tries of a daemon that failed.
BACKOFF = 60.0

OwnerKey = tuple[Any, ObjectKey]
"""The kind and key of an object."""

Work = Callable[[Context, Views, "Stopped"], Awaitable[Any]]

logger = logging.getLogger("kopylite.migration")


class Stopped:
    """kopf's `stopped`: true when a daemon is to end. `wait` sleeps, at most until then: awaited in a coroutine, and
    plainly called in a thread."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._told = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.reason: str | None = None

    def set(self, reason: str = "") -> None:
        """Called in the event loop."""
        self.reason = reason
        self._flag.set()
        self._told.set()

    def is_set(self) -> bool:
        return self._flag.is_set()

    def __bool__(self) -> bool:
        return self._flag.is_set()

    def wait(self, timeout: float | None = None) -> Any:
        """Whether it is to end, after at most so many seconds."""
        if threading.get_ident() == self._thread:
            return self._waited(timeout)
        return self._flag.wait(timeout)

    async def _waited(self, timeout: float | None) -> bool:
        with anyio.move_on_after(timeout):
            await self._told.wait()
        return self.is_set()


@dataclass(slots=True)
class Daemon:
    """One daemon of one object."""

    views: Views
    stopped: Stopped
    scope: anyio.CancelScope
    uid: str

    def stop(self, reason: str) -> None:
        """Say so to its flag, and cancel what awaits. A thread ends when it looks at the flag."""
        self.stopped.set(reason)
        self.scope.cancel()


@dataclass(slots=True)
class Tries:
    """How often one handler of one object has failed in a row, since when it is tried, and until when it waits."""

    failed: int = 0
    since: datetime | None = None
    until: datetime | None = None


@dataclass(slots=True)
class _Remembered:
    """What is kept of one object."""

    uid: str
    memo: Memo
    done: set[str] = field(default_factory=set)
    tries: dict[str, Tries] = field(default_factory=dict)


@dataclass(slots=True)
class ObjectMemory:
    """Of one run of an App.

    Attributes:
        common: the memo of the operator, of which each object's begins as a copy.
    """

    common: Memo = field(default_factory=Memo)
    _objects: dict[OwnerKey, _Remembered] = field(default_factory=dict)
    _daemons: dict[OwnerKey, dict[str, Daemon]] = field(default_factory=dict)
    _group: anyio.abc.TaskGroup | None = None
    _context: Any = None  # of the task that hosts the daemons
    _begun: anyio.Event = field(default_factory=anyio.Event)

    def memo(self, owner: OwnerKey, uid: str) -> Memo:
        """Of an object; of one that was made anew, a new one."""
        return self._of(owner, uid).memo

    def tries(self, owner: OwnerKey, uid: str, name: str) -> Tries:
        """Of one handler of an object."""
        return self._of(owner, uid).tries.setdefault(name, Tries())

    def done(self, owner: OwnerKey, uid: str) -> set[str]:
        """The handlers that have done what is done once for an object while this process works."""
        return self._of(owner, uid).done

    def _of(self, owner: OwnerKey, uid: str) -> _Remembered:
        known = self._objects.get(owner)
        if known is None or known.uid != uid:
            known = self._objects[owner] = _Remembered(uid, Memo(self.common))
        return known

    def forget(self, kind: Any, key: ObjectKey) -> None:
        """The object is gone: end its daemons, drop its memo."""
        self.stop((kind, key))
        self._objects.pop((kind, key), None)

    def stop(self, owner: OwnerKey, name: str | None = None) -> None:
        """End an object's daemons, or the one of a name."""
        for each, daemon in [*self._daemons.get(owner, {}).items()]:
            if name in (None, each):
                daemon.stop("the object is gone, or no longer fits")
                del self._daemons[owner][each]
        if not self._daemons.get(owner):
            self._daemons.pop(owner, None)

    async def follow(self, owner: OwnerKey, name: str, views: Views, work: Work, delay: float) -> None:
        """Begin a daemon, unless it is there; show it the object as it is now."""
        await self._begun.wait()
        uid = str(views.meta.uid)
        known = self._daemons.get(owner, {}).get(name)
        if known is not None and known.uid != uid:
            self.stop(owner, name)
            known = None
        if known is not None:
            known.views.show(views.body)
        elif self._group is not None:
            daemon = Daemon(views, Stopped(), anyio.CancelScope(), uid)
            self._daemons.setdefault(owner, {})[name] = daemon
            work_on = functools.partial(work, self._context, daemon.views, daemon.stopped)
            self._group.start_soon(_accompany, f"{name} of {owner[1]}", daemon, work_on, delay)

    async def host(self, ctx: Context) -> None:
        """Run the daemons for as long as this process works: the body of a task of the App."""
        async with anyio.create_task_group() as group:
            self._group, self._context = group, ctx
            self._begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                self._group, self._begun = None, anyio.Event()
                for owner in [*self._daemons]:
                    self.stop(owner)


async def _accompany(title: str, daemon: Daemon, work: Callable[[], Awaitable[Any]], delay: float) -> None:
    """Until it returns, or is stopped: a failure is tried again, as kopf does."""
    with daemon.scope:
        while not await daemon.stopped.wait(delay):
            try:
                await work()
                return
            except Retry as error:
                delay = error.result.delay
            except TerminalError as error:
                logger.error("daemon %s has ended for good: %s", title, error)
                return
            except Exception as error:
                delay = BACKOFF
                logger.exception("daemon %s failed, and begins again in %g s: %s", title, delay, say(error))


async def remember(ctx: Context) -> AsyncIterator[ObjectMemory]:
    """A lifespan of the App that gives it a ObjectMemory."""
    yield ObjectMemory()


async def host_daemons(ctx: Context) -> None:
    """A task of the App that runs its daemons."""
    await ctx.state[ObjectMemory].host(ctx)
