from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from kopylite import App
from kopylite.client import ApiRequest, ApiResponse
from kopylite.deploy import ApiCall
from kopylite.deploy.recorder import Recorder
from kopylite.manager.recorded import RecordedTransport


class Answering:
    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        return ApiResponse(403, {}, b"")

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> Any:
        yield None


async def test_what_is_refused_and_what_is_streamed_is_kept_for_each_app_of_the_manager() -> None:
    recorder = Recorder()
    transport = RecordedTransport(Answering(), [App("one"), App("two")], recorder)
    assert (await transport.request(ApiRequest("GET", "/api/v1/namespaces/a/pods/p"))).status == 403
    async with transport.stream(ApiRequest("GET", "/api/v1/pods", {"watch": "1"})):
        pass
    assert recorder.recording.of("one") == {ApiCall("", "pods", "get", "a"), ApiCall("", "pods", "watch", "")}
    assert recorder.recording.of("one") == recorder.recording.of("two")


async def test_the_managers_own_look_at_its_namespaces_is_none_of_the_apps() -> None:
    recorder = Recorder()
    recorder.sent([App("one")], ApiRequest("GET", "/api/v1/namespaces/a"))
    recorder.sent([App("one")], ApiRequest("GET", "/version"))
    assert recorder.recording.of("one") == frozenset()
