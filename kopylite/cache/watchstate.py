"""WatchState: list-then-watch as a state machine. Bytes and time go in, decisions come out.

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

from typing import Final, Literal

from kopylite.cache.backoff import Backoff
from kopylite.cache.record import BadFrame, Bookmark, Frame, Page, Record
from kopylite.cache.steps import (
    ClosedEarly,
    FindKind,
    ListPage,
    OpenWatch,
    Phase,
    Probe,
    Problem,
    Silence,
    Sleep,
    Snapshot,
    Spaces,
    Step,
    Verdict,
    WentBack,
)
from kopylite.errors import (
    ApiError,
    BadRequest,
    ConnectionFailed,
    Expired,
    Invalid,
    KindNotFound,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    TransportError,
)
from kopylite.objects import compare_versions

PAGE_SIZE: Final = 500  # the page size of client-go
# The API server sends a bookmark each minute: silence beyond this is a dead connection.
IDLE_LIMIT: Final = 100.0
# The headers of a watch come at once, even when there is nothing to tell.
OPEN_LIMIT: Final = 30.0
# A server that ignores sendInitialEvents sends everything but the end marker, and then falls silent, or never does.
MARKER_QUIET_LIMIT: Final = 10.0
MARKER_LIMIT: Final = 120.0
# A watch is asked to end by itself after a random time in this span, so that watches spread over servers (client-go).
SHORTEST_WATCH: Final = 300
LONGEST_WATCH: Final = 600
# A stream that stays open this long without an error has proved itself.
SETTLED_AFTER: Final = 5.0
# Bad frames and in-stream errors in a row, at the same version, after which a list is tried instead.
MOST_STRIKES: Final = 3
# Initial streams in a row that ended before the marker, after which a list is tried instead.
MOST_BROKEN_INITIAL_STREAMS: Final = 2
# A kind that is missing is looked for at least this often: a CRD that was just installed should not wait long.
LONGEST_KIND_DELAY: Final = 10.0


class WatchState:
    """The list-then-watch of one resource.

    Args:
        streaming: whether to try to stream the initial state (False: the server is known not to).

    Attributes:
        version: every event up to here has been handed out; "" when unknown.
        has_state: the driver has been given a whole state, and the kind has not gone since.
        streaming: turns False when the server proves not to stream; the driver remembers it.
        heard: when the last bytes came; set by the driver.
        phase: for people.
    """

    def __init__(self, *, streaming: bool = True) -> None:
        self.version = ""
        self.has_state = False
        self.streaming = streaming
        self.heard = 0.0
        self.phase = Phase.FINDING_KIND
        self._want: Literal["kind", "list", "probe", "watch"] = "kind"
        self._known = False  # discovery has said yes before
        self._wait = 0.0
        self._backoff = Backoff()
        self._kind_backoff = Backoff(LONGEST_KIND_DELAY)
        self._problem: Problem | None = None
        # Of the list or initial stream in progress
        self._pending: Spaces = {}
        self._continue = ""
        self._list_version = ""
        self._paged = True
        self._broken_initial = 0
        # Of the stream in progress
        self._opened: float | None = None
        self._collecting = False
        self._progressed = False  # the version has moved forward
        self._strikes = 0  # failures at the same version that only a new list may cure
        self._excused = False  # an expired version was answered by a list at once; not twice before a watch settles

    def next(self, chance: float) -> Step:
        """The next thing to do."""
        if self._wait > 0:
            seconds, self._wait = self._wait, 0.0
            return Sleep(seconds)
        match self._want:
            case "kind":
                return FindKind(again=self._known)
            case "probe":
                return Probe()
            case "watch":
                return OpenWatch(self.version, False, _watch_seconds(chance))
        self.phase = Phase.LISTING
        fresh = self._paged and not self._continue
        if fresh and self.streaming and self._broken_initial < MOST_BROKEN_INITIAL_STREAMS:
            return OpenWatch("", True, _watch_seconds(chance))
        return ListPage(PAGE_SIZE if self._paged else 0, self._continue)

    def problem(self, now: float) -> Problem | None:
        """What is wrong; None also when a stream is open that has proved itself."""
        return None if self._settled(now) else self._problem

    def deadline(self) -> float:
        """When to give the stream up (`silent`), unless more bytes come."""
        if self._opened is None:
            return self.heard + OPEN_LIMIT
        if self._collecting:
            return min(self.heard + MARKER_QUIET_LIMIT, self._opened + MARKER_LIMIT)
        return self.heard + IDLE_LIMIT

    def found(self) -> None:
        """The server serves the kind."""
        self._known = True
        self._kind_backoff = Backoff(LONGEST_KIND_DELAY)
        self._list_again()

    def kind_missing(self, error: KindNotFound, now: float, chance: float) -> Snapshot | None:
        """The server does not serve the kind: what was stored has gone with it (the empty Snapshot returned)."""
        self._blame(error, now)
        self.phase = Phase.WAITING_FOR_KIND
        self._wait = self._kind_backoff.failed(now, chance)
        if not self.has_state:
            return None
        self.has_state = False
        self.version = ""
        return Snapshot({}, "", False)

    def listed(self, page: Page) -> Snapshot | None:
        """A page came; returns the Snapshot once it was the last."""
        for record in page.records:
            self._pending.setdefault(record.namespace, {})[record.name] = record
        if not self._continue:
            # Of the first page: should a server's pages show different versions, nothing between them is missed.
            self._list_version = page.resource_version
        self._continue = page.continue_token
        return None if page.continue_token else self._complete(self._list_version)

    def probed(self, version: str, now: float) -> None:
        """The server is now at this version."""
        if _is_older(version, self.version):
            self._blame(WentBack(f"the server is at version {version}, after {self.version}"), now)
            self._list_again()
        else:
            self._want = "watch"

    def opening(self, step: OpenWatch, now: float) -> None:
        """The stream is about to be opened: from here on silence counts."""
        self.heard = now
        self._opened = None
        self._progressed = False
        self._collecting = step.initial
        self._pending = {}
        if not step.initial:
            self.phase = Phase.WATCHING

    def opened(self, now: float) -> None:
        """The server has answered 200."""
        self.heard = self._opened = now
        self._backoff.healthy(now)

    def received(self, frame: Frame) -> Verdict:
        """A frame came. The hot path: nothing here may be slow.

        Raises:
            ApiError: the frame is an ERROR. The stream is over; tell `failed`, as of any other error.
            WentBack: likewise.
        """
        word, content = frame
        if isinstance(content, ApiError):
            raise content
        if self._collecting:
            return self._collected(word, content)
        version = content.resource_version
        if version != self.version:
            if _is_older(version, self.version):
                raise WentBack(f"version {version} came after {self.version}")
            if version:
                self.version = version
                self._progressed = True
        return Verdict.ADVANCE if word == "BOOKMARK" else Verdict.APPLY

    def snapshot(self) -> Snapshot:
        """The initial state that was streamed; to be called once, after REPLACE."""
        return self._complete(self._list_version)

    def closed(self, now: float, chance: float) -> ClosedEarly | None:
        """The server ended the stream cleanly; returns what is wrong with that, if anything is.

        The version stays good: there may be a wait, but no new list.
        """
        if self._collecting or not (self._progressed or self._settled(now)):
            what = "initial state was complete" if self._collecting else "first event, at once"
            error = ClosedEarly(f"the server ended the stream before the {what}")
            self.failed(error, now, chance)
            return error
        if self._settled(now):
            self._problem = None
        self._opened = None
        if not self.version:
            self._list_again()
        return None

    def silent(self, now: float, chance: float) -> Silence:
        """The deadline passed."""
        unmarked = self._collecting and self._opened is not None
        error = Silence(f"no bytes for {now - self.heard:.0f} s")
        if unmarked:
            error = Silence("the server does not end the initial state: it seems to ignore sendInitialEvents")
        self.failed(error, now, chance)
        if unmarked:
            self.streaming = False
            self._wait = 0.0
        return error

    def failed(self, error: Exception, now: float, chance: float) -> None:
        """A step failed; decides what to try next, and when."""
        self._blame(error, now)
        self.phase = Phase.RETRYING
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        self._wait = 0.0
        if not self._progressed or retry_after:
            self._wait = self._backoff.failed(now, chance, retry_after)
        if self._progressed:
            self._strikes = 0
        if self._settled(now):
            self._excused = False
        was_open = self._opened is not None
        was_collecting = self._collecting
        self._opened, self._collecting, self._progressed = None, False, False
        if isinstance(error, NotFound | KindNotFound):
            self._want = "kind"
        elif was_collecting:
            self._initial_stream_failed(error)
        elif self._want == "list":
            self._list_failed(error)
        elif self._want == "watch":
            self._watch_failed(error, was_open)

    def _initial_stream_failed(self, error: Exception) -> None:
        self._pending = {}
        if isinstance(error, Invalid | BadRequest | MethodNotAllowed):
            self.streaming = False
            self._wait = 0.0
        elif not isinstance(error, ConnectionFailed | TooManyRequests):
            self._broken_initial += 1

    def _list_failed(self, error: Exception) -> None:
        """A page can be asked for again, unless it is the token that the server dislikes."""
        if self._continue and isinstance(error, Expired | BadRequest | Invalid):
            # In one piece it can't expire. The new token that an expired one may come with is of no use: the
            # pages that follow it show another version than those before.
            self._list_again()
            self._paged = False

    def _watch_failed(self, error: Exception, was_open: bool) -> None:
        if isinstance(error, BadFrame) or (was_open and isinstance(error, ApiError)):
            self._strikes += not isinstance(error, TooManyRequests)
        if (
            isinstance(error, Expired | WentBack | BadRequest | Invalid)
            or _is_too_large_version(error)
            or self._strikes >= MOST_STRIKES
            or not self.version
        ):
            self._list_again()
            if isinstance(error, Expired) and not self._excused:
                # The server works, and has said what cures it. After an outage, the wait would be a long one.
                self._excused = True
                self._wait = error.retry_after or 0.0
        elif isinstance(error, TransportError) and not isinstance(error, ClosedEarly):
            self._want = "probe"

    def _list_again(self) -> None:
        self._want = "list"
        self._continue = ""
        self._paged = True
        self._pending = {}
        self._strikes = 0

    def _collected(self, word: str, content: Record | Bookmark) -> Verdict:
        if isinstance(content, Bookmark):
            if not content.initial_end:
                return Verdict.COLLECT
            self._list_version = content.resource_version
            return Verdict.REPLACE
        space = self._pending.setdefault(content.namespace, {})
        if word == "DELETED":
            space.pop(content.name, None)
        else:
            space[content.name] = content
        return Verdict.COLLECT

    def _complete(self, version: str) -> Snapshot:
        snapshot = Snapshot(self._pending, version, not self.has_state)
        self._list_again()
        self._want = "watch"
        self._collecting = False
        self._broken_initial = 0
        self.version = version
        self.has_state = True
        self.phase = Phase.WATCHING
        return snapshot

    def _settled(self, now: float) -> bool:
        return self._opened is not None and not self._collecting and now - self._opened >= SETTLED_AFTER

    def _blame(self, error: Exception, now: float) -> None:
        since = self._problem.since if self._problem and not self._settled(now) else now
        self._problem = Problem(error, since)


def _watch_seconds(chance: float) -> int:
    return SHORTEST_WATCH + int(chance * (LONGEST_WATCH - SHORTEST_WATCH))


def _is_older(version: str, than: str) -> bool:
    """Whether both are well-formed and the first is the lower one; what can't be compared is taken as it is."""
    if len(version) == len(than) and version >= than:
        return False  # the usual way, and cheap
    return version.isdigit() and than.isdigit() and compare_versions(version, than) < 0


def _is_too_large_version(error: Exception) -> bool:
    return isinstance(error, ApiError) and (
        any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
        or "Too large resource version" in error.message
    )
