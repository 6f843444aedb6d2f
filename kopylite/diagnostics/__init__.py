"""EXPLAIN: why nothing happens, or too much."""

from __future__ import annotations

from kopylite.diagnostics.hotloop import HotLoops
from kopylite.diagnostics.log import JsonFormatter, TextFormatter, configure_logging
from kopylite.diagnostics.loopreport import LoopReport
from kopylite.diagnostics.progress import Bar, ProgressReport
from kopylite.diagnostics.stall import StallStatistics, StallWatch
from kopylite.diagnostics.unawaited import forgotten_awaits
from kopylite.diagnostics.waiting import WaitingReport, reasons_of
from kopylite.redaction import redact

__all__ = [
    "Bar",
    "HotLoops",
    "JsonFormatter",
    "LoopReport",
    "ProgressReport",
    "StallStatistics",
    "StallWatch",
    "TextFormatter",
    "WaitingReport",
    "configure_logging",
    "forgotten_awaits",
    "reasons_of",
    "redact",
]
