"""The fence, by a clock that the test moves."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress

import anyio
import pytest

from kopylite.client import ApiRequest, ApiResponse, ApiStream
from kopylite.client.permits import PERMIT
from kopylite.errors import ConnectionFailed, NotLeader, UsageError
from kopylite.leaderelection.candidate import NEVER
from kopylite.leaderelection.fence import Fence, FencedTransport
from kopylite.testing.clock import VirtualClock


class Wire:
    """A Transport that notes what is sent, and fails as it is told."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.error: BaseException | None = None
        self.hangs = False

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        if permit := PERMIT.get():
            permit()  # as the real one does when it has its connection
        self.sent.append(request.method)
        if self.hangs:
            await anyio.sleep_forever()
        if self.error is not None:
            raise self.error
        return ApiResponse(200, {}, b"")

    def stream(self, request: ApiRequest) -> AbstractAsyncContextManager[ApiStream]:
        raise NotImplementedError


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def request(method: str) -> ApiRequest:
    return ApiRequest(method, "/api/v1/namespaces/default/configmaps/a")


async def test_writes_pass_as_long_as_it_is_open_and_reads_always(clock: VirtualClock) -> None:
    fence, wire = Fence("default/a", clock), Wire()
    transport = FencedTransport(wire, fence)
    with pytest.raises(NotLeader, match="does not hold the lease default/a"):
        await transport.request(request("PATCH"))
    await transport.request(request("GET"))
    fence.until = clock.elapsed() + 10
    await transport.request(request("PATCH"))
    clock.advance(10)
    assert not fence.is_open
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(NotLeader):
            await transport.request(request(method))
    assert wire.sent == ["GET", "PATCH"]
    assert PERMIT.get() is None


@pytest.mark.parametrize(
    ("error", "doubted"), [(ConnectionFailed("cut"), True), (RuntimeError(), True), (UsageError("never sent"), False)]
)
async def test_a_write_that_ends_without_an_answer_is_in_doubt(
    clock: VirtualClock, error: Exception, doubted: bool
) -> None:
    fence, wire = Fence("default/a", clock), Wire()
    fence.until, wire.error = clock.elapsed() + 10, error
    with pytest.raises(type(error)):
        await FencedTransport(wire, fence).request(request("POST"))
    assert (fence.last_doubt > NEVER) is doubted


async def test_so_is_one_that_is_cancelled(clock: VirtualClock) -> None:
    fence, wire = Fence("default/a", clock), Wire()
    fence.until, wire.hangs = clock.elapsed() + 10, True
    with anyio.move_on_after(0.01), suppress(ConnectionFailed):
        await FencedTransport(wire, fence).request(request("POST"))
    assert fence.last_doubt == clock.elapsed()
