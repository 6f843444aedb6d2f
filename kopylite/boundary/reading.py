"""The guard around everything that parses foreign bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

D = TypeVar("D")
T = TypeVar("T")


def read(parse: Callable[[D], T], data: D, refuse: Callable[[D, Exception], Exception]) -> T:
    """What `parse` makes of `data`; whatever it raises comes out as the error that `refuse` makes of both.

        read(_decode_list, body, _no_list)

    The parser's own exception is not chained: its text and its traceback may show what was parsed, and that may be a
    secret. `refuse` decides how much of it may be said; `say(error)` makes it a text.

    Args:
        parse: may raise anything.
        data: of any length and depth.
        refuse: makes the documented error; must not raise.
    """
    try:
        return parse(data)
    except Exception as error:
        failure = refuse(data, error)
    raise failure
