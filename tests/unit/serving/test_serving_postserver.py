"""Documents in and out: what is no call, what takes too long, and what is in progress at the end."""

from __future__ import annotations

import io

import aiohttp
import anyio
import pytest

from kopylite.errors import BadRequest
from kopylite.serving import Address, PostServer
from kopylite.serving.postserver import MAX_BODY, timeout_of
from tests.operators import eventually

JSON = {"Content-Type": "application/json"}


async def echo(body: bytes, timeout: float) -> bytes:
    if body == b"bad":
        raise BadRequest("no")
    if body == b"crash":
        raise ValueError("hunter2")
    return b'{"seconds": %g, "size": %d}' % (timeout, len(body))


def server(observed: list[tuple[str, int]] | None = None) -> PostServer:
    def observe(path: str, status: int, seconds: float) -> None:
        if observed is not None:
            observed.append((path, status))

    return PostServer(Address("127.0.0.1", 0), {"/hook": echo}, None, observe=observe, now=lambda: 0.0)


async def test_codes() -> None:
    observed: list[tuple[str, int]] = []
    async with server(observed) as running, aiohttp.ClientSession(f"http://{running.address}") as session:

        async def status(method: str, path: str, **options: object) -> int:
            async with session.request(method, path, **options) as response:  # type: ignore[arg-type]
                text = await response.text()
                assert "hunter2" not in text
                return response.status

        assert await status("POST", "/hook?timeout=3s", data=b"{}", headers=JSON) == 200
        assert await status("POST", "/hook", data=b"bad", headers=JSON) == 400
        assert await status("GET", "/hook") == 405
        assert await status("POST", "/hook", data=b"{}", headers={"Content-Type": "text/plain"}) == 415
        assert await status("POST", "/hook", data=b"{}", headers={**JSON, "Content-Encoding": "gzip"}) == 415
        assert await status("POST", "/hook", data=b"crash", headers=JSON) == 500
        assert await status("POST", "/elsewhere", data=b"{}", headers=JSON) == 404
        assert await status("POST", "/hook", data=io.BytesIO(b"x" * MAX_BODY), headers=JSON) == 200
    assert [code for _, code in observed] == [200, 400, 405, 415, 415, 500, 200]


async def test_a_caller_that_goes_in_the_middle_of_its_body_is_no_failure_of_the_webhook() -> None:
    observed: list[tuple[str, int]] = []
    async with server(observed) as running:
        stream = await anyio.connect_tcp(*running.address)
        await stream.send(
            b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{"
        )
        await stream.aclose()
        await eventually(lambda: observed, "its end is noticed")
    assert observed == [("/hook", 400)]


async def test_a_body_over_the_limit_is_not_read() -> None:
    async with server() as running:
        stream = await anyio.connect_tcp(*running.address)
        async with stream:
            head = "POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
            await stream.send(f"{head}{MAX_BODY + 1}\r\n\r\n".encode())
            assert b"413" in await stream.receive()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("500ms", 0.5), ("1m", 30.0), ("", 10.0), ("0s", 10.0), ("-1s", 10.0), ("x" * 1000, 10.0)],
)
def test_the_callers_timeout(text: str, seconds: float) -> None:
    assert timeout_of(text) == seconds


async def test_a_call_in_progress_is_answered_when_the_server_stops() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def slow(body: bytes, timeout: float) -> bytes:
        begun.set()
        await go_on.wait()
        return b"{}"

    statuses: list[int] = []
    running = PostServer(Address("127.0.0.1", 0), {"/hook": slow}, None, now=lambda: 0.0)
    async with aiohttp.ClientSession() as session, anyio.create_task_group() as tasks, running:
        url = f"http://{running.address}/hook"

        async def call() -> None:
            async with session.post(url, data=b"{}", headers=JSON) as response:
                statuses.append(response.status)

        tasks.start_soon(call)
        await begun.wait()
        assert running.in_flight == {"/hook": 1}
        tasks.start_soon(_set_later, go_on)
    assert statuses == [200]


async def _set_later(event: anyio.Event) -> None:
    await anyio.lowlevel.checkpoint()
    event.set()
