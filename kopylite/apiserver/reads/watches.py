"""WatchStream: from a position in the history to a stream of encoded events, in the order of their versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial

from kopylite.apiserver.aside import aside, portions
from kopylite.apiserver.reads.lists import Matches, matcher, wait_for_version
from kopylite.apiserver.reads.views import View
from kopylite.apiserver.request.negotiation import Media
from kopylite.apiserver.request.options import ListOptions
from kopylite.apiserver.slices import Slices
from kopylite.apiserver.storage.history import (
    ADDED,
    DELETED,
    MODIFIED,
    Compacted,
    Outrun,
    StoredChange,
    StoredObject,
    Subscription,
)
from kopylite.apiserver.world import Call, World, shown_in
from kopylite.errors import Expired, InternalError

BOOKMARK_SECONDS = 60.0
# A last bookmark comes this long before the deadline, so that a reconnect does not start far back.
_LAST_BOOKMARK_SECONDS = 2.0
# --min-request-timeout: without timeoutSeconds a watch lives between once and twice that.
MIN_WATCH_SECONDS = 1800.0

# What a slow client may hold, in bytes, is this much more than what an event loop may be kept busy with.
_LIGHTER = 8


class WatchStream:
    """One watch request: events until the deadline, an error, or the client leaves."""

    def __init__(self, world: World, call: Call, media: Media, options: ListOptions) -> None:
        self._world = world
        self._call = call
        self._options = options
        self._media = media
        self._view = View(world, call.resource, media)
        self._matches = matcher(call, options)
        namespaced = call.resource.namespaced and call.target.namespace
        self._prefix = f"{call.target.namespace}/" if namespaced else ""
        lifetime = options.timeout or MIN_WATCH_SECONDS * (1 + world.clock.random())
        self._deadline = world.clock.monotonic() + lifetime
        self._sent = 0

    async def open(self) -> AsyncGenerator[bytes, None]:
        """Take the place in the history, now, and return the stream of encoded events from there.

        Raises:
            GatewayTimeout: the initial events are asked at a version that does not come.
        """
        if self._options.initial_events:
            await wait_for_version(self._world, self._options.version or 0)
        try:
            subscription, initial = self._begin()
        except Compacted as error:
            return self._expired(error.oldest)
        return self._chunks(subscription, initial)

    async def _expired(self, oldest: int) -> AsyncGenerator[bytes, None]:
        """The whole stream of a watch from before the history."""
        error = Expired(f"too old resource version: {self._options.version} ({oldest})")
        yield self._media.event("ERROR", error.to_status())

    async def _chunks(self, subscription: Subscription, initial: list[StoredObject]) -> AsyncGenerator[bytes, None]:
        # A client may leave at any chunk: closed here, an inner stream does not wait for the garbage collector.
        try:
            async with aclosing(self._first(initial)) as chunks:
                async for chunk in chunks:
                    yield chunk
            if self._options.initial_events and self._options.bookmarks:
                yield self._view.bookmark(self._sent, initial_events_end=True)
            async with aclosing(self._live(subscription)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _Ended:
            return
        except InternalError as error:  # of a conversion webhook
            yield self._media.event("ERROR", error.to_status())
        finally:
            subscription.close()

    def _begin(self) -> tuple[Subscription, list[StoredObject]]:
        """Where to start, and the objects to show first. Raises Compacted."""
        store, options = self._world.store, self._options
        version = options.version or 0
        collection = store.collection(self._call.resource.storage)
        from_now = options.initial_events or version == 0
        self._sent = store.version if from_now else version
        subscription = collection.subscribe(self._sent)
        if options.initial_events is False or not from_now:
            return subscription, []
        return subscription, list(collection.scan(self._prefix, "", store.version))

    async def _first(self, records: list[StoredObject]) -> AsyncGenerator[bytes, None]:
        """The events of the objects that are there at the beginning."""
        slices, resource = Slices(), self._call.resource
        await self._world.prepare(resource, records)
        if resource.conversion is not None:
            records = [shown_in(resource, record) for record in records]

        def frames(portion: list[StoredObject]) -> list[bytes]:
            return [self._view.event(ADDED, r) for r in portion if self._matches is None or self._matches(r)]

        for portion in portions(records, self._load):
            await slices.turn()
            made = await aside(partial(frames, portion), self._weight(portion))
            async with aclosing(self._pass(*made)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _live(self, subscription: Subscription) -> AsyncGenerator[bytes, None]:
        clock, resource, slices = self._world.clock, self._call.resource, Slices()
        next_bookmark = self._bookmark_time()
        while True:
            try:
                changes = subscription.take()
            except Outrun:
                return  # too slow: closed, and the client lists or watches anew
            if changes:
                for portion in portions(changes, lambda change: self._load(change.record)):
                    await slices.turn()
                    await self._world.prepare_changes(resource, portion)
                    # What a webhook has converted is at hand in this turn only.
                    size = 0 if resource.conversion else self._weight(change.record for change in portion)
                    made = await aside(partial(self._frames, portion), size)
                    async with aclosing(self._pass(*made)) as chunks:
                        async for chunk in chunks:
                            yield chunk
                    self._sent = max(self._sent, portion[-1].version)
                continue
            if subscription.closed or clock.monotonic() >= self._deadline:
                return
            if clock.monotonic() >= next_bookmark:
                # All changes up to now were sent or do not concern this watcher.
                self._sent = max(self._sent, self._world.store.version)
                yield self._view.bookmark(self._sent)
                next_bookmark = self._bookmark_time()
            try:
                async with asyncio.timeout_at(min(next_bookmark, self._deadline)):
                    await subscription.wait()
            except TimeoutError:
                continue

    def _weight(self, records: Iterable[StoredObject]) -> int:
        return sum(map(self._view.weight, records))

    def _load(self, record: StoredObject) -> int:
        """What a record counts in a portion: work, and memory that a slow client holds."""
        return max(self._view.weight(record), len(record.body) // _LIGHTER)

    def _bookmark_time(self) -> float:
        if not self._options.bookmarks:
            return self._deadline
        now = self._world.clock.monotonic()
        last = self._deadline - _LAST_BOOKMARK_SECONDS
        return min(now + BOOKMARK_SECONDS, last) if now < last else self._deadline

    def _frames(self, changes: list[StoredChange]) -> list[bytes]:
        frames = []
        for change in changes:
            if not change.record.key.startswith(self._prefix) or change.version <= self._sent:
                continue
            kind, record = _seen(change, self._matches)
            if record is not None:
                frames.append(self._view.change(kind, change, record))
        return frames

    async def _pass(self, *frames: bytes) -> AsyncGenerator[bytes, None]:
        """The frames as one chunk, unless hooks want to see each."""
        hooks = self._world.hooks.watch
        if not hooks:
            if frames:
                yield b"".join(frames)
            return
        for frame in frames:
            for hook in hooks:
                shown = await hook(self._call, frame)
                if shown is None:
                    raise _Ended
                frame = shown
            yield frame


class _Ended(Exception):
    """A hook has ended the stream."""


def _seen(change: StoredChange, matches: Matches | None) -> tuple[str, StoredObject | None]:
    """How a watcher with these selectors sees a change: the event's type and object; None: not at all."""
    if matches is None:
        return change.type, change.record
    before = change.previous is not None and matches(change.previous)
    if change.type == DELETED:
        return DELETED, change.record if before else None
    if matches(change.record):
        return MODIFIED if before else ADDED, change.record
    return DELETED, change.previous if before else None
