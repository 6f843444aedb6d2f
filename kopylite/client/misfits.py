"""Misfits: stored objects that do not fit the class that a list was asked for. One of them must not hide the rest."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from kopylite.errors import DecodeError
from kopylite.objects import Adapter, Kind

T = TypeVar("T")

LOGGER = logging.getLogger("kopylite.client")

Invalid = Literal["skip", "raise"]
"""What a list does with an object that does not fit: leave it out and report it, or fail as a whole."""

# Beyond so many misfits, the oldest are told again.
MAX_KNOWN = 4096


class Misfits:
    """Decodes lists, and tells of each object that does not fit, once per change of it.

    Args:
        tell: told of them, besides the log. Must not raise.
    """

    __slots__ = ("_known", "_tell")

    def __init__(self, tell: Callable[[DecodeError], None] | None = None) -> None:
        self._tell = tell
        # The version that was told of, by kind and uid; the least recently seen first.
        self._known: OrderedDict[tuple[Kind, str], str] = OrderedDict()

    def decode_all(self, adapter: Adapter[T], bodies: Iterable[bytes], invalid: Invalid = "skip") -> list[T]:
        """The objects that fit.

        Raises:
            DecodeError: one does not, and `invalid` is "raise".
        """
        objects = []
        for body in bodies:
            try:
                objects.append(adapter.decode(body))
            except DecodeError as error:
                if invalid == "raise":
                    raise
                self._skip(adapter, error)
        return objects

    def _skip(self, adapter: Adapter[T], error: DecodeError) -> None:
        uid, version = (error.object.uid, error.object.resource_version) if error.object is not None else ("", "")
        key = (adapter.kind, uid)
        known = self._known.get(key)
        self._known[key] = version
        self._known.move_to_end(key)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if known != version:
            LOGGER.error("left out of a list: %s", error)
            if self._tell is not None:
                self._tell(error)
