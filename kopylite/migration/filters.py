"""kopf's filters of handlers: labels, annotations, a field, a value, and functions of all arguments. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict

from kopylite.migration.arguments import at

Test = Callable[..., bool]


class Presence(enum.Enum):
    """kopf.PRESENT and kopf.ABSENT."""

    PRESENT = "present"
    ABSENT = "absent"


PRESENT, ABSENT = Presence.PRESENT, Presence.ABSENT


class Filters(TypedDict, total=False):
    """What a declaration of kopf filters by. All of them have to pass."""

    labels: Mapping[str, Any] | None
    annotations: Mapping[str, Any] | None
    when: Test | None
    field: str | tuple[str, ...] | list[str] | None
    value: Any
    new: Any


def matches(arguments: Mapping[str, Any], filters: Filters) -> bool:
    """Whether a handler with these filters is for an object.

    Args:
        arguments: those of the handler; `body` is one of them.
    """
    for part in ("labels", "annotations"):
        chosen = filters.get(part)
        present = arguments["body"].metadata.get(part) or {}
        if isinstance(chosen, Mapping) and not all(_holds(present, key, chosen[key], arguments) for key in chosen):
            return False
    if path := filters.get("field"):
        found, value = at(arguments["body"], path)
        wanted = [filters[name] for name in ("value", "new") if filters.get(name) is not None]
        if not all(_fits(each, found, value, arguments) for each in wanted or [PRESENT]):
            return False
    test = filters.get("when")
    return test is None or bool(test(**arguments))


def _holds(present: Mapping[str, Any], key: str, wanted: Any, arguments: Mapping[str, Any]) -> bool:
    return _fits(PRESENT if wanted is None else wanted, key in present, present.get(key), arguments)


def _fits(wanted: Any, found: bool, value: Any, arguments: Mapping[str, Any]) -> bool:
    if wanted is PRESENT:
        return found
    if wanted is ABSENT:
        return not found
    if callable(wanted):
        return bool(wanted(value, **arguments))
    return found and bool(wanted == value)


def all_(tests: Collection[Test]) -> Test:
    """kopf.all_."""
    return lambda *args, **kwargs: all(test(*args, **kwargs) for test in tests)


def any_(tests: Collection[Test]) -> Test:
    """kopf.any_."""
    return lambda *args, **kwargs: any(test(*args, **kwargs) for test in tests)


def none_(tests: Collection[Test]) -> Test:
    """kopf.none_."""
    return lambda *args, **kwargs: not any(test(*args, **kwargs) for test in tests)


def not_(test: Test) -> Test:
    """kopf.not_."""
    return lambda *args, **kwargs: not test(*args, **kwargs)
