"""Fence: the point that no write passes when this process does not lead.

Cancelling the work of a leader that has lost its lease is not enough: code may catch its cancellation, a process may
have been stopped for a minute in the middle of a request. So each write is asked again at the last moment, when it has
its connection and its first byte is about to be sent. What was sent by then cannot be called back: the time between
`renew_deadline` and `lease_duration` is for the server to be done with it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kopylite.client import ApiRequest, ApiResponse, ApiStream, Transport
from kopylite.client.permits import PERMIT
from kopylite.clock import Clock
from kopylite.errors import NotLeader, UsageError
from kopylite.leaderelection.candidate import NEVER

READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Fence:
    """Open as long as its process leads. Asked at each write, by the clock and not by an event, so it is never late.

    Args:
        lease: of what, for people.
        clock: of `until`; `elapsed`, since a machine that slept has lost its lease too.

    Attributes:
        until: when it closes, unless it is moved on before.
        last_doubt: when a write last ended without an answer, so that nobody knows whether it was carried out.
    """

    __slots__ = ("_clock", "_lease", "last_doubt", "until")

    def __init__(self, lease: str, clock: Clock) -> None:
        self._lease = lease
        self._clock = clock
        self.until = NEVER
        self.last_doubt = NEVER

    @property
    def is_open(self) -> bool:
        return self._clock.elapsed() < self.until

    def check(self) -> None:
        """Let one write pass.

        Raises:
            NotLeader: it must not be sent.
        """
        if not self.is_open:
            raise NotLeader(f"not sent: this process does not hold the lease {self._lease}, or no longer")

    def doubt(self) -> None:
        """A write has ended without an answer."""
        self.last_doubt = self._clock.elapsed()


class FencedTransport:
    """A Transport whose writes go through a Fence. Reads pass always.

    Args:
        transport: sends.
        fence: is asked, before each attempt.
    """

    __slots__ = ("_fence", "_transport")

    def __init__(self, transport: Transport, fence: Fence) -> None:
        self._transport = transport
        self._fence = fence

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        if request.method in READS:
            return await self._transport.request(request, timeout=timeout)
        self._fence.check()
        before = PERMIT.set(self._fence.check)
        try:
            return await self._transport.request(request, timeout=timeout)
        except UsageError:
            raise  # it was not sent
        except BaseException:  # also ConnectionFailed: the HTTP library may have sent a PUT before, and tried again
            self._fence.doubt()
            raise
        finally:
            PERMIT.reset(before)

    def stream(self, request: ApiRequest) -> AbstractAsyncContextManager[ApiStream]:
        return self._transport.stream(request)
