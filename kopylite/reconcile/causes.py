"""Causes: why keys fail, so that one cause over many keys and many runs is told once, and then as a number.

Pure: failures and their times go in, what to say comes out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable
from itertools import islice

import msgspec

from kopylite.reconcile.request import Request

# A cause that lasts is told again after so many seconds; the pause doubles up to the second number.
FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0
# A cause is over when none of its keys fails and nothing has failed of it for so long.
OVER_SECONDS = 5.0
SHOWN_KEYS = 3

# What differs between two objects that fail alike: what is quoted, and numbers, in ids too.
_OWN_WORDS = re.compile(r"\"[^\"]*\"|'[^']*'|[0-9a-fA-F-]*[0-9][0-9a-fA-F.-]*")


class _Cause(msgspec.Struct):
    """Keys that fail of one thing, and what was told of them.

    `failing`: those that have not worked since. `untold`: failed runs since the last line, `met`: their keys.
    """

    text: str
    level: int
    began: float
    told_at: float
    last: float
    pause: float = FIRST_PAUSE
    failing: set[Request] = msgspec.field(default_factory=set)
    met: set[Request] = msgspec.field(default_factory=set)
    untold: int = 0
    most: int = 1
    retold: bool = False


class Line(msgspec.Struct, frozen=True):
    """One line for the log."""

    level: int
    text: str


class Causes:
    """Remembers each failing key with its cause; memory is bounded by the number of keys that fail.

    A cause is forgotten when none of its keys fails any more and its pause is over; until then, new failures of it
    are no news.
    """

    def __init__(self) -> None:
        self._causes: dict[Hashable, _Cause] = {}
        self._of: dict[Request, Hashable] = {}

    def __len__(self) -> int:
        return len(self._causes)

    def failed(self, cause: Hashable, key: Request, now: float, line: Line) -> bool:
        """Count a failed run. Returns whether it is news, and to be told now; if not, `due` tells of it in time."""
        if self._of.get(key, cause) != cause:
            self._leave(key)
        self._of[key] = cause
        known = self._causes.get(cause)
        if known is None:
            known = self._causes[cause] = _Cause(line.text, line.level, now, now, now)
            known.failing.add(key)
            return True
        known.failing.add(key)
        known.met.add(key)
        known.most = max(known.most, len(known.failing))
        known.untold += 1
        known.text, known.level, known.last = line.text, line.level, now
        return False

    def worked(self, key: Request) -> None:
        """A run of a key did not fail."""
        if self._of:
            self._leave(key)

    def drop(self, match: Callable[[Request], bool]) -> None:
        """As `worked`, for all keys that match."""
        for key in [key for key in self._of if match(key)]:
            self._leave(key)

    def due(self, now: float, *, all_of_them: bool = False) -> list[Line]:
        """What to say now of failures that were no news: how many there were, and that they are over."""
        lines = []
        for cause, known in list(self._causes.items()):
            over = not known.failing and (all_of_them or now - known.last >= OVER_SECONDS)
            late = all_of_them or now - known.told_at >= known.pause
            if over and (known.untold or known.retold):
                keys = "1 key" if known.most == 1 else f"up to {known.most} keys at a time"
                text = f"over after {known.last - known.began:.0f} s, it concerned {keys}: {known.text}"
                lines.append(Line(logging.INFO, text))
                known.untold, known.retold = 0, False
            elif known.untold and late:
                times = f"{known.untold} more time{'s' if known.untold > 1 else ''} in {now - known.told_at:.0f} s"
                text = f"{known.text}; {times}, for {_counted(known.met)}"
                lines.append(Line(known.level, text))
                known.told_at, known.pause = now, min(known.pause * 2, LONGEST_PAUSE)
                known.untold, known.retold = 0, True
                known.met.clear()
            elif over and late:
                del self._causes[cause]
        return lines

    def _leave(self, key: Request) -> None:
        cause = self._of.pop(key, None)
        known = self._causes.get(cause)
        if known is not None:
            known.failing.discard(key)


def alike(message: str, key: Request) -> str:
    """A message without what is special to one object: two objects that fail alike give the same text."""
    own = sorted({key.name, key.namespace} - {""}, key=len, reverse=True)
    for word in own:
        message = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", "…", message)
    return _OWN_WORDS.sub("…", message)


def _counted(keys: set[Request]) -> str:
    shown = ", ".join(map(str, islice(keys, SHOWN_KEYS)))
    return f"{len(keys)} keys ({shown}, …)" if len(keys) > SHOWN_KEYS else shown
