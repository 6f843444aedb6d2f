"""When a request may be sent again. Decides; does not wait."""

from __future__ import annotations

from collections.abc import Mapping

from kopylite.boundary import json_object, seconds_to_wait
from kopylite.boundary.reading import LONGEST_WAIT
from kopylite.clock import Clock
from kopylite.errors import ConnectionFailed, StreamBroken, TransportError

# One request, its retries and their waiting together. kube-apiserver itself gives up after 60 s.
REQUEST_TIMEOUT = 30.0
# client-go waits for a Retry-After up to ten times.
MAX_WAITS = 10
# Connections that were refused or broke, tried again after 0.1, 0.2, 0.4 and 0.8 s.
MAX_FAILURES = 4
FIRST_DELAY = 0.1
# Up to a tenth longer than the server asks, so that clients that it turned away together do not return together.
JITTER = 0.1
# What a "Retry-After: 0" is taken for.
MIN_WAIT = 0.05
# The observer's code for an attempt without an answer, as in controller-runtime's metric.
NO_ANSWER = "<error>"


class Retries:
    """The retries of one request.

    - 429 and any 5xx with a Retry-After in seconds (header or body) did not happen: sent again, whatever the
      verb, after that time, ten times at most. Without a Retry-After they are an answer.
    - A refused connection sent nothing: tried again, whatever the verb.
    - A connection that broke may have carried out a write: only reads are sent again.
    - A 401 is sent again once, when new credentials are there.
    - Nothing is sent again when its waiting would pass the deadline.

    Args:
        method: the HTTP method.
        timeout: seconds from now until the deadline of everything.
        clock: of the deadline and the jitter.
    """

    __slots__ = ("_clock", "_deadline", "_failures", "_method", "_renewed", "_waits")

    def __init__(self, method: str, timeout: float, clock: Clock) -> None:
        self._method = method
        self._clock = clock
        self._deadline = clock.monotonic() + timeout
        self._waits = 0
        self._failures = 0
        self._renewed = False

    def put_off(self, seconds: float) -> None:
        """The deadline is later by so much: the time was not the server's."""
        self._deadline += seconds

    def remaining(self) -> float:
        """Seconds until the deadline; never 0, which HTTP libraries take for no limit."""
        return max(self._deadline - self._clock.monotonic(), 0.001)

    def after_answer(self, status: int, headers: Mapping[str, str], body: bytes) -> float | None:
        """Seconds to wait before the next attempt after an error answer; None: the answer stands."""
        if (status != 429 and status < 500) or self._waits == MAX_WAITS:
            return None
        asked = retry_after(headers, body)
        if asked is None:
            return None
        self._waits += 1
        return self._if_in_time(max(asked, MIN_WAIT) * (1 + JITTER * self._clock.random()))

    def after_failure(self, error: TransportError) -> float | None:
        """Seconds to wait before the next attempt after a missing answer; None: the error stands."""
        harmless = isinstance(error, ConnectionFailed) or (isinstance(error, StreamBroken) and self._method == "GET")
        if not harmless or self._failures == MAX_FAILURES:
            return None
        delay = FIRST_DELAY * 2**self._failures
        self._failures += 1
        return self._if_in_time(delay * (1 + JITTER * self._clock.random()))

    def after_unauthorized(self) -> bool:
        """Whether to try once more with new credentials."""
        first, self._renewed = not self._renewed, True
        return first

    def _if_in_time(self, delay: float) -> float | None:
        return delay if delay < self.remaining() else None


def retry_after(headers: Mapping[str, str], body: bytes = b"") -> float | None:
    """Seconds that an error answer asks to wait: from the header, else from a Status body; None: it does not ask.
    Never more than an hour.

    The header's date form is ignored, as in client-go.
    """
    header = headers.get("Retry-After", "")
    if header.isascii() and header.isdigit():
        return min(float(header), LONGEST_WAIT)
    details = json_object(body).get("details") if body.lstrip().startswith(b"{") else None
    return seconds_to_wait(details.get("retryAfterSeconds")) if isinstance(details, dict) else None
