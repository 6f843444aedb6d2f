from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kopylite.client import ApiRequest, ApiResponse, ResourceInfo
from kopylite.doctor.clearing import TRIES, AnotherObject, clear, consequences, refusals, steps
from kopylite.doctor.reader import Reader
from kopylite.errors import Conflict, StreamBroken
from kopylite.objects import Kind
from kopylite.testing.clock import VirtualClock

KIND = Kind("v1", "ConfigMap", "configmaps", True)
RESOURCE = ResourceInfo(KIND, "configmaps", True)
MINE, OTHER = "example.com/mine", "other.com/keep"


def thing(*finalizers: str, uid: str = "u-1", going: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a", "namespace": "ns", "uid": uid, "finalizers": list(finalizers)}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Server:
    """Holds one object, carries out JSON patches with their tests, and lets a test come in between."""

    def __init__(self, obj: dict[str, Any] | None, *between: Callable[[Server], None]) -> None:
        self.obj = obj
        self.between = list(between)
        self.patches = 0

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        if request.method == "PATCH":
            self.patches += 1
            if self.between:
                self.between.pop(0)(self)
            return self._patched(json.loads(request.body or b"[]"), dry_run="dryRun" in request.params)
        if self.obj is None:
            return answer(404, reason="NotFound", details={"name": "a", "kind": "configmaps"})
        return ApiResponse(200, {}, json.dumps(self.obj).encode())

    def stream(self, request: ApiRequest) -> Any:
        raise NotImplementedError

    def _patched(self, patch: list[dict[str, Any]], *, dry_run: bool) -> ApiResponse:
        if self.obj is None:
            return answer(404, reason="NotFound", details={"name": "a", "kind": "configmaps"})
        metadata = json.loads(json.dumps(self.obj["metadata"]))
        for step in patch:
            path = step["path"].split("/")[2:]
            if step["op"] == "test" and metadata.get(path[0]) != step["value"]:
                return answer(
                    422, reason="Invalid", message="the server rejected our request due to an error in our request"
                )
            if step["op"] == "remove":
                del metadata["finalizers"][int(path[1])]
        result = {**self.obj, "metadata": metadata}
        if not dry_run:
            self.obj = result if metadata["finalizers"] else None
        return ApiResponse(200, {}, json.dumps(result).encode())


def answer(code: int, **status: Any) -> ApiResponse:
    return ApiResponse(code, {}, json.dumps({"kind": "Status", "apiVersion": "v1", "code": code, **status}).encode())


async def cleared(server: Server, obj: dict[str, Any], *, dry_run: bool = False) -> Any:
    reader = Reader(server, (), 10, 5.0)
    return await clear(reader, RESOURCE, obj, [MINE], dry_run=dry_run, timeout=5.0, clock=VirtualClock())


def adds(name: str) -> Callable[[Server], None]:
    def change(server: Server) -> None:
        assert server.obj is not None
        server.obj["metadata"]["finalizers"].insert(0, name)

    return change


async def test_it_removes_the_one_and_keeps_those_of_others_also_of_those_who_come_between() -> None:
    server = Server(thing(OTHER, MINE), adds("late.com/one"), adds("late.com/two"))
    left = await cleared(server, thing(OTHER, MINE))
    assert left["metadata"]["finalizers"] == ["late.com/two", "late.com/one", OTHER]
    assert server.patches == 3


async def test_nothing_is_changed_by_a_dry_run() -> None:
    server = Server(thing(MINE))
    await cleared(server, thing(MINE), dry_run=True)
    assert server.obj == thing(MINE)


async def test_another_object_of_its_name_is_left_alone() -> None:
    def replaced(server: Server) -> None:
        server.obj = thing(MINE, uid="u-2")

    server = Server(thing(MINE), replaced)
    with pytest.raises(AnotherObject):
        await cleared(server, thing(MINE))
    assert server.obj == thing(MINE, uid="u-2")


async def test_an_answer_that_is_lost_is_found_again() -> None:
    def lost(server: Server) -> None:
        server.obj = thing(OTHER)  # it was carried out
        raise StreamBroken("lost")

    assert (await cleared(Server(thing(OTHER, MINE), lost), thing(OTHER, MINE)))["metadata"]["finalizers"] == [OTHER]

    def gone(server: Server) -> None:
        server.obj = None

    assert await cleared(Server(thing(MINE), gone), thing(MINE)) is None


async def test_it_gives_up_on_somebody_who_never_stops_writing() -> None:
    server = Server(thing(MINE), *(adds(f"late.com/{number}") for number in range(99)))
    with pytest.raises(Conflict):
        await cleared(server, thing(MINE))
    assert server.patches == TRIES


@pytest.mark.parametrize(
    ("obj", "finalizer", "alive", "options", "says"),
    [
        (thing(MINE, going=False), MINE, set(), {}, "--not-deleting"),
        (thing(MINE), MINE, None, {}, "takes list on leases and deployments"),
        (thing(MINE), MINE, {"example.com"}, {}, "which runs"),
        (thing("kubernetes.io/pvc-protection"), "kubernetes.io/pvc-protection", set(), {}, "Kubernetes' own"),
        (thing(MINE), MINE, set(), {}, ""),
        (thing(MINE), MINE, {"example.com"}, {"force": True}, ""),
        (thing(MINE, going=False), MINE, set(), {"not_deleting": True}, ""),
        (thing(MINE, going=False), MINE, set(), {"force": True}, "--not-deleting"),
    ],
)
def test_it_is_refused_while_somebody_needs_it(
    obj: Any, finalizer: str, alive: set[str] | None, options: dict[str, bool], says: str
) -> None:
    found = refusals(obj, [finalizer], alive, **{"force": False, "not_deleting": False, **options})
    assert len(found) == bool(says)
    assert says in "".join(found)


def test_what_would_happen_is_said() -> None:
    assert "stays behind" in consequences(thing(MINE), [MINE])[0]
    assert "gone at once" in consequences(thing(MINE), [MINE])[1]
    assert consequences(thing(MINE, OTHER), [MINE])[1] == f"leaves {OTHER}"
    assert [step["op"] for step in steps(thing(MINE, OTHER, MINE), [MINE])] == ["test", "test", "remove", "remove"]
