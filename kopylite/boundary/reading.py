"""The guard around everything that parses foreign bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

D = TypeVar("D")
T = TypeVar("T")

# Seconds. client-go knows no such limit; kube-apiserver asks for seconds.
LONGEST_WAIT = 3600.0


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


def json_object(text: bytes) -> dict[str, Any]:
    """The JSON object that an answer may be; empty when it is none, or none that can be read."""
    try:
        found = json.loads(text)
    except Exception:
        return {}
    return found if isinstance(found, dict) else {}


def seconds_to_wait(asked: object) -> float | None:
    """The time that a server asks to wait, in seconds, an hour at most; None: it does not ask, or not for a time.

    A server that asks for years is broken, and whoever heeded it would be as good as dead.
    """
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked > 0:
        return None
    return float(min(asked, LONGEST_WAIT))
