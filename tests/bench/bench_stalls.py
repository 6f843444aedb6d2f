"""How long others wait while the embedded server answers a large request: the longest turn beside the whole work.

    python -m tests.bench.bench_stalls

One ratio a request: 100 % says that nobody was served until it was ready. Fails above a fifth.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import anyio
import anyio.lowlevel

from kopylite.apiserver.openapi import v2_protobuf, v3_protobuf
from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions

MOST = 0.2
ACCOUNTS, CONFIG_MAPS = "/api/v1/namespaces/default/serviceaccounts", "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def get(path: str, accept: str) -> HttpRequest:
    return HttpRequest.of("GET", path, headers={"accept": accept})


def send(method: str, path: str, obj: Any, form: str = "application/json") -> HttpRequest:
    return HttpRequest.of(method, path, headers={"content-type": form}, body=json.dumps(obj).encode())


def apply(value: str) -> HttpRequest:
    data = {f"key-{i}": value for i in range(10_000)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": data}
    return send("PATCH", f"{CONFIG_MAPS}/big?fieldManager=me", config, "application/apply-patch+yaml")


SECRETS = [{"name": f"s-{i}"} for i in range(8000)]
MOVED = {"$setElementOrder/secrets": SECRETS[::-1], "secrets": [{**s, "namespace": "x"} for s in SECRETS[::-1]]}
STRATEGIC = "application/strategic-merge-patch+json"
MANY = [send("POST", CONFIG_MAPS, {"metadata": {"name": f"m{i}"}, "data": {"a": "b" * 500}}) for i in range(5000)]
# What is there before, and the request.
REQUESTS: dict[str, tuple[list[HttpRequest], HttpRequest]] = {
    "/openapi/v2": ([], get("/openapi/v2", v2_protobuf.PROTOBUF)),
    "/openapi/v3/api/v1": ([], get("/openapi/v3/api/v1", v3_protobuf.PROTOBUF)),
    "server-side apply of 10,000 keys": ([apply("v")], apply("w")),
    "strategic patch of 8,000 items": (
        [send("POST", ACCOUNTS, {"metadata": {"name": "a"}, "secrets": SECRETS})],
        send("PATCH", f"{ACCOUNTS}/a", MOVED, STRATEGIC),
    ),
    "Table of 5,000 objects": (MANY, get(CONFIG_MAPS, TABLE)),
    "5,000 objects in protobuf": (MANY, get(CONFIG_MAPS, "application/vnd.kubernetes.protobuf")),
    "deletion of 5,000 objects": (MANY, HttpRequest.of("DELETE", CONFIG_MAPS)),
}


async def longest_turn(server: ApiServer, request: HttpRequest) -> tuple[float, float]:
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
        response = await server.handle(request)
        whole = time.perf_counter() - began
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert response.status == 200
    return max(turns), whole


async def main() -> int:
    worst = 0.0
    for name, (before, request) in REQUESTS.items():
        async with ApiServer(ApiServerOptions(listen=False)) as server:
            for one in before:
                assert (await server.handle(one)).status in (200, 201)
            longest, whole = await longest_turn(server, request)
        ratio = longest / whole
        worst = max(worst, ratio)
        print(f"{name}: {ratio:.0%} ({longest * 1000:.0f} ms of {whole * 1000:.0f} ms)")
    return 1 if worst > MOST else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main))
