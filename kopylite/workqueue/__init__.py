"""WAIT: which key runs next, and when."""

from __future__ import annotations

from kopylite.workqueue.ratelimiters import RateLimit, RateLimiter

__all__ = ["RateLimit", "RateLimiter"]
