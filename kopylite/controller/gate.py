"""Gate: holds keys back until the caches that their reconcile reads are in sync."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from kopylite.reconcile.request import Request

logger = logging.getLogger("kopylite.controller")

# For so long the good namespaces wait for the others, so that a usual start has everything in the cache.
HEAD_START = 2.0
SHOWN_NAMESPACES = 5


class Syncing(Protocol):
    """Something that is in sync at some time."""

    @property
    def namespace(self) -> str:
        """Which keys need it: those of this namespace, or ("") all."""

    @property
    def synced(self) -> bool: ...

    async def wait_synced(self) -> None: ...


class Gate:
    """Lets keys through as soon as what they need is in sync.

    Every key needs the sources that have no namespace (no worker begins before `wait_open` returns), and those of its
    own namespace; for the rest it waits 2 s from the start. So a namespace that cannot be watched stops no other, and
    joins by itself when it can. What is not in sync is never read from the cache, so a reconcile that looks into such
    a namespace is answered by the server. Once a namespace is open it stays open, until it is closed or dropped.

    Args:
        name: of the controller, for the log.
        sources: what there is to wait for; asked each time.
        admit: told each key and its priority, once it may pass.
    """

    def __init__(
        self, name: str, sources: Callable[[], Sequence[Syncing]], admit: Callable[[Request, int], None]
    ) -> None:
        self._name = name
        self._sources = sources
        self._admit = admit
        self._closed = {source.namespace for source in sources()} - {""}
        self._waiting: dict[str, dict[Request, int]] = {}
        # From `open_rest` on: the tasks that wait for the closed namespaces, and what ends each.
        self._tasks: TaskGroup | None = None
        self._waits: dict[str, anyio.CancelScope] = {}
        # Those that the log has told of.
        self._told: set[str] = set()

    def add(self, request: Request, priority: int) -> None:
        """Let a key pass, at once or later."""
        if request.namespace not in self._closed:
            self._admit(request, priority)
        else:
            waiting = self._waiting.setdefault(request.namespace, {})
            waiting[request] = max(priority, waiting.get(request, priority))

    def close(self, namespace: str) -> None:
        """Hold the keys of a namespace back that has sources from now on, until these are in sync."""
        self._closed.add(namespace)
        if self._tasks is not None:
            self._wait_for(namespace, self._tasks)

    def drop(self, namespace: str) -> None:
        """Forget a namespace, with the keys that wait for it."""
        self._closed.discard(namespace)
        self._told.discard(namespace)
        self._waiting.pop(namespace, None)
        if (wait := self._waits.pop(namespace, None)) is not None:
            wait.cancel()

    async def wait_open(self) -> None:
        """Wait until what all keys need is in sync."""
        with anyio.move_on_after(HEAD_START):
            await _all_synced(self._sources())
        await _all_synced([source for source in self._sources() if not source.namespace])
        late = {source.namespace for source in self._sources() if source.namespace and not source.synced}
        for namespace in self._closed - late:
            self._open(namespace)

    def open_rest(self, tasks: TaskGroup) -> None:
        """Open the other namespaces as they come in sync, by tasks of this group, also those that are closed later."""
        if self._closed:
            self._told = {*self._closed}
            shown, more = sorted(self._closed)[:SHOWN_NAMESPACES], len(self._closed) - SHOWN_NAMESPACES
            logger.warning(
                "controller %s does not work in namespace %s yet: not everything that it watches there is in sync",
                self._name,
                ", ".join(shown) + (f" and {more} more" if more > 0 else ""),
            )
        self._tasks = tasks
        for namespace in sorted(self._closed):
            self._wait_for(namespace, tasks)

    def _wait_for(self, namespace: str, tasks: TaskGroup) -> None:
        wait = self._waits[namespace] = anyio.CancelScope()
        tasks.start_soon(self._open_late, namespace, wait)

    async def _open_late(self, namespace: str, wait: anyio.CancelScope) -> None:
        with wait:
            await anyio.lowlevel.checkpoint()  # ends here if it was dropped before it began
            await _all_synced([source for source in self._sources() if source.namespace == namespace])
            del self._waits[namespace]
            level = logging.INFO if namespace in self._told else logging.DEBUG
            self._told.discard(namespace)
            logger.log(level, "controller %s begins in namespace %s", self._name, namespace)
            self._open(namespace)

    def _open(self, namespace: str) -> None:
        self._closed.discard(namespace)
        for request, priority in self._waiting.pop(namespace, {}).items():
            self._admit(request, priority)


async def _all_synced(sources: Sequence[Syncing]) -> None:
    while not all(source.synced for source in sources):
        for source in sources:
            await source.wait_synced()
