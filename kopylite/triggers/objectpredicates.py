"""Predicates that look into the objects: by a function of them, or at single fields. Pure.

They decode what the cache holds as bytes, so combine them behind a cheaper one, as in
`generation_changed & field_changed("spec.id")`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from kopylite.boundary import name_of
from kopylite.cache import Record
from kopylite.client.paths import check_path, parse_path, top_reader, value_at
from kopylite.errors import RegistrationError, UsageError
from kopylite.objects import Kind, adapter_of, kind_of
from kopylite.triggers.events import Event, EventType
from kopylite.triggers.predicates import Predicate, answer, require_plain

logger = logging.getLogger("kopylite.triggers")

# A field that so many updates in a row did not have on either side is probably misspelt.
MISSING_TO_WARN: Final = 20
_ANY: Final = Kind("v1", "Object")


def when(function: Callable[[Any], bool] | Callable[[Any, Any], bool]) -> Predicate:
    """A predicate from a function of the objects, each read as the kind that the predicate stands at.

    Of two arguments, `when(lambda old, new: old.spec != new.spec)`, it judges updates, and all else passes. Of one,
    `when(lambda obj: obj.spec.shard == 3)`, it judges every event, which passes if one of its states does: that an
    object stopped matching is news as well. Also usable as a decorator.

    Where it raises, or an object does not fit its class, the event passes, and the log says so once.

    Raises:
        RegistrationError: it is async, or takes another number of arguments.
    """
    return _Objects(require_plain(function, "when"), _arguments(function), _ANY)


def field_changed(*paths: str) -> Predicate:
    """Drops updates that leave all of these fields alone, e.g. `field_changed("spec.id", "metadata.labels.team")`.

    A list on the way stands for all of its items; a name with dots in it stands in brackets,
    "metadata.annotations['example.com/team']". A field that a CustomResource class does not have is refused where the
    predicate is declared; of other kinds, a warning names a field that no object has, once.

    Raises:
        RegistrationError: there are none, or one is no path.
    """
    if not paths:
        raise RegistrationError("field_changed needs the path of a field, as in field_changed('spec.id')")
    try:
        return _FieldChanged(tuple((path, parse_path(path)) for path in paths))
    except UsageError as error:
        raise RegistrationError(f"field_changed: {error}") from None


class _Objects(Predicate):
    __slots__ = ("_arguments", "_decode", "_function")

    def __init__(self, function: Callable[..., bool], arguments: int, kind: Kind | type[Any]) -> None:
        self._function = function
        self._arguments = arguments
        self._decode: Callable[[bytes], Any] = adapter_of(kind).decode

    @property
    def __name__(self) -> str:
        return f"when({name_of(self._function)})"

    def bound_to(self, kind: Kind | type[Any], *, metadata_only: bool = False) -> Predicate:
        return _Objects(self._function, self._arguments, kind_of(kind) if metadata_only else kind)

    def __call__(self, event: Event) -> bool:
        if self._arguments == 1:
            return any(answer(self._function(self._decode(r.body))) for r in (event.new, event.old) if r is not None)
        if event.type is not EventType.UPDATE or event.old is None or event.new is None:
            return True
        return answer(self._function(self._decode(event.old.body), self._decode(event.new.body)))


class _FieldChanged(Predicate):
    __slots__ = ("_missing", "_paths", "_where")

    def __init__(self, paths: tuple[tuple[str, tuple[str, ...]], ...], where: str = "") -> None:
        self._paths = paths
        self._where = where
        # By path: updates that did not have it; a path that was found, or told of, is not in it.
        self._missing = {path: 0 for path, _ in paths}

    @property
    def __name__(self) -> str:
        return f"field_changed({', '.join(repr(path) for path, _ in self._paths)})"

    def bound_to(self, kind: Kind | type[Any], *, metadata_only: bool = False) -> Predicate:
        for path, names in self._paths:
            if metadata_only and names[0] not in ("metadata", "apiVersion", "kind"):
                raise UsageError(
                    f"field_changed: {path!r} is not watched: of metadata_only=True, metadata is all there is"
                )
            try:
                check_path(kind, path)
            except UsageError as error:
                raise UsageError(f"field_changed: {error}") from None
        return _FieldChanged(self._paths, str(kind_of(kind)))

    def __call__(self, event: Event) -> bool:
        if event.type is not EventType.UPDATE or event.old is None or event.new is None:
            return True
        old, new = event.old, event.new
        return any(self._differs(path, names, old, new) for path, names in self._paths)

    def _differs(self, path: str, names: tuple[str, ...], old: Record, new: Record) -> bool:
        read = top_reader(names[0])
        before, after = bytes(read(old.body).value), bytes(read(new.body).value)
        if before == after and path not in self._missing:
            return False
        values = [value_at(msgspec.json.decode(part or b"null"), names[1:]) for part in (before, after)]
        if path in self._missing:
            self._look(path, found=any(value is not None for value in values))
        # By its JSON: to Python, 1 and true are equal.
        return _text(values[0]) != _text(values[1])

    def _look(self, path: str, *, found: bool) -> None:
        """Note whether a field is there; one that never is, is told of once."""
        self._missing[path] += 1
        if found or self._missing[path] >= MISSING_TO_WARN:
            del self._missing[path]
        if not found and path not in self._missing:
            text = "predicate field_changed(%r): the first %d changes of %s had no such field; is it spelt rightly?"
            logger.warning(text, path, MISSING_TO_WARN, self._where)


def _text(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _arguments(function: Callable[..., Any]) -> int:
    """How many objects a function asks for: its arguments without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    required = sum(each.kind in kinds and each.default is each.empty for each in parameters)
    if required not in (1, 2):
        raise RegistrationError(
            f"when({name_of(function)}) takes {required} arguments; write lambda obj: ..., or lambda old, new: ..."
        )
    return required
