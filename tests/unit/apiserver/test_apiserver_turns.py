"""No request keeps the event loop from the others: how much happens in one of its turns, in calls, not in time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from kopylite.apiserver import aside as aside_module
from kopylite.apiserver import slices
from kopylite.apiserver.aside import LARGE, THREADS, aside, portions
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from tests.unit.apiserver.conftest import CONFIG_MAPS, CRDS, WIDGETS, Api, widget, widget_crd

# Some 10 to 20 ms. Each of the requests here makes many times as many.
MOST_CALLS = 60_000
APPLY, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MANY = 1500


class Turns:
    """Counts the calls that the thread of the event loop makes in each of its turns."""

    def __init__(self) -> None:
        self.calls = self.most = 0

    def _count(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1

    async def _tick(self) -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            self.most, self.calls = max(self.most, self.calls), 0

    async def of(self, work: Awaitable[Any]) -> int:
        """The calls of the longest turn while `work` is done."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._tick)
            await anyio.lowlevel.checkpoint()
            self.calls = self.most = 0
            sys.setprofile(self._count)
            try:
                await work
                await anyio.lowlevel.checkpoint()
            finally:
                sys.setprofile(None)
            group.cancel_scope.cancel()
        return self.most


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every slice is over at once, so that no machine is too fast to share its loop."""
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)


def request(method: str, path: str, obj: Any = None, **headers: str) -> HttpRequest:
    body = b"" if obj is None else msgspec.json.encode(obj)
    return HttpRequest.of(method, path, headers={n.replace("_", "-"): v for n, v in headers.items()}, body=body)


async def answered(api: Api, asked: HttpRequest, status: int = 200) -> None:
    response = await api.server.handle(asked)
    assert response.status == status, response.body[:300]


def keys(value: str, count: int = 10_000) -> dict[str, Any]:
    data = {f"key-{i}": value for i in range(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": data}


def pod(variables: int, name: str = "V") -> dict[str, Any]:
    env = [{"name": f"{name}{i}", "value": "1"} for i in range(variables)]
    spec = {"containers": [{"name": "c", "image": "i", "env": env}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def huge_crd(labels: dict[str, str] | None = None) -> dict[str, Any]:
    fields = {f"q{i}": {"type": "string", "maxLength": 5, "description": "d" * 40} for i in range(20)}
    parts = {f"p{i}": {"type": "object", "properties": fields} for i in range(150)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": parts}}}
    crd = widget_crd(schema={"openAPIV3Schema": schema}, subresources={})
    crd["metadata"]["labels"] = labels or {}
    return crd


def huge_widget(value: str) -> dict[str, Any]:
    spec = {f"p{i}": {f"q{j}": value for j in range(20)} for i in range(150)}
    return {**widget("a"), "spec": spec}


PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = [{"name": f"s-{i}"} for i in range(4000)]
ACCOUNT = {"metadata": {"name": "a"}, "secrets": SECRETS}
REVERSED = {"$setElementOrder/secrets": SECRETS[::-1], "secrets": [{**s, "namespace": "x"} for s in SECRETS[::-1]]}
BIG, APPLIED = f"{CONFIG_MAPS}/big", f"{CONFIG_MAPS}/big?fieldManager=me"
OPS = [{"op": "replace", "path": f"/data/key-{i}", "value": "w"} for i in range(10_000)]
REPEATED = b"".join(b'"k%d":1,' % (i // 2) for i in range(9000))
UNKNOWN = {f"x{i}": 1 for i in range(9000)}
# What is there before, and the request.
WRITES: dict[str, tuple[list[HttpRequest], HttpRequest, int]] = {
    "create": ([], request("POST", CONFIG_MAPS, keys("v")), 201),
    "create of many repeated keys": (
        [],
        HttpRequest.of("POST", CONFIG_MAPS, body=b'{"a":{%s"a":1}}' % REPEATED),
        422,
    ),
    "create with thousands of unknown fields": ([], request("POST", CONFIG_MAPS, keys("v", 1) | UNKNOWN), 201),
    "create of a pod": ([], request("POST", PODS, pod(5000)), 201),
    "create of a pod with thousands of errors": ([], request("POST", PODS, pod(5000, "=")), 422),
    "update": ([request("POST", CONFIG_MAPS, keys("v"))], request("PUT", BIG, keys("w")), 200),
    "merge patch": (
        [request("POST", CONFIG_MAPS, keys("v"))],
        request("PATCH", BIG, keys("w"), content_type="application/merge-patch+json"),
        200,
    ),
    "JSON patch": (
        [request("POST", CONFIG_MAPS, keys("v"))],
        request("PATCH", BIG, OPS, content_type="application/json-patch+json"),
        200,
    ),
    "small patch of a large object": (
        [request("POST", CONFIG_MAPS, keys("v"))],
        request("PATCH", BIG, {"data": {"key-1": "w"}}, content_type="application/merge-patch+json"),
        200,
    ),
    "strategic patch": (
        [request("POST", ACCOUNTS, ACCOUNT)],
        request("PATCH", f"{ACCOUNTS}/a", REVERSED, content_type=STRATEGIC),
        200,
    ),
    "apply that creates": ([], request("PATCH", APPLIED, keys("v"), content_type=APPLY), 201),
    "apply that changes": (
        [request("PATCH", APPLIED, keys("v"), content_type=APPLY)],
        request("PATCH", APPLIED, keys("w"), content_type=APPLY),
        200,
    ),
    "apply that removes": (
        [request("PATCH", APPLIED, keys("v"), content_type=APPLY)],
        request("PATCH", APPLIED, keys("v", 5000), content_type=APPLY),
        200,
    ),
    "apply with thousands of conflicts": (
        [request("PATCH", APPLIED, keys("v"), content_type=APPLY)],
        request("PATCH", f"{BIG}?fieldManager=other", keys("w"), content_type=APPLY),
        409,
    ),
    "create of a large CRD": ([], request("POST", CRDS, huge_crd()), 201),
    "label of a large CRD": (
        [request("POST", CRDS, huge_crd())],
        request(
            "PATCH",
            f"{CRDS}/widgets.example.com",
            {"metadata": {"labels": {"a": "b"}}},
            content_type="application/merge-patch+json",
        ),
        200,
    ),
    "first object of a large CRD": (
        [request("POST", CRDS, huge_crd())],
        request("POST", WIDGETS, huge_widget("v")),
        201,
    ),
    "document of a large CRD": (
        [request("POST", CRDS, huge_crd())],
        request("GET", "/openapi/v3/apis/example.com/v1"),
        200,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
async def test_a_large_write_lets_others_through(api: Api, name: str) -> None:
    before, asked, status = WRITES[name]
    for one in [request("POST", PODS, pod(1)), request("DELETE", f"{PODS}/p"), *before]:  # what is loaded once
        assert (await api.server.handle(one)).status in (200, 201)
    assert await Turns().of(answered(api, asked, status)) < MOST_CALLS


async def test_the_count_sees_what_is_done_in_one_piece(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside_module, "LARGE", 1 << 30)
    asked = request("PATCH", APPLIED, keys("v"), content_type=APPLY)
    assert await Turns().of(answered(api, asked, 201)) > MOST_CALLS


@pytest.fixture
async def many(api: Api) -> Api:
    """A server with many objects."""
    await multiplied(api, CONFIG_MAPS, {"metadata": {"name": "m", "labels": {"odd": "1"}}}, MANY)
    return api


async def multiplied(api: Api, path: str, obj: dict[str, Any], count: int) -> None:
    """Store an object, and so many others like it."""
    await answered(api, request("POST", path, obj), 201)
    store = api.world.store
    storage, change = next(
        (s, c.changes[-1])
        for s, c in store._collections.items()
        if c.changes and c.changes[-1].version == store.version
    )
    record = change.record
    for i in range(count):
        twin = record.decode()
        twin["metadata"] |= {"name": f"m{i}", "uid": f"u{i}"}
        store.create(storage, f"{record.namespace}/m{i}", twin, encoding_version=record.encoding_version)


async def read(response: Response) -> None:
    """The events of a watch until it has nothing new to say."""
    if response.stream is not None:
        while True:
            with anyio.move_on_after(0.3) as scope:
                await anext(response.stream)
            if scope.cancelled_caught:
                return


READS: dict[str, Callable[[], HttpRequest]] = {
    "Table": lambda: request("GET", CONFIG_MAPS, accept=TABLE),
    "metadata": lambda: request("GET", CONFIG_MAPS, accept=PARTIAL),
    "protobuf": lambda: request("GET", CONFIG_MAPS, accept=PROTOBUF),
    "YAML": lambda: request("GET", f"{CONFIG_MAPS}?limit=100", accept="application/yaml"),
    "label selector": lambda: request("GET", f"{CONFIG_MAPS}?labelSelector=odd%20in%20(1,2),odd!=3&limit=5000"),
    "field selector": lambda: request("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name!=m1&limit=5000"),
    "watch": lambda: request("GET", f"{CONFIG_MAPS}?watch=1&labelSelector=odd"),
    "watch of Tables": lambda: request("GET", f"{CONFIG_MAPS}?watch=1", accept=TABLE),
    "watch in protobuf from an old version": lambda: request(
        "GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1100", accept=PROTOBUF
    ),
}


async def test_large_lists_and_watches_let_others_through(many: Api) -> None:
    async def ask(asked: HttpRequest) -> None:
        response = await many.server.handle(asked)
        assert response.status == 200, response.body[:300]
        await read(response)

    for name, asked in READS.items():
        assert await Turns().of(ask(asked())) < MOST_CALLS, name
    assert await Turns().of(answered(many, request("DELETE", CONFIG_MAPS))) < MOST_CALLS


async def test_the_end_of_many_objects_lets_others_through() -> None:
    options = ApiServerOptions(listen=False, controllers=("namespace",))
    async with ApiServer(options) as server:
        api = Api(server)
        await api.create(CRDS, widget_crd())
        await api.create("/api/v1/namespaces", {"metadata": {"name": "ns"}})
        await multiplied(api, WIDGETS, widget("a"), 400)
        await multiplied(api, "/api/v1/namespaces/ns/configmaps", {"metadata": {"name": "a"}}, 200)

        async def end(path: str) -> None:
            await answered(api, request("DELETE", path))
            with anyio.fail_after(60):
                while (await server.handle(request("GET", path))).status == 200:
                    await anyio.lowlevel.checkpoint()

        assert await Turns().of(end(f"{CRDS}/widgets.example.com")) < MOST_CALLS
        assert await Turns().of(end("/api/v1/namespaces/ns")) < MOST_CALLS


def test_portions_are_in_order_and_no_larger_than_they_may_be() -> None:
    weights = [1, LARGE - 1, 5, LARGE * 3, 7, LARGE, 1]
    found = list(portions(weights, lambda weight: weight))
    assert [w for portion in found for w in portion] == weights
    assert all(len(portion) == 1 or sum(portion) <= LARGE for portion in found)
    assert found[0] == [1, LARGE - 1]


async def test_few_threads_work_at_a_time() -> None:
    meeting = threading.Barrier(THREADS)
    working: list[int] = []
    most = 0

    def work() -> None:
        nonlocal most
        working.append(1)
        most = max(most, len(working))
        meeting.wait(20)  # until all that may work do
        working.pop()

    async with anyio.create_task_group() as group:
        for _ in range(THREADS * 3):
            group.start_soon(aside, work, LARGE + 1)
    assert most == THREADS


async def test_what_is_done_aside_has_a_deep_stack_and_its_errors_come_back() -> None:
    before = sys.getrecursionlimit()

    def deeper(levels: int) -> int:
        return deeper(levels - 1) if levels else 1

    assert await aside(lambda: deeper(before + 100), LARGE + 1) == 1
    assert sys.getrecursionlimit() == before
    with pytest.raises(ValueError, match="no"):
        await aside(lambda: int("no"), LARGE + 1)
