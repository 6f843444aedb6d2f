"""Predicates: which events matter. They drop events before these are mapped; they never narrow what is cached.

Those named `..._changed` judge updates only, and let every create, delete and generic event pass. Combine them with
`&`, `|` and `~`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kopylite.boundary import name_of, show
from kopylite.cache import parse_label_selector
from kopylite.client.selecting import SelectorLike, label_selector_text
from kopylite.errors import RegistrationError
from kopylite.objects import Kind
from kopylite.objects.selectors import Selector
from kopylite.triggers.events import Event, EventType

if TYPE_CHECKING:
    from kopylite.cache import Record

T = TypeVar("T")


class Predicate(ABC):
    """Says of an event whether it matters."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, event: Event) -> bool: ...

    def bound_to(self, kind: Kind | type[Any], *, metadata_only: bool = False) -> Predicate:
        """This predicate for the objects of one kind; those that look into the objects need it.

        Raises:
            UsageError: it looks at something that the kind does not have, or that is not watched.
        """
        return self

    def __and__(self, other: Predicate) -> Predicate:
        """Both must pass; the second is not asked when the first does not."""
        return _And(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        """One must pass; the second is not asked when the first does."""
        return _Or(self, other)

    def __invert__(self) -> Predicate:
        """Passes what this one drops. Note that the negation of a `..._changed` drops creates and deletes."""
        return _Not(self)


@dataclass(frozen=True, slots=True)
class _And(Predicate):
    left: Predicate
    right: Predicate

    @property
    def __name__(self) -> str:
        return f"{name_of(self.left)} & {name_of(self.right)}"

    def __call__(self, event: Event) -> bool:
        return self.left(event) and self.right(event)

    def bound_to(self, kind: Kind | type[Any], *, metadata_only: bool = False) -> Predicate:
        parts = (part.bound_to(kind, metadata_only=metadata_only) for part in (self.left, self.right))
        return _And(*parts)


@dataclass(frozen=True, slots=True)
class _Or(Predicate):
    left: Predicate
    right: Predicate

    @property
    def __name__(self) -> str:
        return f"{name_of(self.left)} | {name_of(self.right)}"

    def __call__(self, event: Event) -> bool:
        return self.left(event) or self.right(event)

    def bound_to(self, kind: Kind | type[Any], *, metadata_only: bool = False) -> Predicate:
        parts = (part.bound_to(kind, metadata_only=metadata_only) for part in (self.left, self.right))
        return _Or(*parts)


@dataclass(frozen=True, slots=True)
class _Not(Predicate):
    inner: Predicate

    @property
    def __name__(self) -> str:
        return f"~{name_of(self.inner)}"

    def __call__(self, event: Event) -> bool:
        return not self.inner(event)

    def bound_to(self, kind: Kind | type[Any], *, metadata_only: bool = False) -> Predicate:
        return _Not(self.inner.bound_to(kind, metadata_only=metadata_only))


@dataclass(frozen=True, slots=True)
class _Function(Predicate):
    function: Callable[[Event], bool]

    @property
    def __name__(self) -> str:
        return name_of(self.function)

    def __call__(self, event: Event) -> bool:
        return answer(self.function(event))


@dataclass(frozen=True, slots=True)
class _Changed(Predicate):
    """On an update asks a function of (old, new); passes everything else."""

    differs: Callable[[Record, Record], bool]

    def __call__(self, event: Event) -> bool:
        if event.type is not EventType.UPDATE or event.old is None or event.new is None:
            return True
        return self.differs(event.old, event.new)


@dataclass(frozen=True, slots=True)
class _Labelled(Predicate):
    selector: Selector

    def __call__(self, event: Event) -> bool:
        return any(record is not None and self.selector.matches(record.labels) for record in (event.new, event.old))


def predicate(function: Callable[[Event], bool]) -> Predicate:
    """A predicate from a function of an Event, with its cache records; also usable as a decorator.

    For a function of the objects themselves there is `when`. Where it raises, the event passes.

    Raises:
        RegistrationError: it is async; what it says would be true of every event.
    """
    return _Function(require_plain(function, "predicate"))


def require_plain(function: T, what: str) -> T:
    """The function, if nobody has to await it. Raises RegistrationError."""
    if inspect.iscoroutinefunction(function):
        raise RegistrationError(f"{what} {show(function)} is async: it has to be a plain def that returns a bool")
    if not callable(function):
        raise RegistrationError(f"{what} {show(function)}: it has to be a plain function that returns a bool")
    return function


def answer(passes: Any) -> bool:
    """What a predicate function has said. Raises TypeError: something that has to be awaited."""
    if inspect.iscoroutine(passes):
        passes.close()
        raise TypeError("a predicate has to be a plain function: nobody awaits it")
    return passes  # type: ignore[no-any-return]


def label_selector(selector: SelectorLike) -> Predicate:
    """Passes events of objects that match, or that matched before: "stopped matching" is news as well.

    Raises:
        UsageError: it is no label selector.
    """
    return _Labelled(parse_label_selector(label_selector_text(selector, "label_selector")))


def _generation_differs(old: Record, new: Record) -> bool:
    return not new.generation or old.generation != new.generation


generation_changed: Predicate = _Changed(_generation_differs)
"""Drops updates that leave the spec alone, i.e. of status and metadata. Kinds that have no generation (ConfigMap,
Secret, ...) pass. The begin of a deletion changes the generation, so finalizers still get their run."""

resource_version_changed: Predicate = _Changed(lambda old, new: old.resource_version != new.resource_version)
"""Drops updates that repeat a state."""

labels_changed: Predicate = _Changed(lambda old, new: (old.labels or {}) != (new.labels or {}))
"""Drops updates that leave the labels alone."""

annotations_changed: Predicate = _Changed(lambda old, new: old.annotations() != new.annotations())
"""Drops updates that leave the annotations alone. Decodes both states: combine it after a cheaper one."""

# Passes objects that come, go or are made anew, and no change of one.
existence_changed: Predicate = _Changed(lambda old, new: old.uid != new.uid)
