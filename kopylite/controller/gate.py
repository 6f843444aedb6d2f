"""Gate: holds keys back until the caches that their reconcile reads are in sync."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio

from kopylite.reconcile.request import Request

logger = logging.getLogger("kopylite.controller")

# For so long the good namespaces wait for the others, so that a usual start has everything in the cache.
HEAD_START = 2.0


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
    a namespace is answered by the server. Once a namespace is open it stays open.

    Args:
        name: of the controller, for the log.
        sources: what there is to wait for.
        admit: told each key and its priority, once it may pass.
    """

    def __init__(self, name: str, sources: Sequence[Syncing], admit: Callable[[Request, int], None]) -> None:
        self._name = name
        self._sources = sources
        self._admit = admit
        self._closed = {source.namespace for source in sources} - {""}
        self._waiting: dict[str, dict[Request, int]] = {}

    def add(self, request: Request, priority: int) -> None:
        """Let a key pass, at once or later."""
        if request.namespace not in self._closed:
            self._admit(request, priority)
        else:
            waiting = self._waiting.setdefault(request.namespace, {})
            waiting[request] = max(priority, waiting.get(request, priority))

    async def wait_open(self) -> None:
        """Wait until what all keys need is in sync."""
        with anyio.move_on_after(HEAD_START):
            await _all_synced(self._sources)
        await _all_synced([source for source in self._sources if not source.namespace])
        late = {source.namespace for source in self._sources if source.namespace and not source.synced}
        for namespace in self._closed - late:
            self._open(namespace)

    async def open_rest(self) -> None:
        """Open the other namespaces as they come in sync; returns when all have."""
        if not self._closed:
            return
        logger.warning(
            "controller %s does not work in namespace %s yet: not everything that it watches there is in sync",
            self._name,
            ", ".join(sorted(self._closed)),
        )
        async with anyio.create_task_group() as tasks:
            for namespace in sorted(self._closed):
                tasks.start_soon(self._open_late, namespace)

    async def _open_late(self, namespace: str) -> None:
        await _all_synced([source for source in self._sources if source.namespace == namespace])
        logger.info("controller %s begins in namespace %s", self._name, namespace)
        self._open(namespace)

    def _open(self, namespace: str) -> None:
        self._closed.discard(namespace)
        for request, priority in self._waiting.pop(namespace, {}).items():
            self._admit(request, priority)


async def _all_synced(sources: Sequence[Syncing]) -> None:
    while not all(source.synced for source in sources):
        for source in sources:
            await source.wait_synced()
