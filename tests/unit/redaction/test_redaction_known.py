from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import V1Secret

from kopylite.client.config import ClientConfig
from kopylite.client.credentials import basic, bearer
from kopylite.diagnostics import JsonFormatter, TextFormatter
from kopylite.objects import Kind, adapter_of
from kopylite.redaction import MARK, KnownSecrets, known, redact


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(**data: str) -> bytes:
    metadata = {"name": "the-name", "labels": {"a": "b"}, "managedFields": [{"manager": "kubectl"}]}
    return json.dumps({"kind": "Secret", "metadata": metadata, "data": data}).encode()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=40), st.text(), st.text())
def test_a_known_value_is_found_in_any_text_and_form(value: str, before: str, after: str) -> None:
    secrets = KnownSecrets()
    secrets.remember(value)
    for form in (value, encoded(value).rstrip("="), json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, safe="")):
        if len(value.strip()) >= 6 and not value.startswith("-----"):
            assert MARK in secrets.redact(before + form + after)
            assert value not in secrets.redact(f"{form}")


def in_go(text: str) -> str:
    """As Go's encoding/json writes it."""
    written = json.dumps(text, ensure_ascii=False)
    return written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@pytest.mark.parametrize(
    "value",
    [
        "hunter2hunter",
        'pä"sswort12',
        "p<ss&wo>rd12",
        "ab/cd%ef/gh+",
        "one two three+four",
        "dom\\user\\pä",
        "pw😀secret",
    ],
)
@pytest.mark.parametrize(
    "written",
    [
        lambda value: json.dumps(value, ensure_ascii=False), lambda value: json.dumps(json.dumps(value)), in_go,
        lambda value: json.dumps(in_go(value), ensure_ascii=False), ascii, lambda value: repr(value.encode()),
        quote, quote_plus, lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
        lambda value: value.encode().hex(), lambda value: value.encode().hex().upper(),
    ],
)  # fmt: skip
def test_each_way_to_write_a_value_is_known(value: str, written: Any) -> None:
    secrets = KnownSecrets()
    secrets.remember_secret(secret(key=encoded(value)))
    assert len(secrets.redact(written(value)).replace(MARK, "")) <= len('"\\"\\""')


def test_bytes_that_are_no_text_are_known_in_a_repr() -> None:
    secrets, key = KnownSecrets(), bytes(range(200, 232))
    secrets.remember_secret(secret(key=base64.b64encode(key).decode()))
    assert secrets.redact(f"the key is {key!r}") == f"the key is b'{MARK}'"
    assert secrets.redact(json.dumps(f"the key is {key!r}")) == f"\"the key is b'{MARK}'\""


@pytest.mark.parametrize("code", [bytes.hex, base64.b64encode, base64.urlsafe_b64encode])
def test_bytes_that_are_no_text_are_known_in_each_code(code: Callable[[bytes], str | bytes]) -> None:
    secrets, key = KnownSecrets(), bytes(range(200, 220))
    secrets.remember_secret(secret(key=base64.b64encode(key).decode()))
    coded = code(key)
    written = (coded if isinstance(coded, str) else coded.decode()).rstrip("=")
    assert secrets.redact(f"the key is {written}.") == f"the key is {MARK}."


@given(st.lists(st.text(min_size=1), max_size=5), st.text())
def test_other_texts_stay(values: list[str], text: str) -> None:
    secrets = KnownSecrets()
    for value in values:
        secrets.remember(value)
    if not any(form in text for value in values for form in known._forms(value)):
        assert secrets.redact(text) == text


def test_lines_of_a_file_and_secrets_in_json_are_known() -> None:
    secrets = KnownSecrets()
    secrets.remember('first line\nsecond line\n{"auths"')
    assert secrets.redact("in the second line") == f"in the {MARK}"
    secrets.remember('{"auths": {"registry": {"auth": "hidden-here", "email": "shown@example.com"}}}')
    assert secrets.redact("hidden-here for shown@example.com") == f"{MARK} for shown@example.com"


def test_what_is_public_or_short_in_a_secret_stays() -> None:
    secrets = KnownSecrets()
    data = {"namespace": "default-namespace", "tls.crt": "-certificate-", "name": "the-name", "port": "5432"}
    secrets.remember_secret(secret(**{name: encoded(value) for name, value in data.items()}))
    text = "default-namespace -certificate- the-name 5432"
    assert secrets.redact(text) == text


@pytest.mark.parametrize(
    "broken",
    [b"", b"[]", b"{}", b"\xff", b'{"data":5}', b'{"data":{"a":5}}', b'{"metadata":[],"data":{"a":"%"}}', b"[" * 9999],
)
def test_an_object_that_is_no_secret_is_no_error(broken: bytes) -> None:
    KnownSecrets().remember_secret(broken)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "LIMIT", 100)
    secrets = KnownSecrets()
    for number in range(1000):
        secrets.remember(f"value-{number:06}")
    assert len(secrets) == 100
    assert sum(sum(lengths.values()) for lengths in secrets._lengths.values()) == 100
    assert MARK in secrets.redact("value-000999")
    assert MARK not in secrets.redact("value-000000")


@pytest.mark.parametrize("kind", [Kind("v1", "Secret"), V1Secret])
def test_secrets_are_known_once_they_were_read_or_written(kind: Any) -> None:
    adapter = adapter_of(kind)
    name = kind.kind if isinstance(kind, Kind) else kind.__name__
    read = adapter.decode(secret(k=encoded(f"read as {name}")))
    assert redact(f"invalid: read as {name}") == f"invalid: {MARK}"
    if isinstance(kind, Kind):
        read["stringData"] = {"k": f"written as {name}"}
    else:
        read.string_data = {"k": f"written as {name}"}
    adapter.encode(read)
    assert redact(f"invalid: written as {name}") == f"invalid: {MARK}"


def test_credentials_of_the_client_are_known() -> None:
    bearer("the-token-of-a-client")
    basic("user", "the-password-of-a-user")
    ClientConfig("https://example.com", proxy="http://user:the-password-of-a-proxy@proxy")
    text = "the-token-of-a-client, the-password-of-a-user, the-password-of-a-proxy"
    assert redact(text) == ", ".join([MARK] * 3)


@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_no_log_shows_what_is_known(formatter: type[logging.Formatter]) -> None:
    bearer("known-canary")
    record = logging.makeLogRecord({"msg": "got %s", "args": ("known-canary",), "levelname": "INFO"})
    record.__dict__.update(
        field="known-canary", fields={"list": ["known-canary"], "password": "any", "n": {"token": "any"}}
    )
    try:
        raise ValueError("known-canary")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    line = formatter().format(record)
    assert line.count(MARK) >= 5
    assert "known-canary" not in line
    assert "any" not in line
