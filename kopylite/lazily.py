"""A room's names, each imported when it is first asked for: who needs one of them does not load the whole room.

`from kopylite.client import load_config` in a room's `__init__` style would import all that the room exports, with
all that it needs. So an `__init__` shows its imports to type checkers only, and finds a name when somebody wants it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def found_in(room: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    Args:
        room: the package.
        homes: module -> the names that the package has from it, with spaces between; a test compares them with what
            the type checker sees. A name that a module of the package has, too, is not among them, since the module
            is found first: the `__init__` imports it outright.
    """
    assert not any(f"{room}.{name}" in homes for names in homes.values() for name in names.split()), room
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[room], name, value)  # the next time it is an attribute as any other
        return value

    return find
