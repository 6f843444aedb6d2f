"""List-then-watch: a server with 2 objects that goes wrong in every way, and the driver's ten lines."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

from msgspec.structs import astuple

from kopylite.cache.record import BadFrame, Bookmark, Page, Record
from kopylite.cache.states import Listing, Probing, Streaming, Waiting, Watching
from kopylite.cache.steps import FetchPage, FindKind, OpenWatch, Probe, Replacement, Sleep, Verdict, WentBack
from kopylite.cache.watchstate import WatchState
from kopylite.errors import (
    ApiError,
    BadRequest,
    ConnectionFailed,
    Expired,
    InternalError,
    KindNotFound,
    StreamBroken,
    TooManyRequests,
)

# Of a request, or of the watch that is open.
ERRORS = {
    "broken": StreamBroken("reset by peer"),
    "refused": ConnectionFailed("refused"),
    "expired": Expired("too old"),
    "garbage": BadFrame("garbage"),
    "busy": TooManyRequests("slow down", retry_after=5.0),
    "internal": InternalError("oops"),
    "invalid": BadRequest("what?"),
}
# Of an open watch alone: clean ends at once and after a while, silence, an old event again, a bookmark.
OF_WATCH = ("ended", "ended late", "silent", "replay", "bookmark", "broken late")
# Runs without a fault after which the store has to be like the server, from wherever it was.
MOST = 14


class WatchWorld:
    """A server, the machine, and the store that it fills. Versions are places in the server's history."""

    def __init__(self, *, streaming: bool = True) -> None:
        self.version = 1
        self.objects = {"a": (1, 1)}  # name: (version, version of its creation)
        self.history: list[tuple[int, str, str, int]] = [(1, "ADDED", "a", 1)]
        self.compacted = 0
        self.streaming = streaming
        self.now = 0.0
        self.state = WatchState()
        self.live: int | None = None  # up to where the open watch has sent
        self.store: dict[str, int] = {}
        self.seen = 0  # the newest version that was handed out

    def actions(self) -> Iterable[Hashable]:
        yield from (("put", "a"), ("put", "b"))
        yield from (("delete", name) for name in self.objects)
        if self.compacted < self.version:
            yield "compact"
        yield "go"
        if isinstance(self.state.state, Waiting):
            return
        yield from ERRORS
        if self.live is not None:
            yield from OF_WATCH
        elif isinstance(self.state.state, Streaming):
            yield "half"  # the initial stream breaks between two objects

    def act(self, action: Hashable) -> None:
        match action:
            case ("put", name):
                self._change("MODIFIED" if name in self.objects else "ADDED", str(name))
            case ("delete", name):
                self._change("DELETED", str(name))
            case "compact":
                self.compacted = self.version
            case _:
                self._go(str(action))

    def _change(self, word: str, name: str) -> None:
        self.version += 1
        born = self.objects[name][1] if name in self.objects else self.version
        self.history.append((self.version, word, name, born))
        if word == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = self.version, born

    def _go(self, fault: str) -> None:
        try:
            if self.live is not None:
                self._read(fault)
            else:
                self._take(fault)
        except (ApiError, StreamBroken, ConnectionFailed, KindNotFound) as error:
            self.live = None
            self.state.failed(error, self.now, 0.5)

    def _take(self, fault: str) -> None:
        """What the machine wants next; it never sleeps for nothing, and never for ever."""
        state, step = self.state, self.state.next(0.5)
        if isinstance(step, Sleep):
            assert 0 < step.seconds <= 300
            self.now += step.seconds
            return
        if isinstance(step, OpenWatch):
            state.opening(step, self.now)
        if fault in ERRORS:
            raise ERRORS[fault]
        match step:
            case FindKind():
                state.found()
            case FetchPage(limit, token):
                self._list(limit, token)
            case Probe():
                state.probed(str(self.version), self.now)
            case OpenWatch():
                self._open(step, fault)

    def _list(self, limit: int, token: str) -> None:
        """A page of one object; the pages show the state of the moment, as of a server whose snapshot is gone."""
        names = sorted(name for name in self.objects if name > token)
        shown = names[:1] if limit else names
        more = shown[-1] if len(names) > len(shown) else ""
        page = Page([self._record(name) for name in shown], str(self.version), more)
        self._replace(self.state.listed(page))

    def _open(self, step: OpenWatch, fault: str) -> None:
        if step.initial and not self.streaming:
            raise BadRequest("sendInitialEvents is forbidden")
        if not step.initial and int(step.version) < self.compacted:
            raise Expired("too old")
        self.state.opened(self.now)
        if not step.initial:
            self.live = int(step.version)
            return
        for name in sorted(self.objects):
            assert self.state.received(("ADDED", self._record(name))) is Verdict.COLLECT
            if fault == "half":
                raise StreamBroken("in the middle")
        verdict = self.state.received(("BOOKMARK", Bookmark(str(self.version), True)))
        assert verdict is Verdict.REPLACE
        self._replace(self.state.snapshot())
        self.live = self.version

    def _read(self, fault: str) -> None:
        """What comes of the open watch: all that is new, and then what goes wrong."""
        assert self.live is not None
        state = self.state
        if fault == "silent":
            self.live, self.now = None, state.deadline()
            state.silent(self.now, 0.5)
            return
        self.now += {"ended": 0.5, "ended late": 70.0, "broken late": 7.0}.get(fault, 1.0)
        if fault == "replay":
            self._receive(*self.history[0])
        for change in self.history:
            if change[0] > self.live:
                self.live = change[0]
                self._receive(*change)
        if fault == "bookmark":
            self.live = self.version
            assert state.received(("BOOKMARK", Bookmark(str(self.version), False))) is Verdict.ADVANCE
        elif fault.startswith("ended"):
            self.live = None
            state.closed(self.now, 0.5)
        elif fault == "broken late":
            raise StreamBroken("a load balancer cuts idle connections")
        elif fault in ERRORS:
            raise ERRORS[fault]

    def _receive(self, version: int, word: str, name: str, born: int) -> None:
        record = Record("ns", name, f"u{born}", str(version), 1, None, (), (), None, b"{}")
        old = int(self.state.version)
        try:
            verdict = self.state.received((word, record))
        except WentBack:
            assert version < old, "a new event is taken for an old one"
            raise
        assert verdict is Verdict.APPLY
        assert version >= old, "an old event is handed out again"
        if word == "DELETED":
            self.store.pop(name, None)
        else:
            self.store[name] = version
        self.seen = max(self.seen, version)

    def _replace(self, snapshot: Replacement | None) -> None:
        if snapshot is not None:
            records: Mapping[str, Record] = snapshot.records.get("ns", {})
            self.store = {name: int(record.resource_version) for name, record in records.items()}
            # Nothing behind what was handed out before: a list asks for the newest state.
            assert int(snapshot.version) >= self.seen, "time goes back"
            self.seen = int(snapshot.version)

    def _record(self, name: str) -> Record:
        version, born = self.objects[name]
        return Record("ns", name, f"u{born}", str(version), 1, None, (), (), None, b"{}")

    def check(self) -> None:
        state = self.state.state
        if self.live is not None:
            assert isinstance(state, Watching)
            assert int(self.state.version) <= self.version

    def settle(self) -> None:
        """From here, when nothing goes wrong any more, the store becomes what the server holds, and stays watched."""
        world = self.copy()
        for _ in range(MOST):
            world._go("go")
            if world.live == world.version and world.state.problem(world.now + 6) is None:
                break
        held = {name: version for name, (version, _) in world.objects.items()}
        assert world.store == held, f"{world.store} is held, and the server has {held}"
        assert world.live == world.version

    def key(self) -> Hashable:
        state, memory = self.state.state, self.state.memory
        new = tuple((self.version - v, word, name) for v, word, name, _ in self.history if v > (self.live or 0))
        first = self.version - self.history[0][0] if self.live is not None else 0
        held = tuple(sorted((name, self.version - v) for name, v in self.store.items()))
        there = tuple(sorted((name, self.version - v) for name, (v, _) in self.objects.items()))
        live = None if self.live is None else self.version - self.live
        known = (
            *map(bool, (memory.has_state, memory.streaming, memory.bookmarks)),
            *(min(count, 3) for count in (memory.failures, memory.lists, memory.strikes, memory.broken_streams)),
        )
        sick = type(memory.problem.error) if memory.problem else None
        after = self.version - self.seen, self.version - self.compacted
        return (
            self._of_state(state),
            known,
            sick,
            memory.missing_since is None,
            new,
            first > 0,
            held,
            there,
            live,
            after,
        )

    def _of_state(self, state: Any) -> Hashable:
        match state:
            case Waiting(then=then):
                return "waiting", self._of_state(then)
            case Listing(whole, pages, token, version):
                read = tuple(
                    sorted((n, self.version - int(r.resource_version)) for n, r in pages.get("ns", {}).items())
                )
                return "listing", whole, read, token, version and self.version - int(version)
            case Watching(version, opened, progressed):
                age = -1.0 if opened is None else next(b for b in (1, 5, 60, 1e9) if self.now - opened < b)
                return "watching", self.version - int(version), age, progressed
            case Probing(version):
                return "probing", self.version - int(version)
        return type(state).__name__, *(astuple(state) if not isinstance(state, Streaming) else ())

    def copy(self) -> Self:
        twin = type(self)(streaming=self.streaming)
        twin.version, twin.objects, twin.history = self.version, dict(self.objects), list(self.history)
        twin.compacted, twin.now, twin.live = self.compacted, self.now, self.live
        twin.store, twin.seen = dict(self.store), self.seen
        twin.state.memory, twin.state.heard = self.state.memory, self.state.heard
        twin.state.state = _apart(self.state.state)
        return twin


def _apart(state: Any) -> Any:
    """What a list or an initial stream in progress changes in place, in a copy of its own."""
    match state:
        case Waiting(seconds, then):
            return Waiting(seconds, _apart(then))
        case Listing(whole, pages, token, version):
            return Listing(whole, {space: dict(records) for space, records in pages.items()}, token, version)
        case Streaming(opened, grew, collected):
            return Streaming(opened, grew, {space: dict(records) for space, records in collected.items()})
    return state
