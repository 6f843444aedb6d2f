from __future__ import annotations

import json
import logging
import sys

import pytest

from kopylite.diagnostics import JsonFormatter, TextFormatter, configure_logging, redact
from kopylite.diagnostics.log import QUIET_LOGGERS
from kopylite.redaction import remember


def record(message: str, *args: object, error: bool = False, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "shop", "levelname": "INFO", "levelno": 20, "msg": message, "args": args, "created": 1.5, **extra}
    )
    if error:
        try:
            raise ValueError("password: hunter2secret")
        except ValueError:
            made.exc_info = sys.exc_info()
    return made


def context() -> dict[str, object]:
    return {"controller": "myapp", "namespace": "default", "name": "a", "reasons": ("created", "owned changed")}


def test_a_text_line_reads_from_time_to_fields() -> None:
    line = TextFormatter(context).format(record("scaled to %d", 3))
    assert line == (
        "1970-01-01T00:00:01.500Z INFO    shop: scaled to 3  "
        "controller=myapp namespace=default name=a reasons='created,owned changed'"
    )


def test_a_text_line_without_fields_ends_with_its_message() -> None:
    assert TextFormatter().format(record("hello")).endswith("shop: hello")


def test_the_lines_of_a_message_stay_together() -> None:
    lines = TextFormatter(context).format(record("a rule is missing:\n- verbs: [get]")).splitlines()
    assert "a rule is missing:  controller=myapp" in lines[0]
    assert lines[1:] == ["  - verbs: [get]"], "indented, so that no foreign text passes for a record"


def test_a_json_line_is_one_object_with_fields_as_values() -> None:
    line = JsonFormatter(context).format(record("scaled", replicas=3, fields={"outcome": "updated"}))
    assert "\n" not in line
    assert json.loads(line) == {
        "ts": "1970-01-01T00:00:01.500Z",
        "level": "info",
        "logger": "shop",
        "msg": "scaled",
        "controller": "myapp",
        "namespace": "default",
        "name": "a",
        "reasons": ["created", "owned changed"],
        "outcome": "updated",
        "replicas": 3,
    }


def test_a_field_cannot_overwrite_the_message_or_the_time() -> None:
    entry = json.loads(JsonFormatter().format(record("real", fields={"msg": "forged", "ts": "never"})))
    assert entry["msg"] == "real"
    assert entry["ts"].startswith("1970")


def test_an_exception_comes_with_its_traceback_and_without_its_password() -> None:
    entry = json.loads(JsonFormatter().format(record("failed", error=True)))
    assert "ValueError" in entry["exception"]
    assert "hunter2" not in entry["exception"]
    text = TextFormatter().format(record("failed", error=True))
    assert "Traceback" in text
    assert "hunter2" not in text


def test_empty_fields_are_left_out() -> None:
    assert "namespace" not in TextFormatter(lambda: {"namespace": "", "name": "node-1"}).format(record("x"))


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer SECRETVALUE123",
        "{'Authorization': 'Bearer SECRETVALUE123', 'Accept': 'x'}",
        '{"authorization":"Basic SECRETVALUE123"}',
        "Set-Cookie: session=SECRETVALUE123",
        "got bearer SECRETVALUE123 from exec",
        "token eyJhbGciOi.eyJzdWIiOi.SECRETVALUE123",
        "password=SECRETVALUE123",
        "token: SECRETVALUE123",
        "client-key-data: SECRETVALUE123==",
        "https://admin:SECRETVALUE123@registry.local/v2",
        "-----BEGIN RSA PRIVATE KEY-----\nSECRETVALUE123\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nSECRETVALUE123 and cut",
        """{"kind": "Secret", "data": {"k": "SECRETVALUE123"}}""",
        "{'apiVersion': 'v1', 'kind': 'Secret', 'stringData': {'k': 'SECRETVALUE123'}}",
        """{"data":{"k":"SECRETVALUE123"},"kind":"Secret"}""",
        """{"kubectl.kubernetes.io/last-applied-configuration": "{\\"x\\":\\"SECRETVALUE123\\"}"}""",
    ],
)
def test_credentials_are_cut_out(text: str) -> None:
    cleaned = redact(text)
    assert "SECRETVALUE123" not in cleaned
    assert "[redacted]" in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "created Deployment default/web",
        "Secret default/web updated",
        "403 Forbidden: secrets is forbidden: User alice cannot list resource secrets (GET /api/v1/secrets)",
        "serving metrics on http://127.0.0.1:8080/metrics",
        """{"kind": "ConfigMap", "data": {"k": "shown"}}""",
        "basic checks passed",
    ],
)
def test_ordinary_lines_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_foreign_text_cannot_forge_a_record_or_move_the_cursor() -> None:
    forged = "x\n2026-01-01T00:00:00.000Z INFO    kopylite: all is well\r\x1b[2J\x9b\u202e\u2028\ud800\x00"
    text = TextFormatter(lambda: {"name": forged}).format(record("got %s", forged))
    assert len([line for line in text.split("\n") if not line.startswith("  ")]) == 1
    assert all(c.isprintable() or c == "\n" for c in text)
    assert r"\r\x1b[2J\x9b\u202e\u2028\ud800\x00" in text
    text.encode()


def test_a_lone_surrogate_breaks_no_json_line() -> None:
    line = JsonFormatter(lambda: {"na\udcffme": "a\ud800"}).format(record("got %s", "\ud800", error=True, big=2**70))
    line.encode()
    entry = json.loads(line)
    assert entry["msg"] == "got \\ud800"
    assert entry["na\\udcffme"] == "a\\ud800"
    assert entry["big"] == str(2**70)


class Broken(Exception):
    def __str__(self) -> str:
        raise ValueError("hush")


def test_a_log_call_that_is_wrong_is_still_a_line() -> None:
    for formatter in (TextFormatter(), JsonFormatter()):
        assert "its arguments do not fit" in formatter.format(record("%d things", "hush"))
        assert "hush" not in formatter.format(record("%d things", "hush"))
        assert "Broken" in formatter.format(record("x", field=Broken()))
        try:
            raise Broken
        except Broken:
            line = formatter.format(record("failed", exc_info=sys.exc_info()))
        assert "Broken" in line
        assert "failed" in line


def test_the_names_of_what_runs_are_shown_whatever_a_secret_holds() -> None:
    remember("myapp-of-this-test")
    fields = {"controller": "myapp-of-this-test", "namespace": "shop", "name": "a"}
    said = record("for myapp-of-this-test")
    assert "shop: for [redacted]  controller=myapp-of-this-test" in TextFormatter(lambda: fields).format(said)
    assert json.loads(JsonFormatter(lambda: fields).format(said))["controller"] == "myapp-of-this-test"
    ours = record("over", fields=fields)
    ours.name = "kopylite.controller"
    assert "controller=myapp-of-this-test" in TextFormatter().format(ours)
    others = record("over", fields={"name": "myapp-of-this-test"})
    assert "name=[redacted]" in TextFormatter(lambda: {"name": "a"}).format(others), "whatever others call a name"


def test_a_process_without_stderr_logs_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for logger in map(logging.getLogger, (None, *QUIET_LOGGERS)):  # as they are, afterwards
        monkeypatch.setattr(logger, "level", logger.level)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(sys, "stderr", None)
    assert configure_logging("text", "info", bar=True) is None
    logging.getLogger("shop").error("nobody hears this")
