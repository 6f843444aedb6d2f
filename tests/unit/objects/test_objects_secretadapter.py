"""What a Secret holds is known to the redaction before anybody can quote it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from kubernetes_asyncio.client import V1Secret

from kopylite.errors import DecodeError
from kopylite.objects import Kind, adapter_of
from kopylite.objects.secretadapter import SecretAdapter, is_secret
from kopylite.redaction import MARK, redact


def secret(value: str, **more: Any) -> bytes:
    data = {"k": base64.b64encode(value.encode()).decode()}
    return json.dumps({"metadata": {"name": "a"}, "data": data, **more}).encode()


def test_a_secret_is_one_of_the_core_group_only() -> None:
    assert is_secret(Kind("v1", "Secret"))
    assert not is_secret(Kind("v1", "ConfigMap"))
    assert not is_secret(Kind("example.com/v1", "Secret"))
    assert isinstance(adapter_of(V1Secret), SecretAdapter)
    assert adapter_of(V1Secret).kind.kind == "Secret"
    assert not isinstance(adapter_of(Kind("example.com/v1", "Secret")), SecretAdapter)


def test_one_that_cannot_be_read_is_known_before_its_error_is_told() -> None:
    for broken in ({"data": ["canary-of-a-list"]}, {"kind": 5}):
        with pytest.raises(DecodeError) as caught:
            adapter_of(V1Secret).decode(secret("canary-of-a-misfit", **broken))
        assert "canary" not in str(caught.value)
    assert redact("x canary-of-a-misfit") == f"x {MARK}"


def test_what_is_read_and_written_is_what_the_adapter_inside_makes_of_it() -> None:
    adapter = adapter_of(Kind("v1", "Secret"))
    read = adapter.decode(secret("canary-that-was-read"))
    assert read["data"]["k"] == base64.b64encode(b"canary-that-was-read").decode()
    read["stringData"] = {"more": "canary-that-was-written"}
    wire = adapter.encode(read)
    assert wire["stringData"] == {"more": "canary-that-was-written"}
    assert redact("canary-that-was-read, canary-that-was-written") == f"{MARK}, {MARK}"
