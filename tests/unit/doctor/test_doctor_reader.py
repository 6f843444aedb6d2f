from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kopylite.client import ApiRequest, ApiResponse
from kopylite.doctor.lookup import find_kind
from kopylite.doctor.reader import NotAllowed, Reader
from kopylite.errors import KindNotFound, KopyliteError
from kopylite.objects import Kind
from tests.unit.doctor.test_doctor_clearing import answer

POD = Kind("v1", "Pod", "pods", True)


class Lists:
    """Answers paths; of lists in pages."""

    def __init__(self, count: int = 0, paths: Mapping[str, object] | None = None) -> None:
        self.count, self.paths = count, paths or {}
        self.asked: list[ApiRequest] = []

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        self.asked.append(request)
        assert timeout is not None, "each request has a limit"
        found = self.paths.get(request.path)
        if isinstance(found, ApiResponse):
            return found
        if found is not None:
            return ApiResponse(200, {}, json.dumps(found).encode())
        size, begin = int(request.params["limit"]), int(request.params.get("continue", "0"))
        end = min(begin + size, self.count)
        items = [{"metadata": {"name": f"p-{number}"}} for number in range(begin, end)]
        meta = {"resourceVersion": "1", "continue": str(end) if end < self.count else ""}
        return ApiResponse(
            200, {}, json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}).encode()
        )

    def stream(self, request: ApiRequest) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("count", "limit", "seen", "more"), [(3, 10, 3, False), (1200, 700, 700, True), (700, 700, 700, False)]
)
async def test_a_list_is_read_by_pages_up_to_the_limit_and_once(count: int, limit: int, seen: int, more: bool) -> None:
    server = Lists(count)
    reader = Reader(server, (), limit, 1.0)
    listing = await reader.all(POD, metadata_only=True)
    assert (len(listing.items), listing.more) == (seen, more)
    asked = len(server.asked)
    await reader.all(POD, metadata_only=True)
    assert len(server.asked) == asked
    assert all("PartialObjectMetadata" in request.accept for request in server.asked)


async def test_only_the_namespaces_that_are_asked_for_are_looked_into() -> None:
    server = Lists(1)
    assert len((await Reader(server, ("a", "b"), 10, 1.0).all(POD)).items) == 2
    assert [request.path for request in server.asked] == ["/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"]


async def test_what_is_forbidden_says_which_right_is_missing() -> None:
    refused = answer(403, reason="Forbidden", message="no")
    reader = Reader(Lists(paths={"/api/v1/pods": refused, "/api/v1/namespaces/ns/pods/a": refused}), (), 10, 1.0)
    for read, verb in ((reader.all(POD), "list"), (reader.find(POD, "a", "ns"), "get")):
        with pytest.raises(NotAllowed) as raised:
            await read
        assert (raised.value.permissions[0].verb, raised.value.permissions[0].resource) == (verb, "pods")


GROUPS = {
    "groups": [
        {
            "name": "dead.io",
            "preferredVersion": {"groupVersion": "dead.io/v1"},
            "versions": [{"groupVersion": "dead.io/v1"}],
        },
        {"name": "x.io", "preferredVersion": {"groupVersion": "x.io/v2"}, "versions": [{"groupVersion": "x.io/v1"}]},
    ]
}
SERVED = {
    "/api/v1": {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "shortNames": ["po"]},
            7,
            {"name": "pods/log"},
        ]
    },
    "/apis": GROUPS,
    "/apis/dead.io/v1": answer(503, reason="ServiceUnavailable"),
    "/apis/x.io/v2": {"resources": [{"name": "trays", "kind": "Tray", "namespaced": False, "singularName": "tray"}]},
    "/apis/x.io/v1": {"resources": [{"name": "olds", "kind": "Old", "namespaced": True}]},
}


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("po", "v1 pods True"),
        ("Pod", "v1 pods True"),
        ("trays.x.io", "x.io/v2 trays False"),
        ("tray", "x.io/v2 trays False"),
        ("olds.x.io", "x.io/v1 olds True"),
    ],
)
async def test_a_resource_is_found_by_what_people_call_it(word: str, kind: str) -> None:
    found = await find_kind(Reader(Lists(paths=SERVED), (), 10, 1.0), word)
    assert f"{found.api_version} {found.plural} {found.namespaced}" == kind


async def test_one_that_is_not_there_is_an_error_and_one_behind_a_dead_group_another() -> None:
    with pytest.raises(KindNotFound, match=r"no resource 'nothing\.x\.io'"):
        await find_kind(Reader(Lists(paths=SERVED), (), 10, 1.0), "nothing.x.io")
    with pytest.raises(KopyliteError) as raised:
        await find_kind(Reader(Lists(paths=SERVED), (), 10, 1.0), "things.dead.io")
    assert not isinstance(raised.value, KindNotFound)
