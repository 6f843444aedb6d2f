"""No bytes on a connection stop the server, make it answer with a fault of its own, or fill its log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator

import anyio
import pytest

from kopylite.apiserver import front
from kopylite.apiserver import server as server_module
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from tests.unit.apiserver.rawhttp import Raw, RawFuzz

# More seeds find more: KOPYLITE_FUZZ_SEEDS=200 runs for some minutes.
SEEDS = int(os.environ.get("KOPYLITE_FUZZ_SEEDS", "3"))
CONNECTIONS = 150
AT_ONCE = 50


@pytest.fixture
async def listening(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    monkeypatch.setattr(server_module, "_IDLE_SECONDS", 1.0)
    monkeypatch.setattr(front, "_BODY_IDLE_SECONDS", 0.5)
    async with ApiServer(ApiServerOptions(anonymous=True)) as server:
        yield server


async def exchange(server: ApiServer, raw: Raw) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    answer = b""
    with contextlib.suppress(ConnectionError):
        for begin in range(0, len(raw.sent), raw.step or len(raw.sent)):
            writer.write(raw.sent[begin : begin + (raw.step or len(raw.sent))])
            await writer.drain()
        with anyio.fail_after(60):
            while part := await reader.read(65536):
                answer += part
    writer.close()
    return answer


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_odd_http_is_answered_or_closed(
    listening: ApiServer, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    fuzz, limit = RawFuzz(seed), anyio.CapacityLimiter(AT_ONCE)
    answers: list[tuple[Raw, bytes]] = []

    async def one(raw: Raw) -> None:
        async with limit:
            answers.append((raw, await exchange(listening, raw)))

    async with anyio.create_task_group() as group:
        for _ in range(CONNECTIONS):
            group.start_soon(one, fuzz.connection())
    for raw, answer in answers:
        assert answer == b"" or answer.startswith(b"HTTP/"), (raw.sent[:500], answer[:200])
        assert b" 500 Internal" not in answer, (raw.sent[:2000], answer[:500])
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING], caplog.text[-3000:]
    codes = {int(answer[9:12]) for _, answer in answers if answer}
    assert {200, 400, 404} <= codes
