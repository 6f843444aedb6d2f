"""Log formats: text for people, JSON for machines; both redacted, both with the fields of the running reconcile.

A record is one line, or one and indented ones: no text that came from elsewhere can pass for a record of its own, move
the cursor of a terminal, or be what no output can encode.

A record's fields come from the context of the reconcile that logs, so plain `logging` calls carry them too, and
from the record itself: `logger.info("…", extra={"fields": {"pod": name}})`, or any other `extra`.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from kopylite.redaction import MARK, is_secret_name, redact

# What every LogRecord has by itself; the rest came as `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "fields"}

# What a run is about: names that everybody sees in paths and Events, also where a Secret holds the same word as a user.
_NAMES = frozenset({"controller", "namespace", "name"})

# Control characters, separators of lines, marks that turn the direction of text, lone surrogates; tab and newline stay.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
)

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

    def is_public(self, record: logging.LogRecord, name: str, value: object) -> bool:
        """Whether a field is the name of what runs, and so no secret; of others' records, as the context says it."""
        return name in _NAMES and (record.name.startswith("kopylite.") or self._context_fields().get(name) == value)

    def message_of(self, record: logging.LogRecord) -> str:
        """The redacted message; of a log call that is wrong, what there is of it."""
        try:
            message = record.getMessage()
        except Exception as error:
            # logging would print the arguments as they are.
            message = f"{record.msg!s:.1000} (its arguments do not fit: {type(error).__name__})"
        return redact(message)

    def trace_of(self, record: logging.LogRecord) -> str:
        """The redacted traceback, "" for none."""
        parts = []
        if record.exc_info and record.exc_info[0] is not None:
            try:
                parts.append(self.formatException(record.exc_info))
            except Exception as error:  # a __str__ that raises
                parts.append(f"{record.exc_info[0].__name__}, which cannot be shown: {type(error).__name__}")
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return redact("\n".join(parts))


class TextFormatter(_FieldFormatter):
    """`2026-11-29T20:17:10.123Z INFO  logger: message  controller=myapp namespace=default name=a …`."""

    def format(self, record: logging.LogRecord) -> str:
        # A message of several lines keeps them together at its end, so that a person can copy them.
        first, newline, rest = self.message_of(record).partition("\n")
        line = f"{_timestamp(record)} {record.levelname:<7} {record.name}: {first}"
        if fields := self.fields_of(record):
            line += "  " + " ".join(
                f"{name}={_plain(name, value, self.is_public(record, name, value))}" for name, value in fields.items()
            )
        line += newline + rest
        if trace := self.trace_of(record):
            line += "\n" + trace
        return _UNPRINTABLE.sub(_escape, line).rstrip("\n").replace("\n", "\n  ")


class JsonFormatter(_FieldFormatter):
    """One JSON object a line: ts, level, logger, msg, the fields, and `exception` with the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _encodable(self.message_of(record)),
        }
        for name, value in self.fields_of(record).items():
            public = self.is_public(record, name, value)
            entry.setdefault(_encodable(name), _encodable(_text(value)) if public else _safe(name, value))
        if trace := self.trace_of(record):
            entry["exception"] = _encodable(trace)
        return msgspec.json.encode(entry).decode()


class BarHandler(logging.StreamHandler[TextIO]):
    """Writes to a terminal, and keeps one line at its end."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._text = ""

    def show(self, text: str) -> None:
        """Show a text at the end, instead of the one before; "": nothing."""
        with self._locked():
            self._clear()
            self._text = text
            self._draw()

    def emit(self, record: logging.LogRecord) -> None:
        self._clear()
        super().emit(record)
        self._draw()

    def _locked(self) -> AbstractContextManager[Any]:
        return self.lock or nullcontext()

    def _clear(self) -> None:
        if self._text:
            self.stream.write("\r\x1b[2K")

    def _draw(self) -> None:
        if self._text:
            self.stream.write(self._text[: shutil.get_terminal_size().columns - 1])
            self.stream.flush()


def configure_logging(
    form: str, level: str, context_fields: ContextFields = _no_fields, *, bar: bool = False
) -> BarHandler | None:
    """Send all logging of this process to stderr, in the form "text" or "json", from `level` on.

    For programs (the command line calls it), not for libraries: it replaces the root logger's handlers.
    With `bar`, and text on a terminal, it returns the handler, which can show a line at the end.
    Libraries below us stay at WARNING or above, because what they write at DEBUG may hold credentials.
    """
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    with_bar = BarHandler(sys.stderr) if bar and form == "text" and on_terminal else None
    handler = with_bar or logging.StreamHandler(sys.stderr)
    handler.setFormatter((JsonFormatter if form == "json" else TextFormatter)(context_fields))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    return with_bar


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(name: str, value: object, public: bool) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        value = ",".join(map(_text, value))
    shown = value if public else MARK if is_secret_name(name) else redact(_text(value))
    text = _text(shown)
    return repr(text) if not text or any(c.isspace() for c in text) else text


def _safe(name: str, value: object) -> object:
    """The value of a field as something that JSON can say; texts in it redacted."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if is_secret_name(name):
        return MARK
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_safe("", item) for item in value]
    return _encodable(redact(_text(value)))


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}, its __str__ raised {type(error).__name__}>"


def _encodable(text: str) -> str:
    """Without lone surrogates, which no output can encode."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
