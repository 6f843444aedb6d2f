"""What is waited for before anything begins: an API server that answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite.client import ApiRequest, ClientConfig, Transport
from kopylite.client.live import LiveClient
from kopylite.errors import ApiError, ConnectionFailed, KubeconfigError, TransportError
from kopylite.manager.connection import NAMESPACES_AT_A_TIME, missing_namespaces, opened, wait_for_server
from kopylite.observers import ClientObserver
from kopylite.testing.clock import VirtualClock

CONFIG = ClientConfig("https://kube.example.com", source="the test")
GOOD = (200, b'{"gitVersion": "v1.36.2"}')

Answer = tuple[int, bytes] | Exception | None


class Server:
    """Answers one after the other, the last one for ever; None: never."""

    def __init__(self, clock: VirtualClock, *answers: Answer) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.asked: list[float] = []

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[Any]:
        assert (request.method, request.path) == ("GET", "/version")
        self.asked.append(self._clock.monotonic())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            await anyio.sleep_forever()
            raise AssertionError
        if isinstance(answer, Exception):
            raise answer
        status, body = answer

        async def read() -> bytes:
            return body

        yield SimpleNamespace(status=status, read=read)


def waited(*answers: Answer, limit: float = 60.0) -> list[float]:
    """When the server was asked, until it was taken for one. Raises what `wait_for_server` does."""
    clock = VirtualClock()
    server = Server(clock, *answers)
    began = clock.monotonic()
    clock.run(lambda: wait_for_server(cast("Transport", server), CONFIG, limit, clock))
    return [moment - began for moment in server.asked]


def test_each_pause_is_twice_the_one_before_up_to_five_seconds(caplog: pytest.LogCaptureFixture) -> None:
    gone = TransportError("nobody listens")
    assert waited(*[gone] * 7, GOOD) == pytest.approx([0, 0.5, 1.5, 3.5, 7.5, 12.5, 17.5, 22.5])
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 7
    assert "nobody listens; trying again in 0.5 s, until 60 s have passed" in caplog.text


def test_a_server_that_does_not_answer_is_given_up_and_asked_again() -> None:
    assert waited(None, GOOD) == pytest.approx([0, 5.5])


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((401, b"{}"), KubeconfigError, "https://kube.example.com refuses the credentials"),
        ((503, b"not yet"), ConnectionFailed, "https://kube.example.com is not ready: "),
        ((500, b""), ConnectionFailed, "https://kube.example.com is not ready: "),
        ((200, b"<html>"), ConnectionFailed, "no Kubernetes API server: its /version is none"),
        ((200, b'{"gitVersion": 5}'), ConnectionFailed, "no Kubernetes API server: its /version is none"),
        ((404, b"nothing here"), ConnectionFailed, "no Kubernetes API server: its /version answers 404"),
        ((499, b"odd"), ConnectionFailed, "no Kubernetes API server: its /version answers 499"),
        ((400, b"Client sent an HTTP request to an HTTPS server."), ConnectionFailed, "speaks TLS: write https://"),
        ((400, b"what?"), ConnectionFailed, "its /version answers 400"),
        (None, ConnectionFailed, "no answer from https://kube.example.com within 5 s"),
        (TransportError("nobody listens"), ConnectionFailed, "nobody listens"),
    ],
)
def test_who_gives_up_says_why_and_where_the_address_is_from(
    answer: Answer, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        waited(answer, limit=3.0)
    assert str(raised.value).startswith("gave up after ")
    assert words in str(raised.value)
    assert "(the test)" in str(raised.value)


def test_it_gives_up_before_a_pause_that_would_outlast_the_limit() -> None:
    clock = VirtualClock()
    server, began = Server(clock, TransportError("gone")), clock.monotonic()
    for limit, tries in ((0.0, 1), (0.5, 1), (0.6, 2)):
        server.asked.clear()
        with pytest.raises(ConnectionFailed):
            clock.run(partial(wait_for_server, cast("Transport", server), CONFIG, limit, clock))
        assert len(server.asked) == tries
    assert clock.monotonic() - began == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (GOOD, "connected to https://kube.example.com, Kubernetes v1.36.2, by the test"),
        ((403, b"{}"), "connected to https://kube.example.com, Kubernetes of a version that it does not tell"),
        ((200, b'{"gitVersion": "v1\\u001b[2J\\n"}'), "Kubernetes v1"),
    ],
)
def test_a_server_that_answers_is_told_of_in_one_line(
    answer: Answer, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert waited(answer) == [0]
    [message] = caplog.messages
    assert told in message
    assert message.isprintable(), "a server may not write to the terminal of whoever reads the log"


async def test_a_transport_is_closed_with_the_run_also_when_that_is_cancelled() -> None:
    closed: list[ClientConfig] = []

    def connect(config: ClientConfig, **parts: object) -> Any:
        async def aclose() -> None:
            await anyio.lowlevel.checkpoint()
            closed.append(config)

        return SimpleNamespace(aclose=aclose)

    with anyio.CancelScope() as scope:
        async with AsyncExitStack() as stack:
            opened(connect, VirtualClock(), stack, CONFIG, ClientObserver())
            assert closed == []
            scope.cancel()
            await anyio.sleep(1)
    assert closed == [CONFIG]


async def test_only_namespaces_that_are_known_not_to_be_there_are_missing() -> None:
    """Who may not look at namespaces may work in them: not allowed, or not answered, is not missing."""
    now, most = 0, 0

    class Client:
        async def find(self, kind: object, name: str) -> object:
            nonlocal now, most
            now, most = now + 1, max(most, now + 1)
            await anyio.lowlevel.checkpoint()
            now -= 1
            if name == "forbidden":
                raise ApiError("not for you", code=403)
            if name == "broken":
                raise OSError("cut")
            return None if name.startswith("no") else object()

    names = ["there", "forbidden", "nowhere", "broken", "nobody", *(f"there-{number}" for number in range(30))]
    assert await missing_namespaces(cast("LiveClient", Client()), names) == ["nobody", "nowhere"]
    assert 1 < most <= NAMESPACES_AT_A_TIME
    assert await missing_namespaces(cast("LiveClient", Client()), []) == []
