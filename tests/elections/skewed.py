"""`python -m kopylite`, on a machine whose wall clock is wrong by SKEW seconds."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

from kopylite import clock
from kopylite.cli import script

SKEW = timedelta(seconds=float(os.environ.get("SKEW", "0")))


def now(self: clock.SystemClock) -> datetime:
    return datetime.now(UTC) + SKEW


if __name__ == "__main__":
    clock.SystemClock.now = now  # type: ignore[method-assign]
    sys.argv[0] = "kopylite"
    script()
