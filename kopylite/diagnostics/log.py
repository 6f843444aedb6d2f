"""Log formats: text for people, JSON for machines; both redacted, both with the fields of the running reconcile.

A record's fields come from the context of the reconcile that logs, so plain `logging` calls carry them too, and
from the record itself: `logger.info("…", extra={"fields": {"pod": name}})`, or any other `extra`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kopylite.diagnostics.redact import redact

# What every LogRecord has by itself; the rest came as `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "fields"}

# Their debug output holds request bodies and headers, or is about their own inner life.
QUIET_LOGGERS = ("aiohttp", "asyncio", "kubernetes_asyncio", "urllib3")

ContextFields = Callable[[], Mapping[str, object]]
"""The fields of whatever runs in the present context; empty outside of a reconcile."""


def _no_fields() -> Mapping[str, object]:
    return {}


class _FieldFormatter(logging.Formatter):
    def __init__(self, context_fields: ContextFields = _no_fields) -> None:
        super().__init__()
        self._context_fields = context_fields

    def fields_of(self, record: logging.LogRecord) -> dict[str, object]:
        """Context first, then the record's own; fields that say nothing ("" or None) are left out."""
        own = getattr(record, "fields", None) or {}
        extra = {name: value for name, value in record.__dict__.items() if name not in _OWN}
        merged = {**self._context_fields(), **own, **extra}
        return {name: value for name, value in merged.items() if value is not None and value != ""}

    def trace_of(self, record: logging.LogRecord) -> str:
        parts = []
        if record.exc_info and record.exc_info[0] is not None:
            parts.append(self.formatException(record.exc_info))
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return "\n".join(parts)


class TextFormatter(_FieldFormatter):
    """`2026-11-29T20:17:10.123Z INFO  logger: message  controller=myapp namespace=default name=a …`."""

    def format(self, record: logging.LogRecord) -> str:
        # A message of several lines keeps them together at its end, so that a person can copy them.
        first, newline, rest = record.getMessage().partition("\n")
        line = f"{_timestamp(record)} {record.levelname:<7} {record.name}: {first}"
        if fields := self.fields_of(record):
            line += "  " + " ".join(f"{name}={_plain(value)}" for name, value in fields.items())
        line += newline + rest
        if trace := self.trace_of(record):
            line += "\n" + trace
        return redact(line)


class JsonFormatter(_FieldFormatter):
    """One JSON object a line: ts, level, logger, msg, the fields, and `exception` with the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": redact(record.getMessage()),
        }
        for name, value in self.fields_of(record).items():
            entry.setdefault(name, _safe(value))
        if trace := self.trace_of(record):
            entry["exception"] = redact(trace)
        return msgspec.json.encode(entry).decode()


def configure_logging(form: str, level: str, context_fields: ContextFields = _no_fields) -> None:
    """Send all logging of this process to stderr, in the form "text" or "json", from `level` on.

    For programs (the command line calls it), not for libraries: it replaces the root logger's handlers.
    Libraries below us stay at WARNING or above, because what they write at DEBUG may hold credentials.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter((JsonFormatter if form == "json" else TextFormatter)(context_fields))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        value = ",".join(map(str, value))
    text = str(value)
    return repr(text) if not text or any(c.isspace() for c in text) else text


def _safe(value: object) -> object:
    """The value as something that JSON can say; texts in it redacted."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_safe(item) for item in value]
    return redact(str(value))
