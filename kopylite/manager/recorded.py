"""RecordedTransport: tells somebody what an operator asks the server for: which rights it uses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kopylite.client import ApiRequest, ApiResponse, ApiStream, Transport
from kopylite.manager.operator import Operator


class RequestRecorder(Protocol):
    """Hears of the requests of Managers."""

    def sent(self, apps: Sequence[Operator], request: ApiRequest) -> None:
        """One of these Apps sends a request; it may be refused. Must not block and must not raise."""


class RecordedTransport:
    """A Transport that tells of each request before it is sent.

    Args:
        transport: sends.
        apps: whose requests they are.
        recorder: is told.
    """

    __slots__ = ("_apps", "_recorder", "_transport")

    def __init__(self, transport: Transport, apps: Sequence[Operator], recorder: RequestRecorder) -> None:
        self._transport = transport
        self._apps = apps
        self._recorder = recorder

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        self._recorder.sent(self._apps, request)
        return await self._transport.request(request, timeout=timeout)

    def stream(self, request: ApiRequest) -> AbstractAsyncContextManager[ApiStream]:
        self._recorder.sent(self._apps, request)
        return self._transport.stream(request)
