"""The scope of a Manager: which namespaces it works in, and when it begins and ends in each. Pure.

The rule is what people wrote: names, globs, a label selector. With names alone the scope never changes. The state
machine takes what is seen of the cluster's namespaces, and says where to begin and where to end:

- A namespace is in scope from the moment that it is seen to match until it is gone, or matches no more. That it is
  being deleted changes nothing: whoever has finalizers there must be able to let go.
- It ends at once where it must not work any more. It begins in few namespaces at a time (`PARALLEL`), so that two
  hundred that appear at once do not ask for two hundred lists of each kind at once.
- Where it ended and matches again soon, and again, it begins with a back-off: a label that flaps costs a handful of
  lists, not one for each flap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from kopylite.cache.selectors import parse_label_selector
from kopylite.checks import is_dns_label
from kopylite.client.selecting import label_selector_text
from kopylite.errors import UsageError

# Namespaces whose caches fill at the same time. One that is refused or in sync makes room for the next.
PARALLEL = 8
# The pause before a namespace that ended early is begun again: none for the first time, then 1 s, doubling to 30 s.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# One that lasted for so long did not flap.
STEADY_SECONDS = 60.0

_GLOB = re.compile(r"[a-z0-9*?\[\]!-]{1,253}")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")  # of a chart, which is filled in later
_WILD = re.compile(r"[*?\[]")


class NamespaceRule(msgspec.Struct, frozen=True):
    """Which namespaces are in scope.

    Attributes:
        names: always are, whether they exist or not.
        globs: those whose name fits one of them are; * stands for any characters, ? for one, [ab] for one of some.
        labels: those that this label selector selects are.
    """

    names: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    labels: str = ""

    @classmethod
    def of(cls, namespaces: object, labelled: object, error: type[UsageError] = UsageError) -> NamespaceRule:
        """The rule that options stand for: names and globs, or a selector; nothing of them means all namespaces.

        Raises:
            UsageError (or `error`): they are none, or both are given.
        """
        where = "Options: namespaces"
        if not isinstance(namespaces, tuple | list) or not all(isinstance(name, str) for name in namespaces):
            raise error(
                f"{where} is a tuple of names or globs, not {namespaces!r}; an empty tuple means all namespaces"
            )
        for name in namespaces:
            check_namespace(name, where, error)
        labels = label_selector_text(labelled, f"{where}_labelled", error).strip()
        try:
            parse_label_selector(labels)
        except UsageError as problem:
            raise error(f"{where}_labelled: {problem}; write 'tier=prod' or 'team in (a, b)'") from None
        if labels and namespaces:
            raise error(
                "namespaces (-n, KOPYLITE_NAMESPACE) and namespaces_labelled (--namespaces-labelled, "
                "KOPYLITE_NAMESPACES_LABELLED) do not go together: it could mean those that are both, or either. Give "
                "one; a label on the namespaces can say the rest"
            )
        globs = tuple(name for name in dict.fromkeys(namespaces) if _WILD.search(name))
        names = tuple(name for name in dict.fromkeys(namespaces) if name not in globs)
        return cls(names, globs, labels)

    @property
    def limited(self) -> bool:
        """Not all namespaces are in scope."""
        return bool(self.names or self.live)

    @property
    def live(self) -> bool:
        """What is in scope depends on which namespaces there are, so they are watched."""
        return bool(self.globs or self.labels)

    def fits(self, name: str) -> bool:
        """Whether a namespace is in scope that the watch shows; the server has looked at its labels."""
        return bool(self.labels) or name in self.names or any(fnmatchcase(name, glob) for glob in self.globs)

    @property
    def followed(self) -> str:
        """What stands for the namespaces that nobody has named, in a word or two."""
        return f"labelled {self.labels}" if self.labels else ", ".join(self.globs)

    def __str__(self) -> str:
        if self.labels:
            return f"the namespaces labelled {self.labels}"
        return f"namespaces {', '.join((*self.names, *self.globs))}" if self.limited else "all namespaces"


def check_namespace(name: str, where: str, error: type[Exception] = UsageError) -> None:
    """Refuse what is neither the name of a namespace nor a glob.

    Raises:
        UsageError (or `error`): it is none.
    """
    known = _GLOB.fullmatch(name) is not None if _WILD.search(name) else is_dns_label(name)
    if not known and not _TEMPLATE.fullmatch(name):
        raise error(
            f"{where}: {name[:80]!r} names no namespaces: up to 63 lower-case letters, digits and inner dashes; or a "
            "glob of them with *, ? or [ab], as in 'team-*'"
        )


class ScopeSteps(msgspec.Struct, frozen=True):
    """What to do now: end in some namespaces, then begin in some.

    Attributes:
        after: seconds until it is worth asking again, though nothing has changed; None: never.
    """

    end: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    after: float | None = None


class _Life(msgspec.Struct):
    """What is remembered of a namespace that has begun.

    Attributes:
        began: when it last did.
        ended: when it last ended; None: it is in scope.
        flaps: how often in a row it ended soon after it had begun.
    """

    began: float
    ended: float | None = None
    flaps: int = 0

    @property
    def pause(self) -> float:
        """From its end to its next beginning."""
        return min(FIRST_PAUSE * 2.0 ** min(self.flaps - 2, 10), LONGEST_PAUSE) if self.flaps > 1 else 0.0


class ScopeState(msgspec.Struct):
    """Decides where to begin and to end; see the rules of this module. Times are seconds that never go back.

    Attributes:
        wanted: the namespaces that match now, in the order in which they came.
        begun: those in which it works.
    """

    rule: NamespaceRule
    wanted: dict[str, None] = msgspec.field(default_factory=dict)
    begun: dict[str, None] = msgspec.field(default_factory=dict)
    _starting: set[str] = msgspec.field(default_factory=set)
    _lives: dict[str, _Life] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wanted = dict.fromkeys(self.rule.names)
        self.begun = dict.fromkeys(self.rule.names)

    def seen(self, name: str) -> None:
        """There is such a namespace."""
        if self.rule.fits(name):
            self.wanted[name] = None

    def gone(self, name: str) -> None:
        """There is none any more, or the selector does not select it."""
        if name not in self.rule.names:
            self.wanted.pop(name, None)

    def settled(self, name: str) -> None:
        """What is watched there is in sync, or was refused: it keeps no other from beginning."""
        self._starting.discard(name)

    def next(self, now: float) -> ScopeSteps:
        """What to do now; it counts as done."""
        ending = tuple(name for name in self.begun if name not in self.wanted)
        for name in ending:
            self._end(name, now)
        beginning: list[str] = []
        waits: list[float] = []
        for name in self.wanted:
            if name in self.begun:
                continue
            life = self._lives.get(name)
            if life is not None and life.ended is not None and (wait := life.ended + life.pause - now) > 0:
                waits.append(wait)
            elif len(self._starting) < PARALLEL:
                self._begin(name, now)
                beginning.append(name)
        self._forget(now)
        return ScopeSteps(ending, tuple(beginning), min(waits, default=None))

    def _begin(self, name: str, now: float) -> None:
        self.begun[name] = None
        self._starting.add(name)
        life = self._lives.setdefault(name, _Life(now))
        life.began, life.ended = now, None

    def _end(self, name: str, now: float) -> None:
        del self.begun[name]
        self._starting.discard(name)
        life = self._lives[name]
        life.flaps = life.flaps + 1 if now - life.began < STEADY_SECONDS else 1
        life.ended = now

    def _forget(self, now: float) -> None:
        """Keep nothing of a namespace that has been away for long."""
        past = [n for n, life in self._lives.items() if life.ended is not None and now - life.ended > STEADY_SECONDS]
        for name in past:
            del self._lives[name]


def names_of(namespaces: Iterable[str], shown: int = 5) -> str:
    """Some namespaces for a line of the log."""
    found = sorted(namespaces)
    more = len(found) - shown
    return ", ".join(found[:shown]) + (f" and {more} more" if more > 0 else "")
