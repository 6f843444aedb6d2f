"""How long others wait while the embedded server makes its largest documents: the longest turn beside the whole work.

    python -m tests.bench.bench_stalls

One ratio a document: 100 % says that nobody was served until it was ready. Fails above a fifth.
"""

from __future__ import annotations

import sys
import time

import anyio
import anyio.lowlevel

from kopylite.apiserver.openapi import v2_protobuf, v3_protobuf
from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions

MOST = 0.2
DOCUMENTS = [("/openapi/v2", v2_protobuf.PROTOBUF), ("/openapi/v3/api/v1", v3_protobuf.PROTOBUF)]


async def longest_turn(server: ApiServer, path: str, accept: str) -> tuple[float, float]:
    """Seconds of the longest turn that nobody else had, and of the whole."""
    turns: list[float] = []

    async def tick() -> None:
        before = time.perf_counter()
        while True:
            await anyio.lowlevel.checkpoint()
            now = time.perf_counter()
            turns.append(now - before)
            before = now

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await anyio.lowlevel.checkpoint()
        began = time.perf_counter()
        response = await server.handle(HttpRequest.of("GET", path, headers={"accept": accept}))
        whole = time.perf_counter() - began
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert response.status == 200
    return max(turns), whole


async def main() -> int:
    worst = 0.0
    for path, accept in DOCUMENTS:
        async with ApiServer(ApiServerOptions(listen=False)) as server:
            longest, whole = await longest_turn(server, path, accept)
        ratio = longest / whole
        worst = max(worst, ratio)
        print(f"{path}: {ratio:.0%} ({longest * 1000:.0f} ms of {whole * 1000:.0f} ms)")
    return 1 if worst > MOST else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main))
