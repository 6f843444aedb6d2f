from __future__ import annotations

import base64
import json
import math
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from kopylite.client.credentials import (
    PLUGIN_MIN_INTERVAL,
    CachedCredentials,
    Identity,
    KeyPair,
    StaticCredentials,
    auth_provider,
    basic,
    bearer,
    exec_plugin,
    token_file,
)
from kopylite.errors import KubeconfigError
from kopylite.testing.clock import VirtualClock


def plugin(folder: Path, program: str, **more: object) -> dict[str, object]:
    """The exec entry for a plugin that is a Python program; it counts its runs in the file `runs`."""
    script = folder / "plugin.py"
    script.write_text(f"open({str(folder / 'runs')!r}, 'a').write('x')\nimport json, os, sys\n{program}")
    return {"command": sys.executable, "args": [str(script)], "apiVersion": "client.authentication.k8s.io/v1", **more}


def status(**fields: str) -> str:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": fields}
    return f"print({json.dumps(json.dumps(answer))})"


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def test_secrets_are_in_no_repr() -> None:
    identity = Identity("Bearer hush", KeyPair(b"hush", b"hush"))
    assert "hush" not in repr(identity)
    assert "hush" not in repr(identity.key_pair)
    assert "hush" not in repr(StaticCredentials(identity))
    assert base64.b64encode(b"u:hush").decode() not in repr(basic("u", "hush"))


def test_basic_and_bearer_make_headers() -> None:
    assert bearer("t").authorization == "Bearer t"
    assert basic("user", "pass").authorization == "Basic dXNlcjpwYXNz"


async def test_static_credentials_never_change() -> None:
    credentials = StaticCredentials(bearer("t"))
    current = credentials.current()
    assert current is not None
    assert await credentials.fetch() is current
    assert not credentials.reject(current)


async def test_a_token_file_is_read_again_each_minute(tmp_path: Path) -> None:
    clock, path = VirtualClock(), tmp_path / "token"
    path.write_text("one\n")
    credentials = token_file(path, clock=clock)
    assert (await credentials.fetch()).authorization == "Bearer one"
    path.write_text("two\n")
    clock.advance(59)
    assert credentials.current() is not None
    clock.advance(2)
    assert credentials.current() is None
    assert (await credentials.fetch()).authorization == "Bearer two"


async def test_a_token_file_is_read_again_after_a_rejection(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = token_file(path)
    first = await credentials.fetch()
    path.write_text("two")
    assert credentials.reject(first)
    assert (await credentials.fetch()).authorization == "Bearer two"
    assert credentials.reject(first), "another request was rejected with the old token: the new one is worth a try"
    assert credentials.current() is not None


async def test_a_token_file_that_vanishes_leaves_the_token_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, path = VirtualClock(), tmp_path / "token"
    path.write_text("one")
    credentials = token_file(path, clock=clock)
    await credentials.fetch()
    path.unlink()
    clock.advance(61)
    assert (await credentials.fetch()).authorization == "Bearer one"
    assert "could not be renewed" in caplog.text
    path.write_text("")
    clock.advance(61)
    assert (await credentials.fetch()).authorization == "Bearer one"


async def test_an_empty_or_missing_token_file_is_an_error_at_first(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(KubeconfigError, match="is empty"):
        await token_file(tmp_path / "token").fetch()
    with pytest.raises(KubeconfigError, match="cannot be read"):
        await token_file(tmp_path / "none").fetch()


async def test_requests_at_the_same_time_share_one_load() -> None:
    loads = 0

    async def load() -> Identity:
        nonlocal loads
        loads += 1
        await anyio.lowlevel.checkpoint()
        return bearer(str(loads))

    credentials = CachedCredentials(load)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(credentials.fetch)
    assert loads == 1


async def test_rejections_in_a_row_cause_one_load_per_interval() -> None:
    clock = VirtualClock()

    async def load() -> Identity:
        return bearer("rejected")

    credentials = CachedCredentials(load, min_interval=10, clock=clock)
    identity = await credentials.fetch()
    assert not credentials.reject(identity)
    clock.advance(11)
    assert credentials.reject(identity)
    assert credentials.current() is None


async def test_an_exec_plugin_gives_a_token_until_shortly_before_its_end(tmp_path: Path) -> None:
    clock = VirtualClock()
    spec = plugin(tmp_path, status(token="hush", expirationTimestamp="2026-01-01T00:10:00Z"))
    credentials = exec_plugin(spec, "file", clock=clock)
    assert credentials.current() is None
    assert (await credentials.fetch()).authorization == "Bearer hush"
    clock.advance(580)
    assert credentials.current() is not None
    clock.advance(11)
    assert credentials.current() is None, "renewed before it ends, not after"
    await credentials.fetch()
    assert runs(tmp_path) == 2


async def test_an_exec_plugin_may_give_a_client_certificate(tmp_path: Path) -> None:
    identity = await exec_plugin(
        plugin(tmp_path, status(clientCertificateData="cert", clientKeyData="key")), "file"
    ).fetch()
    assert identity.key_pair == KeyPair(b"cert", b"key")
    assert identity.authorization is None
    assert identity.lifetime == math.inf


async def test_a_rejected_plugin_token_is_renewed_but_not_in_a_storm(tmp_path: Path) -> None:
    clock = VirtualClock()
    credentials = exec_plugin(plugin(tmp_path, status(token="t")), "file", clock=clock)
    identity = await credentials.fetch()
    assert not credentials.reject(identity)
    clock.advance(PLUGIN_MIN_INTERVAL + 1)
    assert credentials.reject(identity)
    await credentials.fetch()
    assert runs(tmp_path) == 2


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("sys.exit('no entry')", "plugin failed.*no entry"),
        ("print('hello')", "plugin failed"),
        (status(), "neither a token nor a client certificate"),
        (status(clientKeyData="hush"), "a certificate or a key without the other"),
    ],
)
async def test_a_plugin_that_fails_says_whose_it_is(tmp_path: Path, program: str, message: str) -> None:
    with pytest.raises(KubeconfigError, match=f"(?s)file x, user y.*{message}") as caught:
        await exec_plugin(plugin(tmp_path, program), "file x, user y").fetch()
    assert "hush" not in str(caught.value)


async def test_a_missing_plugin_is_named_with_its_install_hint() -> None:
    spec = {"command": "no-such-plugin-anywhere", "apiVersion": "v1", "installHint": "brew install it"}
    with pytest.raises(KubeconfigError, match="not found: brew install it"):
        await exec_plugin(spec, "file").fetch()


def jwt(expires: float) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in ({}, {"exp": expires})]
    return ".".join([*parts, "signature"])


async def test_an_oidc_provider_gives_its_token_while_it_lasts() -> None:
    token = jwt(4102444800)  # the year 2100
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    assert (await auth_provider(user, "file").fetch()).authorization == f"Bearer {token}"


async def test_an_oidc_provider_that_cannot_renew_is_an_error() -> None:
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": jwt(0)}}}
    with pytest.raises(KubeconfigError, match="file: the auth provider failed"):
        await auth_provider(user, "file").fetch()


async def test_an_unknown_provider_is_an_error_with_the_way_out() -> None:
    with pytest.raises(KubeconfigError, match="exec plugin is its usual successor"):
        await auth_provider({"auth-provider": {"name": "azure", "config": {}}}, "file").fetch()
