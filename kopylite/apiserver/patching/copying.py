"""Copies of decoded JSON. Pure; several times faster than copy.deepcopy, which JSON's trees do not need."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def copied(value: T) -> T:
    """A value that shares no dict and no list with the given one."""
    return _copied(value)  # type: ignore[no-any-return]


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {k: v if type(v) is str else _copied(v) for k, v in value.items()}
    return [_copied(v) for v in value] if type(value) is list else value
