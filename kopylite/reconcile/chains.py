"""Chains: which runs were caused by the writes of earlier runs of this process, and how long that goes on. Pure.

A run that changes an object that is watched causes another run. Nearly always that one finds nothing to do, and the
chain ends. Where each writes again, it is a loop: see `diagnostics/hotloop.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from kopylite.reconcile.request import Request

K = TypeVar("K")
V = TypeVar("V")

# Own writes that are remembered; the oldest go. An event follows its write within moments, so this is for thousands of
# writes at a time.
REMEMBERED: Final = 20_000
# Objects that are known to have been written to. Beyond it, the loops of so many objects at a time stay unnoticed.
KNOWN_OBJECTS: Final = 50_000


class Version(NamedTuple):
    """One state of one object."""

    uid: str
    version: str


class ChangeReason(str):
    """The reason of a run that is one change of one object: the text for people, and what the object changed to."""

    __slots__ = ("text", "to")
    text: str
    to: Version

    @classmethod
    def of(cls, text: str, to: Version) -> ChangeReason:
        change = cls(text)
        change.text = text
        change.to = to
        return change


class ChainLink:
    """A run that wrote, as a step of a chain.

    Attributes:
        controller, request, priority: whose run it was, for which key, and how urgent.
        causes: the states whose coming caused it; of one that others had a part in, what is known of them.
        depth: how many runs in a row before it were caused by such runs alone, and changed only what had been
            changed before. 0: something else caused it.
        length: the same, of runs that created or deleted something too.
        partner: another controller whose writes caused it; "" if there is none.
        progress: it wrote to an object for the first time, or deleted one: that can't go on for ever.
    """

    __slots__ = ("causes", "controller", "depth", "length", "partner", "priority", "progress", "request")

    def __init__(self, controller: str, request: Request, priority: int, causes: Sequence[Version]) -> None:
        self.controller = controller
        self.request = request
        self.priority = priority
        self.causes = causes
        self.depth = 0
        self.length = 0
        self.partner = ""
        self.progress = False


class Chains:
    """Remembers which run wrote which state, as far as the two constants above allow."""

    __slots__ = ("_steps", "_written")

    def __init__(self) -> None:
        self._steps: dict[Version, ChainLink] = {}
        self._written: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def step(self, controller: str, request: Request, priority: int, causes: Sequence[Version]) -> ChainLink:
        """The step that a run is, which writes for the first time. No causes: others had a part in it."""
        step = ChainLink(controller, request, priority, causes)
        before = [self._steps.get(cause) for cause in causes]
        for earlier in before:
            if earlier is None:  # somebody else's write
                step.depth = step.length = 0
                return step
            step.depth = max(step.depth, 0 if earlier.progress else earlier.depth + 1)
            step.length = max(step.length, earlier.length + 1)
            if earlier.controller != controller:
                step.partner = earlier.controller
        return step

    def wrote(self, step: ChainLink, to: Version) -> None:
        """A run changed an object, or created it."""
        if to.uid not in self._written:
            step.progress = True
            _remember(self._written, to.uid, None, KNOWN_OBJECTS)
        _remember(self._steps, to, step, REMEMBERED)

    def writer(self, to: Version) -> ChainLink | None:
        """The run that wrote a state; None: nobody here. A write that ends with a known state has changed nothing."""
        return self._steps.get(to)


def _remember(known: dict[K, V], key: K, value: V, most: int) -> None:
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]
