"""Query and Answer: what a handler gets and gives, without a word of the HTTP library behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec


class Query(msgspec.Struct, frozen=True):
    """A GET request.

    Attributes:
        tail: the path after the route's own, without the leading slash; "" for the route itself.
        parameters: the query string; a name may occur more than once.
        accept: the Accept header, "" if there is none.
    """

    tail: str = ""
    parameters: dict[str, list[str]] = msgspec.field(default_factory=dict)
    accept: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What is sent back."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


RouteHandler = Callable[[Query], Answer | Awaitable[Answer]]
"""Answers soon: it runs on the event loop, so it must not block, and limits what it waits for."""
