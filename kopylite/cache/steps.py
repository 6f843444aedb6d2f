"""What list-then-watch can decide, as values: steps to take, verdicts on frames, and why a stream failed."""

from __future__ import annotations

from enum import Enum, StrEnum, auto

import msgspec

from kopylite.cache.record import Record
from kopylite.errors import StreamBroken

Spaces = dict[str, dict[str, Record]]
"""Records by namespace and name. Not by ObjectKey: 100,000 tuples would make the garbage collector pause for 40 ms."""


class FindKind(msgspec.Struct, frozen=True):
    """Ask discovery whether the server serves the kind; `again`: it said yes before, so don't believe a memory."""

    again: bool


class FetchPage(msgspec.Struct, frozen=True):
    """Get a page of the list, without a version. `limit` 0: all of it at once."""

    limit: int
    continue_token: str


class Probe(msgspec.Struct, frozen=True):
    """Get a list of at most one object, for its version."""


class OpenWatch(msgspec.Struct, frozen=True):
    """Watch from a version; or, with `initial`, stream the whole state first (sendInitialEvents)."""

    version: str
    initial: bool
    timeout_seconds: int


class Sleep(msgspec.Struct, frozen=True):
    """Wait before the next step."""

    seconds: float


WatchStep = FindKind | FetchPage | Probe | OpenWatch | Sleep


class Replacement(msgspec.Struct, frozen=True):
    """The whole state at a version; it replaces what the store holds.

    `initial`: the store held nothing before. `gone`: the kind is not served any more, so there is nothing.
    """

    records: Spaces
    version: str
    initial: bool
    gone: bool = False


class Verdict(Enum):
    """What a frame of the watch asks for."""

    APPLY = auto()  # put or remove the record of the frame
    ADVANCE = auto()  # nothing changed, but the version moved
    COLLECT = auto()  # keep reading: the initial state is not complete
    REPLACE = auto()  # the initial state is complete: take `snapshot()`


class Phase(StrEnum):
    """What an informer is doing, for people."""

    FINDING_KIND = "finding kind"
    WAITING_FOR_KIND = "waiting for kind"
    LISTING = "listing"
    WATCHING = "watching"
    RETRYING = "retrying"


class Problem(msgspec.Struct, frozen=True):
    """Why the stream does not work: the last error, and since when (monotonic seconds) it has not worked."""

    error: Exception
    since: float


class Silence(StreamBroken):
    """Nothing came for too long on an open connection."""


class WentBack(StreamBroken):
    """The server's version is lower than one that it has sent before."""


class OwnFault(WentBack):
    """kopylite failed on what came. What it has made of the stream is not to be trusted, so all is listed again."""


class ClosedEarly(StreamBroken):
    """The server ended a stream cleanly, but at once, or before the initial state was complete."""
