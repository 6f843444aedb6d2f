"""Misfits: stored objects that do not fit the class that they are read as. One of them must not hide the rest."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from kopylite.errors import DecodeError
from kopylite.objects import Adapter, Kind

T = TypeVar("T")

logger = logging.getLogger("kopylite.client")

OnInvalid = Literal["skip", "raise"]
"""What a list does with an object that does not fit: leave it out and report it, or fail as a whole."""

# Beyond so many misfits, the oldest are told again.
MAX_KNOWN = 4096


class Misfits:
    """Decodes lists, and tells of each object that does not fit, once per change of it.

    Args:
        listener: told of them, besides the log. Must not raise.
    """

    __slots__ = ("_known", "_listener")

    def __init__(self, listener: Callable[[DecodeError], None] | None = None) -> None:
        self._listener = listener
        # The version that was told of, by kind and uid; the least recently seen first.
        self._known: OrderedDict[tuple[Kind, str], str] = OrderedDict()

    def decode_all(self, adapter: Adapter[T], bodies: Iterable[bytes], invalid: OnInvalid = "skip") -> list[T]:
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
                self.tell(adapter.kind, error)
        return objects

    def tell(self, kind: Kind, error: DecodeError) -> None:
        """Tell of an object that was left out, unless this version of it was told of before."""
        uid, version = (error.object.uid, error.object.resource_version) if error.object is not None else ("", "")
        known = self._known.get((kind, uid))
        self._known[kind, uid] = version
        self._known.move_to_end((kind, uid))
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if known != version:
            logger.error("left out: %s", error)
            if self._listener is not None:
                self._listener(error)
