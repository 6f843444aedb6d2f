"""One connection, without a network: what comes in whatever pieces, and what is asked of the transport below."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.client.gunzip import MOST
from kopylite.client.wire import HIGH_WATER, LONGEST_HEAD, PIECE, Broken, HttpAnswer, HttpConnection, head_of, lines_of
from kopylite.errors import UsageError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
GET = head_of("GET", "/x", b"", None)


def chunk(piece: bytes, size: str = "{:x}") -> bytes:
    return size.format(len(piece)).encode() + b"\r\n" + piece + b"\r\n"


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Below(asyncio.Transport):
    """Stands for the socket."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.reading = True
        self.aborted = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True


def connected() -> tuple[HttpConnection, Below]:
    below = Below()
    connection = HttpConnection(asyncio.get_running_loop())
    connection.connection_made(below)
    return connection, below


async def asked(*came: bytes) -> tuple[HttpAnswer, HttpConnection, Below]:
    """The answer to a request of which so much has come."""
    connection, below = connected()
    answer = await connection.send(GET)
    for data in came:
        connection.data_received(data)
    return answer, connection, below


async def read(answer: HttpAnswer) -> bytes:
    await answer.begin()
    return b"".join([piece async for piece in answer.chunks()])


def bytewise(data: bytes) -> Sequence[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


pieces = st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n"]))
sizes = st.sampled_from(["{:x}", "{:X}", "{:04x}", "{:x};name=value"])
early = st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"])


@pytest.mark.asyncio(loop_factories=["asyncio"])
@given(pieces, sizes, early, st.booleans(), st.lists(st.integers(0, 400)), st.booleans())
async def test_wherever_the_bytes_are_cut_the_answer_is_the_same(
    parts: list[bytes], size: str, before: bytes, in_chunks: bool, cuts: list[int], packed: bool
) -> None:
    body = b"".join(parts)
    sent = gzip.compress(body, mtime=0) if packed else body
    headers = ["X-More: yes", *(["Content-Encoding: gzip"] if packed else [])]
    if in_chunks:
        head = "\r\n".join(["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *headers]).encode() + b"\r\n\r\n"
        step = max(1, len(sent) // 3)
        sent = head + b"".join(chunk(sent[at : at + step], size) for at in range(0, len(sent), step)) + END
    else:
        sent = whole(sent, *headers)
    answer, connection, below = await asked()
    reading = asyncio.ensure_future(read(answer))
    at = 0
    for cut in [*sorted(cuts), len(before + sent)]:
        if data := (before + sent)[at:cut]:
            connection.data_received(data)
            await asyncio.sleep(0)
            at = cut
    assert await reading == body
    assert (answer.status, answer.headers["x-more"], answer.ended) == (200, "yes", True)
    assert connection.usable
    assert not below.aborted


@pytest.mark.asyncio(loop_factories=["asyncio"])
@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED]))
async def test_whatever_comes_is_an_answer_or_the_end_of_the_connection(came: list[bytes], begin: bytes) -> None:
    answer, connection, _ = await asked(begin, *came)
    connection.eof_received()
    connection.connection_lost(None)
    with suppress(Broken):
        await read(answer)
    assert not connection.usable


async def test_headers_may_be_asked_in_any_case_and_come_more_than_once() -> None:
    answer, _, _ = await asked(whole(b"", 'Warning: 299 - "one"', 'warning: 299 - "zwölf"'))
    assert answer.headers.getall("WARNING") == ['299 - "one"', '299 - "zwölf"']


@pytest.mark.parametrize(
    "wrong",
    [
        b"{}\r\n", b"-3\r\nabc\r\n", b"+3\r\nabc\r\n", b"0x3\r\nabc\r\n", b"3_0\r\nabc\r\n", b"3\r\nabcdef\r\n3\r\n",
        b"1" * 17 + b"\r\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [b"", chunk(b"good")])
async def test_what_is_no_chunk_is_the_end_and_is_not_shown(wrong: bytes, before: bytes) -> None:
    answer, _, below = await asked(CHUNKED + before + wrong)
    with pytest.raises(Broken, match=r"^what came is no HTTP ") as caught:
        await read(answer)
    assert below.aborted
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        b"<html>", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01",
    ],
)  # fmt: skip
async def test_what_is_no_answer_is_the_end(wrong: bytes) -> None:
    answer, _, below = await asked(wrong)
    with pytest.raises(Broken, match=r"^what came is no HTTP "):
        await read(answer)
    assert below.aborted


@pytest.mark.parametrize("more", [b"X: " + b"y" * 1000 + b"\r\n", b"\r\nHTTP/1.1 100 Continue\r\n"])
async def test_headers_without_an_end_are_the_end(more: bytes) -> None:
    answer, connection, below = await asked(b"HTTP/1.1 100 Continue\r\n")
    for _ in range(LONGEST_HEAD // len(more)):
        assert not below.aborted
        connection.data_received(more)
    connection.data_received(more)
    with pytest.raises(Broken, match=r"^its headers are longer than 256 KiB$"):
        await answer.begin()
    assert below.aborted


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"0\r\nX: ", b"y" * 1000),
        (b"0\r\n", b"X: " + b"y" * 1000 + b"\r\n"),
        (b"1;name=", b"y" * 1000),
        (chunk(b"some") + b"1;", b"y" * 1000),
    ],
)
async def test_trailers_and_names_of_chunks_without_an_end_are_the_end(begin: bytes, more: bytes) -> None:
    answer, connection, below = await asked(CHUNKED + begin)
    for _ in range(LONGEST_HEAD // len(more)):
        assert not below.aborted
        connection.data_received(more)
    connection.data_received(more)
    with pytest.raises(Broken, match=r"^what stands beside its body is longer than 256 KiB$"):
        await read(answer)
    assert below.aborted


async def test_a_long_body_may_have_a_lot_between_its_pieces() -> None:
    answer, connection, _ = await asked(CHUNKED)
    for _ in range(2 * LONGEST_HEAD // 1000):
        connection.data_received(chunk(b"x", "{:x};" + "y" * 1000))
        assert answer.take() == b"x"
    connection.data_received(END)
    assert connection.usable


@pytest.mark.parametrize("come", [b"", b"HTTP/1.1 200 OK\r\nX: y", whole(b"{}" * 9)[:-1], CHUNKED + chunk(b"one")[:-3]])
async def test_an_answer_that_is_cut_is_no_answer(come: bytes) -> None:
    answer, connection, _ = await asked(come) if come else await asked()
    connection.eof_received()
    connection.connection_lost(None)
    said = "in mid-answer" if b"\r\n\r\n" in come else "before an answer came"
    with pytest.raises(Broken, match=f"^the connection ended {said}$"):
        await read(answer)
    assert not connection.usable


@pytest.mark.parametrize(
    "coding",
    [
        "chunked ",
        "chunked\t",
        "chunked, ",
        "gzip\r\nTransfer-Encoding: chunked",
        "chunked, identity",
        "identity",
        "xchunked",
    ],
)
async def test_an_answer_in_chunks_that_is_cut_is_none_however_the_chunks_were_announced(coding: str) -> None:
    answer, connection, _ = await asked(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n".encode(), chunk(b"a"))
    connection.eof_received()
    with pytest.raises(Broken, match="the connection ended in mid-answer"):
        await read(answer)


async def test_an_end_is_heard_while_something_is_still_to_be_sent() -> None:
    """Below, the connection stays open until all was sent; and this one does not read."""
    connection, below = connected()
    body = b"x" * (4 * PIECE)
    connection.pause_writing()
    sending = asyncio.ensure_future(connection.send(head_of("PUT", "/x", b"", body), body))
    await asyncio.sleep(0)
    connection.eof_received()
    assert below.aborted
    connection.connection_lost(None)
    with pytest.raises(Broken, match="before an answer came"):
        await (await sending).begin()


async def test_what_came_before_the_end_is_read_first() -> None:
    answer, connection, _ = await asked(CHUNKED, chunk(b"one\n")[:-3])
    connection.connection_lost(ConnectionResetError(104, "Connection reset by peer"))
    found: list[bytes] = []
    with pytest.raises(Broken, match="Connection reset by peer"):  # noqa: PT012 - the loop is what raises
        async for piece in answer.chunks():
            found.append(piece)  # noqa: PERF401 - what came before an error counts
    assert found == [b"one"]


async def test_a_body_may_end_with_the_connection() -> None:
    answer, connection, _ = await asked(b"HTTP/1.0 200 OK\r\n\r\none", b"two")
    connection.eof_received()
    connection.connection_lost(None)
    assert await read(answer) == b"onetwo"


async def test_a_reader_that_waits_hears_of_pieces_and_of_the_end() -> None:
    answer, connection, _ = await asked()
    reading = asyncio.ensure_future(read(answer))
    for data in bytewise(CHUNKED + chunk(b"one") + END):
        await asyncio.sleep(0)
        connection.data_received(data)
    connection.connection_lost(None)  # after the end: no harm
    assert await reading == b"one"


async def test_a_reader_that_is_slow_makes_the_server_wait() -> None:
    answer, connection, below = await asked(CHUNKED, chunk(b"first"))
    assert answer.take() == b"first"
    connection.data_received(chunk(b"x" * HIGH_WATER) + chunk(b"y"))
    assert not below.reading
    assert len(answer.take()) == HIGH_WATER + 1
    assert below.reading


@pytest.mark.parametrize(
    ("come", "again"),
    [
        (whole(b"{}"), True),
        (CHUNKED + END, True),
        (whole(b"{}", "Connection: close"), False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (whole(b"{}") + b"HTTP/1.1", False),
        (whole(b"{}") + b"<", False),
        (whole(b"{}", "Connection: close") + b"<", False),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nabc", False),
        (b"HTTP/1.1 101 Switching\r\n\r\n", False),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
)
async def test_when_a_connection_may_be_used_again(come: bytes, again: bool) -> None:
    answer, connection, below = await asked(come)
    await read(answer)
    assert connection.usable is again
    if again:
        connection.release()
        second = await connection.send(GET)
        connection.data_received(whole(b"second"))
        assert await read(second) == b"second"
        assert below.written == [GET, GET]


async def test_what_nobody_asked_for_ends_a_connection_that_waits() -> None:
    answer, connection, below = await asked(whole(b"1"))
    assert await read(answer) == b"1"
    connection.release()
    connection.data_received(whole(b"forged"))
    assert below.aborted
    assert not connection.usable


@pytest.mark.parametrize(
    ("sent", "encoding", "said"),
    [
        (b"x" * 20, "gzip", "is no gzip"),
        (gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0), "gzip", "goes on after its end"),
        (gzip.compress(b"one", mtime=0), "gzip\r\nContent-Encoding: gzip", "'gzip, gzip', which was not asked for"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-9], "gzip", "ends in the middle"),
        (b"abc", "br", "'br', which was not asked for"),
        (b"abc", "gzip, br", "which was not asked for"),
    ],
)
@pytest.mark.parametrize("in_chunks", [False, True])
async def test_an_encoding_that_is_none_is_no_answer(sent: bytes, encoding: str, said: str, in_chunks: bool) -> None:
    if in_chunks:
        begin = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
        answer, connection, _ = await asked(begin + chunk(sent))
        connection.data_received(END)
    else:
        answer, _, _ = await asked(whole(sent, f"Content-Encoding: {encoding}"))
    with pytest.raises(Broken, match=said):
        await read(answer)


async def test_however_much_is_packed_into_little_others_go_on_meanwhile() -> None:
    answer, _, _ = await asked(whole(gzip.compress(b"\x00" * (8 << 20), 9, mtime=0), "Content-Encoding: gzip"))
    turns: list[int] = []

    async def others() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(others())
    sizes = [len(piece) async for piece in answer.chunks()]
    beside.cancel()
    assert (sum(sizes), max(sizes)) == (8 << 20, MOST)
    assert len(turns) >= len(sizes) - 1


async def test_a_long_body_goes_in_pieces_as_fast_as_they_are_taken() -> None:
    connection, below = connected()
    body = bytes(range(256)) * (PIECE // 100)
    connection.pause_writing()
    sending = asyncio.ensure_future(connection.send(head_of("PUT", "/x", b"", body), body))
    await asyncio.sleep(0)
    assert len(below.written) == 1  # its head
    connection.resume_writing()
    await sending
    assert b"".join(below.written).partition(b"\r\n\r\n")[2] == body
    assert max(map(len, below.written)) == PIECE
    connection.data_received(whole(b""))
    assert connection.usable


@pytest.mark.parametrize("lost", [False, True])
async def test_who_answers_before_all_was_sent_is_sent_no_more(lost: bool) -> None:
    connection, below = connected()
    body = b"x" * (4 * PIECE)
    connection.pause_writing()
    sending = asyncio.ensure_future(connection.send(head_of("PUT", "/x", b"", body), body))
    await asyncio.sleep(0)
    if lost:
        connection.connection_lost(None)
    else:
        connection.data_received(whole(b"too large", status="413 Too Large"))
    answer = await sending
    assert len(below.written) == 1
    assert not connection.usable
    if lost:
        with pytest.raises(Broken):
            await read(answer)
    else:
        assert await read(answer) == b"too large"


async def test_nothing_is_sent_on_a_connection_that_ended() -> None:
    connection, below = connected()
    connection.connection_lost(None)
    with pytest.raises(Broken):
        await connection.send(GET)
    assert below.written == []


@pytest.mark.parametrize("method", ["HEAD", "get", "", "GET / HTTP/1.1\r\nX: y\r\n\r\n", "\ud800"])
def test_what_is_no_method_of_a_request_is_refused(method: str) -> None:
    with pytest.raises(UsageError, match="is no method of a request: one of CONNECT, DELETE, GET"):
        head_of(method, "/version", b"", None)


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\x00b", "\r", "\ud800"])
def test_no_header_and_no_target_becomes_another_line(value: str) -> None:
    with pytest.raises(UsageError, match="'X-Name' holds a control character"):
        lines_of([("X-Name", value)])
    with pytest.raises(UsageError, match="holds a control character"):
        lines_of([(value, "1")])
    for target in (f"/a{value}", "/a b", "", "/ä"):
        with pytest.raises(UsageError, match="is no path of a request"):
            head_of("GET", target, b"", None)


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("GET", None, None),
        ("DELETE", None, None),
        ("POST", None, 0),
        ("PATCH", b"", 0),
        ("DELETE", b"{}", 2),
        ("PUT", b"abc", 3),
    ],
)
def test_a_head_says_how_long_the_body_is(method: str, body: bytes | None, length: int | None) -> None:
    head = head_of(method, "/x?a=b%20c", lines_of([("Accept", "*/*")]), body)
    told = b"" if length is None else b"Content-Length: %d\r\n" % length
    assert head == f"{method} /x?a=b%20c HTTP/1.1\r\nAccept: */*\r\n".encode() + told + b"\r\n"
