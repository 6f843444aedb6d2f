"""One client does not stop the others: slow ones, many, large objects, and watches that ended."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from kopylite.apiserver import front
from kopylite.apiserver import server as server_module
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.apiserver.storage.store import HISTORY_BYTES
from kopylite.apiserver.world import Disconnect
from tests.machine import require_open_files
from tests.unit.apiserver.conftest import CONFIG_MAPS, CRDS, WIDGETS, Api, widget_crd

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture
async def listening(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    monkeypatch.setattr(server_module, "_IDLE_SECONDS", 1.0)
    monkeypatch.setattr(front, "_BODY_IDLE_SECONDS", 0.2)
    monkeypatch.setattr(front, "_BODY_SECONDS", 1.0)
    async with ApiServer(ApiServerOptions(anonymous=True)) as server:
        yield server


async def exchange(server: ApiServer, sent: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    with anyio.fail_after(20):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_half_sent_request_is_closed(listening: ApiServer) -> None:
    assert await exchange(listening, b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") == b""


async def test_a_body_that_stands_still_is_answered_and_closed(listening: ApiServer) -> None:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{{"
    answer = await exchange(listening, head.encode())
    assert answer.startswith(b"HTTP/1.1 504 ")


async def drip(server: ApiServer, head: bytes) -> bytes:
    """Send a head at once and then a byte from time to time; everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head)

    async def send_for_ever() -> None:
        while True:
            writer.write(b"x")
            await anyio.sleep(0.05)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(send_for_ever)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while part := await reader.read(1000):
                    answer += part
            group.cancel_scope.cancel()
    writer.close()
    return answer


@pytest.mark.parametrize("length", ["Content-Length: 100000", "Transfer-Encoding: chunked\r\n\r\n1000"])
async def test_a_body_that_drips_is_answered_and_closed(listening: ApiServer, length: str) -> None:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n"
    answer = await drip(listening, head.encode() + (b"" if "chunked" in length else b"\r\n"))
    assert answer.startswith(b"HTTP/1.1 504 ")


async def test_a_head_that_drips_is_closed(listening: ApiServer) -> None:
    assert await drip(listening, b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") == b""


async def test_more_half_sent_requests_than_files_by_default_stop_nobody(listening: ApiServer) -> None:
    require_open_files(3000)
    slow = [await asyncio.open_connection("127.0.0.1", listening.port) for _ in range(1100)]
    for _, writer in slow:
        writer.write(b"GET /version HTTP/1.1\r\n")
    answer = await exchange(listening, b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    for _, writer in slow:
        writer.close()


async def test_long_headers_and_paths_are_taken_as_by_a_real_server(listening: ApiServer) -> None:
    for query, header in (("x" * 9000, ""), ("", "X-Long: " + "a" * 200_000 + "\r\n")):
        request = f"GET /version?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n"
        assert (await exchange(listening, request.encode())).startswith(b"HTTP/1.1 200 ")


async def test_a_compressed_body_is_not_unpacked(listening: ApiServer) -> None:
    bomb = gzip.compress(json.dumps({"metadata": {"name": "a"}, "data": {"a": "a" * 2_000_000}}).encode())
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
    answer = await exchange(listening, f"{head}Content-Length: {len(bomb)}\r\n\r\n".encode() + bomb)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"(1f8b08" in answer


async def test_a_token_that_is_no_ascii_is_unauthorized(listening: ApiServer) -> None:
    request = "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer é\r\n\r\n"
    assert (await exchange(listening, request.encode())).startswith(b"HTTP/1.1 401 ")


async def test_the_history_of_large_objects_is_bounded_by_bytes(api: Api) -> None:
    await api.config_map("big")
    collection = api.world.store.collection("configmaps")
    for index in range(120):
        data = {"data": {"a": f"{index:04}" + "x" * 1_000_000}}
        assert (await api.call("PATCH", f"{CONFIG_MAPS}/big", data))[0] == 200
        held = sum(change.size for change in collection.changes)
        assert held == collection.changes_bytes <= HISTORY_BYTES * 1.25 + 3 * 1_001_000
    expired = await api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion=1001")
    assert (await expired.next())["object"]["code"] == 410


async def test_ended_watches_leave_nothing_behind(api: Api) -> None:
    collection = api.world.store.collection("configmaps")
    for _ in range(20):
        events = await api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={api.world.store.version}")
        with anyio.move_on_after(0.01):
            await events.next()
        await events.close()
    del events
    gc.collect()
    assert collection.waiters == []
    assert len(collection.subscriptions) == 0


async def test_a_watch_that_was_cut_before_its_first_event_holds_no_history(api: Api) -> None:
    async def cut(request: HttpRequest, response: Response) -> Response:
        raise Disconnect

    api.world.hooks.after.append(cut)
    with pytest.raises(Disconnect):
        await api.respond("GET", f"{CONFIG_MAPS}?watch=1")
    gc.collect()
    assert len(api.world.store.collection("configmaps").subscriptions) == 0


async def test_a_float_is_another_value_than_the_integer_it_equals(api: Api, open_crd: dict[str, Any]) -> None:
    await api.create(CRDS, open_crd)
    start = (
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"n":1,"list":[1]}}'
    )
    await api.create(WIDGETS, start)
    stored = await api.get(f"{WIDGETS}/a")
    whole = json.dumps(stored).replace('"n": 1,', '"n": 1.0,').encode()
    status, put = await api.call("PUT", f"{WIDGETS}/a", whole)
    assert (status, put.get("metadata", {}).get("generation")) == (200, 2), put["message"]
    assert put["spec"] == {"size": 1, "n": 1, "list": [1]}
    status, patched = await api.call("PATCH", f"{WIDGETS}/a", b'{"spec":{"list":[1.0]}}')
    assert (status, patched["metadata"]["generation"]) == (200, 3)
    status, same = await api.call("PATCH", f"{WIDGETS}/a", b'{"spec":{"list":[1]}}')
    assert (status, same["metadata"]["generation"]) == (200, 3)


@pytest.mark.parametrize(("field", "limit", "said"), [("note", 1024, "message"), ("reason", 128, "reason")])
async def test_the_limits_of_events_count_bytes(api: Api, field: str, limit: int, said: str) -> None:
    def event(text: str) -> dict[str, Any]:
        full = {
            "reason": "a",
            "note": "a",
            "action": "a",
            "reportingController": "example.com/a",
            "reportingInstance": "a",
        }
        regarding = {"kind": "Pod", "name": "a", "namespace": "default"}
        times = {
            "eventTime": "2024-01-01T00:00:00.000000Z",
            "type": "Normal",
            "regarding": regarding,
            "reportingController": "example.com/a",
        }
        return {"metadata": {"generateName": "e-"}, **full, **times, field: text}

    assert (await api.call("POST", EVENTS, event("é" * (limit // 2))))[0] == 201
    status, answer = await api.call("POST", EVENTS, event("é" * (limit // 2 + 1)))
    assert status == 422
    assert f"{said}: Invalid value: " in answer["message"]
    assert f"can have at most {limit} characters" in answer["message"]


async def test_thousands_of_owners_are_checked(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
    owners = [{**owner, "name": f"a{i}", "uid": f"u{i}"} for i in range(5000)]
    status, answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a", "ownerReferences": owners}})
    assert status == 422
    assert "Only one reference can have Controller set to true" in answer["message"]


@pytest.mark.parametrize(
    "rule",
    [
        "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))",
        "self.filter(x, self.exists(y, self.exists(z, x + y + z < 0))).size() == 0",
        "self.map(x, self.map(y, self.map(z, x + y + z))).size() > 0",
        "self.all(i, x, self.all(j, y, self.all(k, z, x + y + z >= 0)))",
        "'a'" + ".replace('a', 'aaaaaaaaaa')" * 7 + ".size() > 0",
    ],
)
async def test_a_rule_that_computes_too_long_is_stopped(api: Api, rule: str) -> None:
    rules = [{"rule": rule}]
    numbers = {"type": "array", "maxItems": 80, "items": {"type": "integer"}, "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"n": numbers}}
    await api.create(CRDS, widget_crd(schema={"openAPIV3Schema": schema}, subresources={}))
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    status, answer = await api.call("POST", WIDGETS, {**head, "metadata": {"name": "a"}, "n": list(range(80))})
    assert status == 422
    assert "operation cancelled: actual cost limit exceeded" in answer["message"]
    # The limit is that of one object: the next one has its own.
    small = await api.call("POST", WIDGETS, {**head, "metadata": {"name": "b"}, "n": [1]})
    assert small[0] == (422 if "replace" in rule else 201), small[1]


async def test_a_rule_that_takes_long_does_not_hold_the_event_loop(api: Api) -> None:
    rules = [{"rule": "self.all(x, self.all(y, x + y >= 0))"}] * 3
    numbers = {"type": "array", "maxItems": 400, "items": {"type": "integer"}, "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"n": numbers}}
    await api.create(CRDS, widget_crd(schema={"openAPIV3Schema": schema}, subresources={}))
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "n": list(range(250))}
    turns, answers = 0, []

    async def write() -> None:
        answers.append(await api.call("POST", WIDGETS, body))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        while not answers:
            await anyio.sleep(0.001)
            turns += 1
    assert answers[0][0] == 201, answers[0][1]
    assert turns > 3


@pytest.mark.parametrize("name", ["spend", "0spend", "k_0spend"])
async def test_what_counts_the_cost_cannot_be_called(api: Api, name: str) -> None:
    numbers = {"type": "integer", "x-kubernetes-validations": [{"rule": f"{name}(-1000)"}]}
    schema = {"type": "object", "properties": {"n": numbers}}
    status, _ = await api.call("POST", CRDS, widget_crd(schema={"openAPIV3Schema": schema}, subresources={}))
    assert status == 422


async def test_a_client_that_asks_before_it_sends_its_body_is_told_to_go_on(listening: ApiServer) -> None:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 25\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
    with anyio.fail_after(20):
        writer.write(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b'{"metadata":{"name":"a"}}')
        assert (await reader.read()).startswith(b"HTTP/1.1 201 ")
    writer.close()
    other = await exchange(listening, f"{head}Expect: 200-maybe\r\n\r\n".encode())
    assert other.startswith(b"HTTP/1.1 417 ")
    assert b"aiohttp" not in other
