"""Empty lists and maps that a client sends, where Go tells them from absent ones. Pure.

They are not stored, so this is to be seen in `generation` alone: it counts an update that sends one, each time.
"""

from __future__ import annotations

from typing import Any

# The one field of the kinds concerned that is a map; an empty object elsewhere is a struct, which is the same in Go.
_MAP = "matchLabels"


def has_empties(value: Any) -> bool:
    """Whether there is an empty list or map in a decoded part of an object."""
    if isinstance(value, list):
        return not value or any(map(has_empties, value))
    if isinstance(value, dict):
        return value.get(_MAP) == {} or any(map(has_empties, value.values()))
    return False


class _Fields(dict[str, Any]):
    """Equal to a dict, and no dict to `same_in_go`."""


class _Items(list[Any]):
    """Equal to a list, and no list to `same_in_go`."""


def told_apart(part: Any) -> Any:
    """The same part of an object, which differs from what is stored when changes are counted."""
    return _Items(part) if isinstance(part, list) else _Fields(part) if isinstance(part, dict) else part
