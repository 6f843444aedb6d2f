"""WAIT: which key runs next, and when."""

from __future__ import annotations

from kopylite.workqueue.queue import QueueStatistics, WorkQueue
from kopylite.workqueue.ratelimiters import RateLimit, RateLimiter

__all__ = ["QueueStatistics", "RateLimit", "RateLimiter", "WorkQueue"]
