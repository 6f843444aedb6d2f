"""Pace: how long one attempt of a request may take. Small answers have a time, long ones only must not fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from kopylite.client.verbs import ApiRequest

# What the bytes of a request and its answer take is no fault of the server: 1.5 MB, as much as etcd stores, takes 94 s
# at this rate, of bytes a second.
SLOWEST_RATE = 16 * 1024


class Pace:
    """How long one attempt may take: known before it begins, and extended by every piece that comes.

    Args:
        remaining: seconds that are left of the time for small answers or, with `total`, for everything.

    Attributes:
        began: when, in the loop's time.
        limit: to send and read within.
    """

    __slots__ = ("_got", "_loop", "_silence", "_total", "_until_answer", "began", "limit")

    def __init__(self, request: ApiRequest, remaining: float, *, total: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.began = self._loop.time()
        self._silence = request.patience.silence
        self._total = total
        self._got = 0
        until_answer = remaining
        if not total:
            until_answer = remaining if self._silence is None else request.patience.begin
            until_answer += len(request.body or b"") / SLOWEST_RATE
        self._until_answer = until_answer
        self.limit = asyncio.timeout(until_answer)

    async def read(self, pieces: AsyncIterator[bytes]) -> bytes:
        """The body, in as many pieces as it takes."""
        parts: list[bytes] = []
        async for part in pieces:
            parts.append(part)
            self._got += len(part)
            if self._silence is not None and not self._total:
                self.limit.reschedule(self._loop.time() + self._silence)
            elif not self._total:
                self.limit.reschedule(self.began + self._until_answer + self._got / SLOWEST_RATE)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def spent(self) -> float:
        """Seconds until now."""
        return self._loop.time() - self.began

    def describe(self, server: str) -> str:
        """What has taken too long."""
        spent = self.spent
        if not self._got:
            return f"no answer from {server} within {spent:.0f} s"
        if self._silence is not None and not self._total:
            return f"{server} fell silent for {self._silence:.0f} s in mid-answer, after {self._got} bytes"
        return f"the answer of {server} was not whole after {spent:.0f} s: {self._got} bytes had come"
