"""WAIT: which key runs next, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.workqueue.queue import QueueStatistics, WorkQueue
    from kopylite.workqueue.ratelimiters import RateLimit, RateLimiter
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.workqueue.queue": "QueueStatistics WorkQueue",
            "kopylite.workqueue.ratelimiters": "RateLimit RateLimiter",
        },
    )

__all__ = ["QueueStatistics", "RateLimit", "RateLimiter", "WorkQueue"]
