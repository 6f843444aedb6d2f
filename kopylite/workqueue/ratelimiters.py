"""How long a key that failed has to wait. Pure: time and randomness are arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kopylite.checks import require_count, require_number, require_seconds
from kopylite.errors import RegistrationError

K = TypeVar("K", bound=Hashable)

# Tokens of keys that have succeeded since are swept out only when they outnumber the failing keys by this.
SWEEP_SLACK = 64


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The settings of a RateLimiter.

    Args:
        first: delay in seconds of the first retry. 5 ms, as in client-go.
        longest: cap of the delay in seconds. 1000 s, as in client-go; reached at the 19th failure in a row.
        jitter: part of each delay that is random, so that keys which failed together don't retry together.
            A delay lies in [(1 - jitter) x d, d]: never above the cap, and always below the next one.
        per_second: retries per second of all keys together; None: no such limit, controller-runtime's default.
        burst: retries that may come at once before `per_second` holds them back.

    Raises:
        RegistrationError: a value is of the wrong type or out of its range.
    """

    first: float = 0.005
    longest: float = 1000.0
    jitter: float = 0.2
    per_second: float | None = None
    burst: int = 100

    def __post_init__(self) -> None:
        require_seconds(self.first, "RateLimit: first")
        require_seconds(self.longest, "RateLimit: longest")
        if self.first > self.longest:
            raise RegistrationError(f"RateLimit: first must be not above longest ({self.longest}), but is {self.first}")
        if isinstance(self.jitter, bool) or not isinstance(self.jitter, (int, float)) or not 0 <= self.jitter <= 0.5:
            raise RegistrationError(f"RateLimit: jitter must be a number within 0 and 0.5, not {self.jitter!r}")
        if self.per_second is not None:
            require_number(self.per_second, "RateLimit: per_second (None: no limit)")
        require_count(self.burst, "RateLimit: burst", least=1)

    def delay(self, failures: int, random: float) -> float:
        """The delay before the next try after `failures` earlier ones; `random` is a number in [0, 1)."""
        # 2.0 ** 1024 overflows; the cap is reached long before for every sensible `first`.
        delay = min(self.first * 2.0 ** min(failures, 1000), self.longest)
        return delay * (1.0 - self.jitter * random)


class TokenBucket:
    """Lets `burst` through at once and `per_second` in the long run. Each caller is told how long to wait."""

    __slots__ = ("_burst", "_per_second", "_tokens", "_updated")

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        # Below 0: tokens that are promised to callers who still wait.
        self._tokens = float(burst)
        self._updated = 0.0

    def reserve(self, now: float) -> float:
        """Take a token, and return the seconds until it may be used: 0.0 while there are any."""
        self._refill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._per_second)

    def try_take(self, now: float) -> bool:
        """Take a token if there is one now, and say whether."""
        self._refill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._per_second)
        self._updated = now


class RateLimiter(Generic[K]):
    """Exponential back-off per key, and one bucket for all keys if the limit has one: the longer delay wins.

    The bucket is charged for retries that run, not for failures: a key holds one token at most that is not due yet. In
    client-go each failure takes one, so a single key that fails at each of its many events holds up all the others.
    """

    __slots__ = ("_bucket", "_due", "_failures", "limit")

    def __init__(self, limit: RateLimit | None = None) -> None:
        self.limit = limit or RateLimit()
        self._bucket = TokenBucket(self.limit.per_second, self.limit.burst) if self.limit.per_second else None
        # Holds a key from its first failure until forget(): bounded by the number of keys that fail.
        self._failures: dict[K, int] = {}
        # With a bucket: when the retry of a key is due, whose token is taken. A success does not give it back, or a key
        # that fails every other time could take them all.
        self._due: dict[K, float] = {}

    def __len__(self) -> int:
        """How many keys have failures that are not forgotten."""
        return len(self._failures)

    def when(self, key: K, now: float, random: float) -> float:
        """Count one more failure of `key` and return the delay of its retry, in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self.limit.delay(failures, random)
        if self._bucket is None:
            return delay
        due = self._due.get(key, now)
        if due <= now:  # the last retry has run, or there was none
            due = now + max(delay, self._bucket.reserve(now))
            if len(self._due) > 2 * len(self._failures) + SWEEP_SLACK:
                self._due = {other: time for other, time in self._due.items() if time > now}
            self._due[key] = due
        return max(delay, due - now)

    def failures(self, key: K) -> int:
        """Failures of `key` since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Forget the failures of `key`: its next retry is a first one."""
        self._failures.pop(key, None)

    def drop(self, match: Callable[[K], bool]) -> None:
        """Forget the failures of all keys that match."""
        for key in [key for key in self._failures if match(key)]:
            del self._failures[key]
