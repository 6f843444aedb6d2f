"""WatchState: list-then-watch as a state machine. Bytes and time go in, decisions come out.

A State (states.py) carries its own data; transitions.py says which one follows; this holds the present one.

Rules of this file: it never awaits, and reads no clock; `now` and `chance` (a random number in [0, 1)) are
arguments. The driver (reflector.py) asks `next()` what to do, does it, and tells what came of it:

    next() says      the driver does                       and then calls
    FindKind         ask discovery for the kind            found, kind_missing or failed
    ListPage         GET one page                          listed or failed
    Probe            GET a list of one, for its version    probed or failed
    OpenWatch        open the stream and read it           opening, opened, received...; closed, silent or failed
    Sleep            wait                                  (nothing)

How a version is judged:
- Lists and streamed initial states are asked for without a version, which means "as new as any": version "0"
  could show a state older than one that this operator has acted on before a restart.
- The version moves forward with every event and bookmark. One that moves backward means that the server was
  reset (restored from a backup, say) or replays: only a new list tells the truth.
- A watch that broke or fell silent may have been cut by such a reset, and a watch "from the future" would stay
  silent for ever. So before it is opened again, a list of one object says where the server is now (Probe).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kopylite.cache import transitions
from kopylite.cache.record import Bookmark, Page, Record, WatchFrame
from kopylite.cache.states import FindingKind, Listing, Memory, Probing, State, Streaming, Waiting, Watching
from kopylite.cache.steps import (
    ClosedEarly,
    FetchPage,
    FindKind,
    OpenWatch,
    Phase,
    Probe,
    Problem,
    Replacement,
    Silence,
    Sleep,
    Verdict,
    WatchStep,
    WentBack,
)
from kopylite.client.verbs import PAGE_SIZE
from kopylite.errors import ApiError, KindNotFound
from kopylite.objects import compare_versions

# The API server sends a bookmark each minute: silence beyond this is a dead connection, or a kind without bookmarks.
IDLE_LIMIT: Final = 100.0
# The headers of a watch come at once, even when there is nothing to tell.
OPEN_LIMIT: Final = 30.0
# A server that ignores sendInitialEvents sends everything but the end marker. Then it falls silent, or goes on with
# changes and no object that is new, or brings new ones for ever. A list in pages, which is read then, has no limit.
MARKER_QUIET_LIMIT: Final = 10.0
MARKER_LIMIT: Final = 120.0
MARKER_LAST_LIMIT: Final = 300.0
# A watch is asked to end by itself after a random time in this span, so that watches spread over servers (client-go).
SHORTEST_WATCH: Final = 300
LONGEST_WATCH: Final = 600


class WatchState:
    """The list-then-watch of one resource.

    Args:
        streaming: whether to try to stream the initial state (False: the server is known not to).

    Attributes:
        state, memory: where it is, and what it knows besides. Replaced, never changed.
        heard: when the last bytes came; set by the driver.
    """

    def __init__(self, *, streaming: bool = True) -> None:
        self.state: State = FindingKind(again=False)
        self.memory = Memory(streaming=streaming)
        self.heard = 0.0
        self._marked = ""  # the version of the end marker, until `snapshot` is called

    @property
    def version(self) -> str:
        """Every event up to here has been handed out; "" when unknown."""
        state = self.state
        if isinstance(state, Waiting):
            state = state.then
        return state.version if isinstance(state, (Watching, Probing)) else ""

    @property
    def streaming(self) -> bool:
        """False when the server has proved not to stream; the driver remembers it."""
        return self.memory.streaming

    @property
    def phase(self) -> Phase:
        """For people."""
        state, memory = self.state, self.memory
        if isinstance(state, Waiting):
            missing = isinstance(state.then, FindingKind) and memory.missing_since is not None
            return Phase.WAITING_FOR_KIND if missing else Phase.RETRYING
        match state:
            case FindingKind():
                return Phase.FINDING_KIND if memory.missing_since is None else Phase.WAITING_FOR_KIND
            case Listing() | Streaming():
                return Phase.LISTING
            case Watching(opened=opened) if opened is not None or memory.problem is None:
                return Phase.WATCHING
        return Phase.RETRYING

    def next(self, chance: float) -> WatchStep:
        """The next thing to do."""
        state = self.state
        if isinstance(state, Waiting):
            if state.seconds > 0:
                self.state = Waiting(0.0, state.then)
                return Sleep(state.seconds)
            self.state = state = state.then
        match state:
            case FindingKind(again):
                return FindKind(again)
            case Listing(whole=whole, token=token):
                return FetchPage(0 if whole else PAGE_SIZE, token)
            case Streaming():
                return OpenWatch("", True, _watch_seconds(chance))
            case Probing():
                return Probe()
            case Watching(version):
                return OpenWatch(version, False, _watch_seconds(chance))

    def problem(self, now: float) -> Problem | None:
        """What is wrong; None also when a stream is open that has proved itself."""
        return None if transitions.settled(self.state, now) else self.memory.problem

    def is_routine(self, error: Exception, now: float) -> bool:
        """Whether `failed` with this error would be everyday life, which nobody has to be told of."""
        return transitions.is_routine(self.state, error, now)

    def deadline(self) -> float:
        """When to give the stream up (`silent`), unless more bytes come."""
        match self.state:
            case Streaming(opened=None) | Watching(opened=None):
                return self.heard + OPEN_LIMIT
            case Streaming(opened=float() as opened, grew=grew):
                return min(self.heard + MARKER_QUIET_LIMIT, grew + MARKER_LIMIT, opened + MARKER_LAST_LIMIT)
        return self.heard + IDLE_LIMIT

    @property
    def silence_is_death(self) -> bool:
        """Whether a stream that has passed its deadline is dead for sure.

        Not if it is a watch of a kind that has never had a bookmark, as Events have none: nothing may have happened.
        The driver then asks the server what the watch has missed, before it calls `silent` or sets `heard`.
        """
        return not isinstance(self.state, Watching) or self.state.opened is None or self.memory.bookmarks

    def found(self) -> None:
        """The server serves the kind."""
        self.state = transitions.begin_list(self.memory)

    def kind_missing(self, error: KindNotFound, now: float, chance: float) -> Replacement | None:
        """The server does not serve the kind: what was stored has gone with it (the empty Snapshot returned)."""
        had_state = self.memory.has_state
        self.state, self.memory = transitions.kind_missing(self.memory, error, now, chance)
        return Replacement({}, "", False, gone=True) if had_state else None

    def listed(self, page: Page) -> Replacement | None:
        """A page came; returns the Snapshot once it was the last."""
        state = self.state
        assert isinstance(state, Listing)
        for record in page.records:
            state.pages.setdefault(record.namespace, {})[record.name] = record
        version = state.version if state.token else page.resource_version
        if page.continue_token:
            self.state = Listing(state.whole, state.pages, page.continue_token, version)
            return None
        snapshot = Replacement(state.pages, version, not self.memory.has_state)
        self.state, self.memory = Watching(version), transitions.complete(self.memory)
        return snapshot

    def probed(self, version: str, now: float, chance: float = 0.5) -> None:
        """The server is now at this version."""
        state = self.state
        assert isinstance(state, Probing)
        older = is_older(version, state.version)
        self.state, self.memory = transitions.probed(state, self.memory, version, older, now, chance)

    def opening(self, step: OpenWatch, now: float) -> None:
        """The stream is about to be opened: from here on silence counts."""
        self.heard = now
        self.state = Streaming() if step.initial else Watching(step.version)

    def opened(self, now: float) -> None:
        """The server has answered 200."""
        self.heard = now
        self.state, self.memory = transitions.opened(self.state, self.memory, now)

    def received(self, frame: WatchFrame) -> Verdict:
        """A frame came. The hot path: nothing here may be slow.

        Raises:
            ApiError: the frame is an ERROR. The stream is over; tell `failed`, as of any other error.
            WentBack: likewise.
        """
        word, content = frame
        if isinstance(content, ApiError):
            raise content
        state = self.state
        if not isinstance(state, Watching):
            return self._collected(word, content)
        version, before = content.resource_version, state.version
        if version != before:
            if (len(version) != len(before) or version < before) and is_older(version, before):
                raise WentBack(f"version {version} came after {before}")
            if version:
                self.state = Watching(version, state.opened, state.progressed or word != "BOOKMARK")
        if word != "BOOKMARK":
            return Verdict.APPLY
        if not self.memory.bookmarks:
            self.memory = replace(self.memory, bookmarks=True)
        return Verdict.ADVANCE

    def snapshot(self) -> Replacement:
        """The initial state that was streamed; to be called once, after REPLACE."""
        state = self.state
        assert isinstance(state, Streaming)
        snapshot = Replacement(state.collected, self._marked, not self.memory.has_state)
        self.state, self.memory = Watching(self._marked), transitions.complete(self.memory)
        self.state, self.memory = transitions.opened(self.state, self.memory, self.heard)
        return snapshot

    def closed(self, now: float, chance: float) -> ClosedEarly | None:
        """The server ended the stream cleanly; returns what is wrong with that, if anything is.

        The version stays good: there may be a wait, but no new list.
        """
        state = self.state
        following = transitions.closed(state, self.memory, now) if isinstance(state, Watching) else None
        if following is not None:
            self.state, self.memory = following
            return None
        what = "first event, at once" if isinstance(state, Watching) else "initial state was complete"
        error = ClosedEarly(f"the server ended the stream before the {what}")
        self.failed(error, now, chance)
        return error

    def silent(self, now: float, chance: float) -> Silence:
        """The deadline passed."""
        unmarked = isinstance(self.state, Streaming) and self.state.opened is not None
        error = Silence(f"no bytes for {now - self.heard:.0f} s")
        if unmarked:
            error = Silence("the server does not end the initial state: it seems to ignore sendInitialEvents")
            self.memory = replace(self.memory, streaming=False)
        self.failed(error, now, chance)
        return error

    def failed(self, error: Exception, now: float, chance: float) -> None:
        """A step failed; decides what to try next, and when."""
        self.state, self.memory = transitions.failed(self.state, self.memory, error, now, chance)

    def _collected(self, word: str, content: Record | Bookmark) -> Verdict:
        state = self.state
        assert isinstance(state, Streaming)
        if isinstance(content, Bookmark):
            if not content.initial_end:
                return Verdict.COLLECT
            self._marked = content.resource_version
            return Verdict.REPLACE
        space = state.collected.setdefault(content.namespace, {})
        if word == "DELETED":
            space.pop(content.name, None)
            return Verdict.COLLECT
        if state.grew != self.heard and content.name not in space:
            self.state = Streaming(state.opened, self.heard, state.collected)
        space[content.name] = content
        return Verdict.COLLECT


def _watch_seconds(chance: float) -> int:
    return SHORTEST_WATCH + int(chance * (LONGEST_WATCH - SHORTEST_WATCH))


def is_older(version: str, than: str) -> bool:
    """Whether both are well-formed and the first is the lower one; what can't be compared is taken as it is."""
    return version.isdigit() and than.isdigit() and compare_versions(version, than) < 0
