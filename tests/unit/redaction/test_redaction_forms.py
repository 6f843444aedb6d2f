from __future__ import annotations

import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kopylite.redaction import MARK, MAX_LENGTH, redact

to_json = json.dumps


def forms(value: str) -> list[str]:
    """The forms in which Kubernetes programs come across secrets."""
    key = yaml.safe_dump({"kind": "Secret", "stringData": {"a": f"{value}\n{value}"}})
    return [
        *(f"{name}={value}" for name in ("password", "DB_PASSWORD", "access_token", "client_secret", "apikey", "pwd")),
        *(f"{name}: {value}" for name in ("passwd", "refresh_token", "clientSecret", "client-secret", "tls.key")),
        *(f"{name}: {value}" for name in ("X-Api-Key", "x-auth-token", "Authorization: Negotiate", "Cookie: a=b; c")),
        *(f"{name} {value}" for name in ("--password", "--token", "passphrase =", "export AWS_SECRET_ACCESS_KEY =")),
        f"password='{value}'", f"password: correct {value} staple", f"the password '{value}' is too short",
        f"--token={value}", f"secret={value}", f"credentials='{value}'", f"'password': b'{value}'",
        repr({"password": value, "user": "bob"}), to_json({"password": value}), to_json(to_json({"password": value})),
        to_json(to_json(to_json({"password": value}))), to_json({"access_token": value, "expires": 3}),
        to_json({"tokens": [value, value]}), repr({"passwords": {"a": value, "b": [value]}}),
        to_json([{"name": "DB_PASSWORD", "value": value}]), f"- name: DB_PASSWORD\n  value: {value}\n",
        repr(["--password", value, "-v"]), repr(("Authorization", f"Bearer {value}")),
        repr((b"Authorization", f"Bearer {value}".encode())), f"curl -H 'Authorization: Bearer {value}' x",
        key, f"data:\n  x: {value}\n  y: >-\n    {value}\nkind: Secret",
        f"kind: Secret\nstringData:\n  a: |\n    {value}\n    more {value}\ntype: Opaque",
        to_json({"kind": "Secret", "data": {"a": value, "b": {"c": value}}}),
        to_json({"kind": "SecretList", "items": [{"data": {"k": value}}, {"stringData": {"k": value}}]}),
        f"V1Secret: {{'string_data': {{'k': '{value}'}}}}", f"Secret(data={{'a': '{value}'}}, kind='Secret')",
        repr(f"kind: Secret\ndata:\n  a: {value}\n"), to_json(f"kind: Secret\nstringData:\n  a: {value}\n"),
        to_json({".dockerconfigjson": value}), to_json({"auths": {"registry": {"auth": value}}}),
        f"password:\n  - {value}\n  - {value}", f"token: >\n  {value}\n  {value}",
        to_json([{"op": "replace", "path": "/data/foo", "value": value}]),
        repr([{"op": "add", "path": "/stringData/foo", "value": value}]),
        f"users:\n- name: a\n  user:\n    token: {value}\n    client-key-data: {value}",
        f'kubectl.kubernetes.io/last-applied-configuration: |\n  {{"data":{{"a":"{value}"}}}}\n',
    ]  # fmt: skip


@pytest.mark.parametrize("value", ["CANARY9", "CANARY{x}y,z&1}", "CANARY[(;=:/+"])
def test_no_form_of_a_secret_gets_through(value: str) -> None:
    leaks = [form for form in forms(value) if "CANARY" in redact(form)]
    assert leaks == []


@pytest.mark.parametrize(
    "text",
    [
        "got bearer CANARY99 from a plugin",
        "https://user:CANARY@host/path",
        "https://CANARY@host/path",
        "root:CANARY@tcp(127.0.0.1:3306)/db",
        "eyJhbGciOi.eyJzdWIiOi.CANARY",
        "ghp_CANARYCANARYCANARY00",
        "-----BEGIN EC PRIVATE KEY-----\nCANARY",
        "LS0tLS1CRUdJTiBFQyBQUklWQVRFCANARY",
    ],
)
def test_the_shape_of_a_secret_is_enough(text: str) -> None:
    assert "CANARY" not in redact(text)
    assert MARK in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "created Deployment default/web",
        "Secret default/web updated",
        "error reading secret: not found",
        "secrets is forbidden: User alice cannot list resource secrets (GET /api/v1/secrets)",
        "a rule is missing:\n- verbs: [get]\n  resources: [secrets]",
        "credentials could not be renewed, the old ones stay in use: x",
        "no basic authentication, no bearer authentication",
        "the author: Bob",
        '{"secretName":"web","tokenRequests":[],"data":{"k":"shown"}}',
        '{"token":null,"password":"","automountServiceAccountToken":false}',
        "",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact(text) == text.replace("bearer authentication", f"bearer {MARK}")


@given(st.text())
def test_any_text_can_be_redacted(text: str) -> None:
    redact(text)
    redact(f"password={text}")
    redact(f'{{"kind": "Secret", "data": {text}')


def test_a_long_text_is_cut() -> None:
    cut = redact("x" * (MAX_LENGTH + 5))
    assert cut == "x" * MAX_LENGTH + "… (5 more characters)"
    assert "CANARY" not in redact("x" * MAX_LENGTH + "CANARY")


UNITS = [
    "token", "\"'", "{[", "token: '", "\\", 'password\\\\"', "-----BEGIN PRIVATE KEY-----", "eyJ-eyJhbGci.", "://a",
    "password:\n ", "token     ", "--password", "name: password\n   value", "kind: Secret data: {", "bearer ",
    "LS0tLS1CRUdJ", "'password': 'a''", "cookie=", "(password=(", "---", "kind: Secret\ndata:\n  - ", "/data/",
]  # fmt: skip


@pytest.mark.slow  # a matter of time, and all of them together take long
@pytest.mark.parametrize("unit", UNITS)
def test_the_cost_grows_as_the_text_does(unit: str) -> None:
    def seconds(length: int) -> float:
        text, times = (unit * length)[:length], []
        for _ in range(3):
            began = time.perf_counter()
            redact(text)
            times.append(time.perf_counter() - began)
        return min(times)

    # A quadratic one takes four times as long, and with these lengths seconds. A busy machine gets more tries.
    assert any(seconds(40_000) < 3 * seconds(20_000) + 0.001 for _ in range(5))
