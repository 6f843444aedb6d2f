"""Reflector: carries out what a WatchState decides, against one collection of one server, for ever."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio
import anyio.lowlevel

from kopylite.boundary import say
from kopylite.cache.record import Record, RecordDecoder, WatchFrame
from kopylite.cache.steps import (
    FetchPage,
    FindKind,
    OpenWatch,
    OwnFault,
    Probe,
    Replacement,
    Silence,
    Sleep,
    Verdict,
    WatchStep,
    WentBack,
)
from kopylite.cache.watchstate import WatchState, is_older
from kopylite.client.codec import LineSplitter
from kopylite.client.listwatch import ListWatch
from kopylite.client.transport import ApiStream
from kopylite.clock import Clock
from kopylite.errors import ApiError, Expired, KindNotFound, KopyliteError, StreamBroken
from kopylite.observers import InformerObserver

logger = logging.getLogger("kopylite.cache")

# How often an open stream is checked for silence: the limits of WatchState are exceeded by this much at most.
SILENCE_CHECK: Final = 5.0

# How long a second watch is listened to for what the first one may have missed.
LISTEN: Final = 2.0
CHECK_LIMIT: Final = 40.0

Locate = Callable[[bool], Awaitable[ListWatch]]
"""Finds the collection of a kind; True: ask the server even if the answer is remembered. Raises KindNotFound."""


class Sink(Protocol):
    """Where the changes go: an Informer."""

    def wants(self, record: Record) -> bool:
        """Whether it is to be held at all."""

    def known(self, record: Record) -> Record:
        """The same state as it is already held, or else `record`."""

    def changed(self, word: str, record: Record) -> None:
        """One event, ADDED, MODIFIED or DELETED. It must not raise."""

    def advanced(self, version: str) -> None:
        """Every change up to this version has been handed over."""

    async def replace(self, snapshot: Replacement) -> None:
        """The whole state; it pauses in between to let other tasks run."""

    def failed(self) -> None:
        """A list or watch has failed; it is tried again."""


class Reflector:
    """List-then-watch of one collection into a sink.

    What the server sends can't end it: that is behind `read`. Any exception but the documented ones is therefore a
    fault of kopylite. It is told of as an error, with its traceback, and everything is listed again, with back-off: the
    other kinds go on, and readiness fails for this one after a minute. Only a fault of WatchState itself, which decides
    on retries, ends the process.

    Args:
        name: of the collection, for the log.
        state: decides.
        locate: finds the collection.
        decoder: of the collection's objects.
        sink: gets the changes, in order.
        clock: of time and jitter.
        observer: is told.
        is_news: whether nobody has told of an error lately that means the same.
    """

    def __init__(
        self,
        name: str,
        state: WatchState,
        locate: Locate,
        decoder: RecordDecoder,
        sink: Sink,
        clock: Clock,
        observer: InformerObserver,
        is_news: Callable[[Exception], bool] = lambda error: True,
    ) -> None:
        self._name = name
        self._state = state
        self._locate = locate
        self._decoder = decoder
        self._sink = sink
        self._clock = clock
        self._observer = observer
        self._is_news = is_news
        self._collection: ListWatch | None = None
        self._reading: anyio.CancelScope | None = None  # of the stream that is waited for, if any
        self._broken: Exception | None = None  # why `_reading` was cancelled, unless for plain silence
        self._reported: type[Exception] | None = None

    async def run(self) -> None:
        """Run until cancelled. Errors of the server and the network are never raised, only retried."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._break_silence)
            while True:
                step = self._state.next(self._clock.random())
                try:
                    await self._take(step)
                except (KopyliteError, OSError) as error:  # OSError: a credentials file can't be read
                    self._report(error)
                    self._state.failed(error, self._clock.monotonic(), self._clock.random())
                except Exception as error:
                    self._fail(error)

    async def _take(self, step: WatchStep) -> None:
        match step:
            case Sleep(seconds):
                await self._clock.sleep(seconds)
            case FindKind(again):
                await self._find_kind(again)
            case FetchPage(limit, continue_token):
                await self._list_page(limit, continue_token)
            case Probe():
                version = await self._server_version()
                self._state.probed(version, self._clock.monotonic(), self._clock.random())
            case OpenWatch():
                await self._watch(step)

    @property
    def _source(self) -> ListWatch:
        assert self._collection is not None, "WatchState finds the kind first"
        return self._collection

    async def _find_kind(self, again: bool) -> None:
        try:
            self._collection = await self._locate(again)
        except KindNotFound as error:
            self._report(error)
            gone = self._state.kind_missing(error, self._clock.monotonic(), self._clock.random())
            if gone is not None:
                await self._sink.replace(gone)
        else:
            self._state.found()

    async def _list_page(self, limit: int, continue_token: str) -> None:
        if not continue_token:
            self._observer.relisted()
        body = await self._source.list_page(limit=limit, continue_token=continue_token)
        page = self._decoder.page(body)
        page.records[:] = map(self._sink.known, filter(self._sink.wants, page.records))
        snapshot = self._state.listed(page)
        if snapshot is not None:
            await self._sink.replace(snapshot)
        await anyio.lowlevel.checkpoint()

    async def _watch(self, step: OpenWatch) -> None:
        """One stream, from opening to end."""
        state, clock = self._state, self._clock
        if step.initial:
            self._observer.relisted()
        state.opening(step, clock.monotonic())
        end: Callable[[float, float], Exception | None] = state.silent
        with anyio.CancelScope() as self._reading:
            try:
                async with self._source.watch(
                    resource_version=step.version,
                    timeout_seconds=step.timeout_seconds,
                    send_initial_events=step.initial,
                ) as stream:
                    state.opened(clock.monotonic())
                    await self._read(stream, self._reading, collecting=step.initial)
                end = state.closed
            finally:
                self._reading = None
        broken, self._broken = self._broken, None
        if broken is not None:
            raise broken
        if problem := end(clock.monotonic(), clock.random()):
            self._report(problem)

    async def _read(self, stream: ApiStream, scope: anyio.CancelScope, *, collecting: bool) -> None:
        """Apply the frames of a stream until it ends.

        Args:
            collecting: it begins with the whole state, most of which the sink may hold already.

        Raises:
            ApiError, TransportError: it ended in another way than cleanly.
        """
        state, sink, now = self._state, self._sink, self._clock.monotonic
        splitter, decode, received = LineSplitter(), self._decoder.frame, self._state.received
        async for chunk in stream.chunks():
            state.heard = now()
            for line in splitter.feed(chunk):
                frame = decode(line)
                if collecting and isinstance(frame[1], Record):
                    if not sink.wants(frame[1]):
                        continue
                    frame = frame[0], sink.known(frame[1])
                verdict = received(frame)
                if verdict is Verdict.REPLACE:
                    collecting = False
                    self._reading = None  # a silence that we make ourselves doesn't count
                    await sink.replace(state.snapshot())
                    self._reading = scope
                    state.heard = now()
                elif verdict is not Verdict.COLLECT:
                    self._hand_over(frame, verdict)
        if splitter.pending:
            raise StreamBroken("the stream ended in the middle of a line")

    def _hand_over(self, frame: WatchFrame, verdict: Verdict) -> None:
        word, content = frame
        if verdict is Verdict.APPLY and isinstance(content, Record):
            self._sink.changed(word, content)
        self._sink.advanced(self._state.version)
        self._observer.event(word.lower())

    async def _break_silence(self) -> None:
        """Cancel the open stream when its deadline has passed and it is dead."""
        while True:
            await self._clock.sleep(SILENCE_CHECK)
            stream = self._reading
            if stream is None or self._clock.monotonic() < self._state.deadline():
                continue
            if self._state.silence_is_death:
                stream.cancel()
                continue
            heard = self._state.heard
            missed: Exception | None = Silence("no bytes, and the server does not answer when it is asked")
            with anyio.move_on_after(CHECK_LIMIT):
                missed = await self._has_missed(self._state.version)
            if stream is self._reading and heard == self._state.heard:  # else it has ended or spoken meanwhile
                if missed is None:
                    self._state.heard = self._clock.monotonic()
                else:
                    self._broken = missed
                    stream.cancel()

    async def _has_missed(self, version: str) -> Exception | None:
        """Why an open watch that says nothing is dead; None if there was nothing to say since `version`.

        Other kinds move the server's version, too. So where it is another one, a second watch shows for a moment
        whether anything happened to this kind: the server sends at once what it has.
        """
        try:
            server = await self._server_version()
            if is_older(server, version):
                return WentBack(f"the server is at version {server}, after {version}")
            if server == version:
                return None
            async with self._source.watch(resource_version=version, timeout_seconds=1) as stream:
                with anyio.move_on_after(LISTEN):
                    splitter = LineSplitter()
                    async for chunk in stream.chunks():
                        for line in splitter.feed(chunk):
                            word, content = self._decoder.frame(line)
                            if isinstance(content, ApiError):
                                return content
                            if word != "BOOKMARK":
                                return Silence("the server has events that the open watch does not bring")
        except Exception as error:
            return error
        return None

    async def _server_version(self) -> str:
        """Where the server is now: the version of a list of one."""
        return self._decoder.page(await self._source.list_page(limit=1)).resource_version

    def _fail(self, error: Exception) -> None:
        """Go on after a fault of our own."""
        kind = type(error)
        self._observer.watch_failed(kind.__name__)
        self._sink.failed()
        news, self._reported = kind is not self._reported, kind
        text = "%s: this is a fault of kopylite, please report it: %s; everything is listed again"
        logger.log(logging.ERROR if news else logging.DEBUG, text, self._name, say(error), exc_info=error)
        fault = OwnFault(f"kopylite failed on it: {say(error)}")
        self._state.failed(fault, self._clock.monotonic(), self._clock.random())

    def _report(self, error: Exception) -> None:
        """Once for each kind of problem, until the stream has worked again: neither is a retry news, nor that the
        connection of a watch ends some day."""
        kind, now = type(error), self._clock.monotonic()
        self._observer.watch_failed(kind.__name__)
        self._sink.failed()
        if self._state.problem(now) is None:
            self._reported = None
        if kind is self._reported or self._state.is_routine(error, now):
            logger.debug("%s: %s", self._name, error)
            return
        self._reported = kind
        level = logging.INFO if isinstance(error, Expired) else logging.WARNING
        if not self._is_news(error):
            level = logging.DEBUG
        logger.log(level, "%s: %s; trying again", self._name, error)
