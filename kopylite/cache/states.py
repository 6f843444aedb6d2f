"""The states of list-then-watch, each with what it alone knows, and the Memory of what outlives them."""

from __future__ import annotations

from msgspec import Struct

from kopylite.cache.steps import Problem, Spaces


class FindingKind(Struct, frozen=True):
    """Discovery is to be asked for the kind; `again`: it said yes before, so don't believe a memory."""

    again: bool = True


class Listing(Struct, frozen=True):
    """A list is being read.

    Attributes:
        whole: in one piece, because its token expired; else page by page.
        pages: what has come of it.
        token: of the next page; "" before the first.
        version: of the first page. Should the pages show different versions, nothing between them is missed.
    """

    whole: bool = False
    pages: Spaces = {}
    token: str = ""
    version: str = ""


class Streaming(Struct, frozen=True):
    """The initial state is being streamed.

    Attributes:
        opened: when the server answered 200; None before.
        grew: when an object came last that had not come before. A server that knows no initial state sends changes.
        collected: what has come of it; the one thing here that grows in place.
    """

    opened: float | None = None
    grew: float = 0.0
    collected: Spaces = {}


class Probing(Struct, frozen=True):
    """A watch ended in a way that a reset of the server may have caused: where is the server now?"""

    version: str


class Watching(Struct, frozen=True, gc=False):
    """Changes are streamed, or about to be.

    Attributes:
        version: every event up to here has been handed out.
        opened: when the server answered 200, or the initial state was complete; None before.
        progressed: an event has moved the version forward since.
    """

    version: str
    opened: float | None = None
    progressed: bool = False


Active = FindingKind | Listing | Streaming | Probing | Watching


class Waiting(Struct, frozen=True):
    """A pause before another state. `seconds` 0: it has been asked for, and is over at the next question."""

    seconds: float
    then: Active


State = Active | Waiting


class Memory(Struct, frozen=True):
    """What is known whatever the state is.

    Attributes:
        has_state: the driver has been given a whole state, and the kind has not gone since.
        streaming: False once the server has proved not to stream initial states.
        bookmarks: the server has sent one for this kind, so it sends one a minute.
        failures: in a row, without a watch that delivered or lived in between.
        lists: that an error forced, without a watch in between that lived for a minute.
        strikes: failures at the same version that only a new list may cure.
        broken_streams: initial streams in a row that ended before their marker.
        missing_since: when the server first denied the kind; None once a watch of it was open.
        problem: the last error, and since when nothing has worked.
    """

    has_state: bool = False
    streaming: bool = True
    bookmarks: bool = False
    failures: int = 0
    lists: int = 0
    strikes: int = 0
    broken_streams: int = 0
    missing_since: float | None = None
    problem: Problem | None = None
