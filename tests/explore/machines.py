"""The machines, and how deep each is explored: in the suite, and by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.explore import outcomes
from tests.explore.candidate import elections
from tests.explore.ownwrites import OwnWritesWorld
from tests.explore.queue import QueueWorld
from tests.explore.roster import divisions
from tests.explore.search import Explored, explore
from tests.explore.watch import WatchWorld


class Machine(NamedTuple):
    """What seconds have time for, and all of it."""

    part: Callable[[], Explored]
    full: Callable[[], Explored]


def _watches() -> list[WatchWorld]:
    """From the start, with a server that streams initial states and one that does not; and with an open watch."""
    watched = WatchWorld()
    watched.act("go")
    watched.act("go")
    return [WatchWorld(), WatchWorld(streaming=False), watched]


def _writes() -> list[OwnWritesWorld]:
    return [OwnWritesWorld()]


MACHINES = {
    "queue": Machine(lambda: explore(lambda: [QueueWorld()], 6), lambda: explore(lambda: [QueueWorld()], 8)),
    "watch": Machine(lambda: explore(_watches, 5, settles=4), lambda: explore(_watches, 8, settles=5)),
    "candidate": Machine(lambda: explore(elections, 4, settles=3), lambda: explore(elections, 8, settles=5)),
    "roster": Machine(lambda: explore(divisions, 3, settles=1), lambda: explore(divisions, 5, settles=2)),
    "own writes": Machine(lambda: explore(_writes, 5, settles=2), lambda: explore(_writes, 7, settles=4)),
    "errors": Machine(outcomes.errors, outcomes.errors),
    "outcomes": Machine(lambda: outcomes.histories(2), lambda: outcomes.histories(3)),
    "keys": Machine(lambda: outcomes.together(2), lambda: outcomes.together(4)),
}
