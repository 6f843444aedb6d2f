"""Who is told which requests an operator sends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kopylite import App
from kopylite.client import ApiRequest, Transport
from kopylite.errors import ConnectionFailed
from kopylite.manager.operator import Operator
from kopylite.manager.recorded import RecordedTransport

APPS = (App("one"), App("two"))


class Server:
    """Fails as long as it is told to."""

    def __init__(self, story: list[str]) -> None:
        self._story = story
        self.away = False

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> Any:
        self._story.append(f"sent {request.path} within {timeout}")
        if self.away:
            raise ConnectionFailed("away")
        return "answer"

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[str]:
        self._story.append(f"streamed {request.path}")
        yield "stream"


async def test_each_request_is_told_before_it_is_sent_and_passed_on_as_it_is() -> None:
    story: list[str] = []

    class Recorder:
        def sent(self, apps: Sequence[Operator], request: ApiRequest) -> None:
            story.append(f"told {request.path} of {' '.join(app.name for app in apps)}")

    server = Server(story)
    transport = RecordedTransport(cast("Transport", server), APPS, Recorder())
    assert cast("str", await transport.request(ApiRequest("GET", "/a"), timeout=5.0)) == "answer"
    async with transport.stream(ApiRequest("GET", "/b")) as stream:
        assert cast("str", stream) == "stream"
    server.away = True
    with pytest.raises(ConnectionFailed):
        await transport.request(ApiRequest("GET", "/c"))
    assert story == [
        "told /a of one two", "sent /a within 5.0",
        "told /b of one two", "streamed /b",
        "told /c of one two", "sent /c within None",
    ]  # fmt: skip
