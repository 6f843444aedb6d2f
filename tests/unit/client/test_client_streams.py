from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import pytest

from kopylite.client.streams import HIGH_WATER, Tap
from kopylite.errors import StreamBroken

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class Inner(asyncio.Protocol):
    """Stands for aiohttp's protocol."""

    def __init__(self) -> None:
        self.got = b""
        self.lost = False

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.protocol: asyncio.BaseProtocol | None = None
        self.reading = True
        self.aborted = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True


def tapped(*data: bytes) -> tuple[Tap, Wire, Inner]:
    wire, inner = Wire(), Inner()
    tap = Tap(wire, inner)
    for part in data:
        tap.data_received(part)
    return tap, wire, inner


async def read(tap: Tap, into: list[bytes]) -> None:
    async for piece in tap.chunks():
        into.append(piece)  # noqa: PERF401 - what came before an error counts


def bytewise(data: bytes) -> Sequence[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize("cut", [False, True])
async def test_aiohttp_gets_the_headers_and_the_reader_the_body(cut: bool) -> None:
    sent = HEAD + chunk(b"one\n") + chunk(b"two\n") + END
    tap, wire, inner = tapped(*(bytewise(sent) if cut else [sent]))
    assert tap.has_headers
    assert inner.got == HEAD
    assert not wire.reading  # nobody has said yet who reads
    found: list[bytes] = []
    await read(tap, found)
    assert b"".join(found) == b"one\ntwo\n"
    assert wire.reading


@pytest.mark.parametrize("cut", [False, True])
def test_an_interim_answer_is_not_the_answer(cut: bool) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    sent = early + HEAD + chunk(b"one")
    tap, _, inner = tapped(*(bytewise(sent) if cut else [sent]))
    assert tap.has_headers
    assert inner.got == early + HEAD


@pytest.mark.parametrize("cut", [False, True])
def test_what_is_passed_on_is_whole(cut: bool) -> None:
    sent = HEAD + chunk(b"one")
    tap, wire, inner = tapped(*(bytewise(sent) if cut else [sent]))
    tap.pass_on()
    assert inner.got == sent
    assert wire.protocol is inner
    assert wire.reading


@pytest.mark.parametrize("sent", [b"HTTP/1.0 200 OK\r\n\r\nbody", b" 200 OK\r\n\r\n" + chunk(b"one"), b"x"])
def test_what_does_not_begin_as_http_1_1_is_all_aiohttps(sent: bytes) -> None:
    tap, _, inner = tapped(sent)
    assert not tap.has_headers
    assert inner.got == sent


async def test_what_came_before_the_connection_broke_is_read_first() -> None:
    tap, _, inner = tapped(HEAD, chunk(b"one\n")[:-3])
    tap.connection_lost(ConnectionResetError())
    found: list[bytes] = []
    with pytest.raises(StreamBroken, match="the connection ended in mid-answer"):
        await read(tap, found)
    assert b"".join(found) == b"one"
    assert inner.lost


async def test_a_reader_that_waits_hears_of_the_end() -> None:
    tap, _, _ = tapped(HEAD)
    found: list[bytes] = []
    reading = asyncio.create_task(read(tap, found))
    await asyncio.sleep(0)
    tap.data_received(chunk(b"one"))
    tap.data_received(END)
    tap.connection_lost(None)  # after the end: no harm
    await reading
    assert found == [b"one"]


async def test_garbage_breaks_the_stream_and_cuts_the_connection() -> None:
    tap, wire, _ = tapped(HEAD, chunk(b"one") + b"<html>\r\n")
    with pytest.raises(StreamBroken, match="no chunk"):
        await read(tap, [])
    assert wire.aborted


async def test_a_reader_that_is_slow_makes_the_server_wait() -> None:
    tap, wire, _ = tapped(HEAD)
    async with aclosing(cast("AsyncGenerator[bytes, None]", tap.chunks())) as pieces:
        tap.data_received(chunk(b"first"))
        assert await anext(pieces) == b"first"
        tap.data_received(chunk(b"x" * HIGH_WATER))
        assert not wire.reading
        assert len(await anext(pieces)) == HIGH_WATER
        assert wire.reading


async def test_a_stream_that_ended_well_before_anybody_read_is_whole() -> None:
    tap, _, _ = tapped(HEAD, chunk(b"one") + END)
    tap.connection_lost(None)
    found: list[bytes] = []
    await read(tap, found)
    assert found == [b"one"]
