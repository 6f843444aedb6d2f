from __future__ import annotations

import json

import pytest

from kopylite.client.resources import MISSING_PERIOD, Resources
from kopylite.client.transport import ApiResponse
from kopylite.errors import KindNotFound, ServiceUnavailable, StreamBroken
from kopylite.objects import CustomResource, Kind, kind_of
from kopylite.testing.clock import VirtualClock
from tests.unit.client.memory import MemoryServer

FOO = Kind("example.com/v1", "Foo")


def served(*names: str) -> ApiResponse:
    resources = [{"name": name, "kind": "Foo", "namespaced": True, "verbs": []} for name in names]
    return ApiResponse(200, {}, json.dumps({"kind": "APIResourceList", "resources": resources}).encode())


class Own(CustomResource[dict[str, str], None], group="example.com", version="v1", plural="ownies", scope="Cluster"):
    pass


async def test_kinds_that_know_themselves_need_no_request() -> None:
    server = MemoryServer()
    resources = Resources(server)
    assert (await resources.find(Kind("apps/v1", "Deployment"))).plural == "deployments"
    own = await resources.find(kind_of(Own))
    assert (own.plural, own.namespaced) == ("ownies", False)
    assert (await resources.find(Kind("a/v1", "B", "bees", True))).plural == "bees"
    assert server.requests == []


async def test_others_are_asked_for_once_in_their_own_group() -> None:
    server = MemoryServer()
    server.answers = [served("foos/status", "foos", "foos/scale")]
    resources = Resources(server)
    for _ in range(3):
        found = await resources.find(FOO)
        assert (found.plural, found.namespaced) == ("foos", True)
    assert server.requests == ["GET /apis/example.com/v1"]
    resources.forget(FOO)
    server.answers = [served("foozen")]
    assert (await resources.find(FOO)).plural == "foozen"


async def test_asking_again_asks_the_server_whatever_is_known() -> None:
    server = MemoryServer()
    resources = Resources(server, VirtualClock())
    server.answers = [served(), ApiResponse(404, {}, b""), served("foos"), served("foozen")]
    with pytest.raises(KindNotFound):
        await resources.find(FOO)
    assert (await resources.find(FOO, again=True)).plural == "foos"
    assert (await resources.find(FOO, again=True)).plural == "foozen"
    assert (await resources.find(FOO)).plural == "foozen"


async def test_a_kind_that_came_back_with_the_other_scope_is_found_by_whoever_asks_for_such_a_key() -> None:
    server, clock = MemoryServer(), VirtualClock()
    resources = Resources(server, clock)
    other = ApiResponse(200, {}, served("foos").body.replace(b"true", b"false"))
    server.answers = [other, served("foos"), other]
    assert not (await resources.find(FOO)).namespaced
    assert (await resources.find_for(FOO, namespaced=True)).namespaced
    assert (await resources.find_for(FOO, namespaced=False)).namespaced, "it was asked for a moment ago"
    assert len(server.requests) == 2
    clock.advance(MISSING_PERIOD)
    assert not (await resources.find_for(FOO, namespaced=False)).namespaced
    assert not (await resources.find_for(kind_of(Own), namespaced=True)).namespaced, "a class says its scope"
    assert len(server.requests) == 3


@pytest.mark.parametrize("missing", [ApiResponse(404, {}, b"404 page not found"), served()])
async def test_a_missing_kind_is_asked_for_again_after_a_while(missing: ApiResponse) -> None:
    clock, server = VirtualClock(), MemoryServer()
    resources = Resources(server, clock)
    server.answers = [missing, ApiResponse(404, {}, b"404 page not found")]
    for _ in range(3):
        with pytest.raises(KindNotFound, match=r"Foo\.example\.com/v1: is its CRD installed\?$"):
            await resources.find(FOO)
    assert server.requests == ["GET /apis/example.com/v1", "GET /apis/example.com"]
    clock.advance(MISSING_PERIOD)
    server.answers = [missing]
    with pytest.raises(KindNotFound):
        await resources.find(FOO)
    assert len(server.requests) == 3, "the other versions are asked for once"
    clock.advance(MISSING_PERIOD)
    server.answers = [served("foos")]
    assert (await resources.find(FOO)).plural == "foos"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b'{"versions":[{"groupVersion":"example.com/v2","version":"v2"},{"groupVersion":"example.com/v3"}]}',
         " The server has example.com as example.com/v2, example.com/v3"),
        (b'{"versions":[' + b",".join([b'{"groupVersion":"example.com/v2"}'] * 9) + b"]}",
         " The server has example.com as " + ", ".join(["example.com/v2"] * 5)),
        (b'{"versions":[{"groupVersion":"a\\u001b[2J/v1"},{"groupVersion":"' + b"v" * 300 + b'"}]}', ""),
        (b'{"versions":[]}', ""), (b'{"versions":null}', ""), (b"{", ""), (b"[" * 100_000, ""), (b"", ""),
    ],
)  # fmt: skip
async def test_a_version_that_is_not_served_is_told_with_those_that_are(answer: bytes, told: str) -> None:
    server = MemoryServer()
    server.answers = [ApiResponse(404, {}, b"404 page not found"), ApiResponse(200, {}, answer)]
    with pytest.raises(KindNotFound) as caught:
        await Resources(server).find(FOO)
    assert str(caught.value) == f"the server does not serve Foo.example.com/v1: is its CRD installed?{told}"


async def test_a_broken_answer_is_an_error_and_not_a_missing_kind() -> None:
    server = MemoryServer()
    server.answers = [
        ApiResponse(503, {"Retry-After": "2"}, b"<html>"),
        ApiResponse(200, {}, b"<html>"),
        served("foos"),
    ]
    resources = Resources(server)
    with pytest.raises(ServiceUnavailable) as caught:
        await resources.find(FOO)
    assert caught.value.retry_after == 2
    with pytest.raises(StreamBroken):
        await resources.find(FOO)
    assert (await resources.find(FOO)).plural == "foos"


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (Kind("example.com/v1", "Fooo"), r"did you mean Foo\.example\.com/v1\?"),
        (Kind("v1", "Deployment"), r"did you mean Deployment\.apps/v1\?"),
        (Kind("example.com/v1", "Bar"), r"is its CRD installed\?"),
    ],
    ids=str,
)
async def test_a_kind_that_is_not_served_comes_with_a_guess_why(kind: Kind, hint: str) -> None:
    server = MemoryServer()
    server.answers = [served("foos", "foos/status")]
    resources = Resources(server, VirtualClock())
    for _ in range(2):  # asked, and remembered
        with pytest.raises(KindNotFound, match=hint):
            await resources.find(kind)
