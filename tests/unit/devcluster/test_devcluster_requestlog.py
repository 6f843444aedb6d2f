from __future__ import annotations

from kopylite.apiserver.request.request import HttpRequest, Response, User
from kopylite.devcluster.requestlog import KEPT_REQUESTS, RequestLog
from kopylite.testing.clock import VirtualClock


def a_request(name: str = "a") -> HttpRequest:
    target = f"/api/v1/namespaces/shop/pods/{name}/status?fieldManager=me"
    return HttpRequest.of("PATCH", target, headers={"User-Agent": "shop/1"}, body=b"{}", user=User("me"))


async def test_a_request_is_kept_with_its_answer() -> None:
    clock = VirtualClock()
    log = RequestLog(clock)
    clock.advance(3)
    response = Response(409)
    assert await log.note(a_request(), response) is response
    (logged,) = log
    assert (logged.time, logged.user, logged.agent, logged.status) == (3, "me", "shop/1", 409)
    assert (logged.verb, logged.resource, logged.namespace, logged.name) == ("patch", "pods", "shop", "a")
    assert (logged.subresource, logged.query, logged.body) == ("status", {"fieldManager": ["me"]}, b"{}")
    assert logged.writes
    assert str(logged) == "patch pods shop/a/status -> 409"


async def test_paths_that_are_no_resources_are_kept_too() -> None:
    log = RequestLog(VirtualClock())
    await log.note(HttpRequest.of("GET", "/version"), Response())
    (logged,) = log
    assert (logged.verb, logged.path, logged.resource, logged.writes) == ("get", "/version", "", False)


async def test_recordings_hold_what_comes_while_they_run_and_may_overlap() -> None:
    log = RequestLog(VirtualClock())
    with log.recording() as outer:
        await log.note(a_request("one"), Response())
        with log.recording() as inner:
            await log.note(a_request("two"), Response())
        await log.note(a_request("three"), Response())
    await log.note(a_request("four"), Response())
    assert [logged.name for logged in outer] == ["one", "two", "three"]
    assert [logged.name for logged in inner] == ["two"]
    assert len(log) == 4


async def test_only_the_newest_are_kept() -> None:
    log = RequestLog(VirtualClock())
    for number in range(KEPT_REQUESTS + 5):
        await log.note(a_request(str(number)), Response())
    assert len(log) == KEPT_REQUESTS
    assert next(iter(log)).name == "5"
    log.clear()
    assert list(log) == []
