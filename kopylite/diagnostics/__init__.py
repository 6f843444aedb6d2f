"""EXPLAIN: why nothing happens, or too much."""

from __future__ import annotations

from kopylite.diagnostics.log import JsonFormatter, TextFormatter, configure_logging
from kopylite.diagnostics.redact import redact
from kopylite.diagnostics.stall import StallStatistics, StallWatch

__all__ = ["JsonFormatter", "StallStatistics", "StallWatch", "TextFormatter", "configure_logging", "redact"]
