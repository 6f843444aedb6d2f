from __future__ import annotations

import base64
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trustme

from kopylite.client import execplugin
from kopylite.client.clusterinfo import ClusterInfo
from kopylite.client.credentials import (
    CachedCredentials,
    ClientIdentity,
    KeyPair,
    StaticCredentials,
    basic,
    bearer,
    token_file,
)
from kopylite.client.execplugin import PLUGIN_MIN_INTERVAL, exec_plugin, identity_of
from kopylite.client.kubeconfig import EnvironmentVariable, ExecSpec
from kopylite.client.tls import TlsSettings
from kopylite.errors import KubeconfigError
from kopylite.testing.clock import VirtualClock

V1 = "client.authentication.k8s.io/v1"


def plugin(folder: Path, program: str, **more: Any) -> ExecSpec:
    """The exec entry for a plugin that is a Python program; it counts its runs in the file `runs`."""
    script = folder / "plugin.py"
    script.write_text(f"open({str(folder / 'runs')!r}, 'a').write('x')\nimport json, os, sys\n{program}")
    settings = {"command": sys.executable, "args": [str(script)], "api_version": V1, "interactive_mode": "Never"}
    return ExecSpec(**settings | more)


def status(**fields: str) -> str:
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": fields}
    return f"print({json.dumps(json.dumps(answer))})"


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def test_secrets_are_in_no_repr() -> None:
    identity = ClientIdentity("Bearer hush", KeyPair(b"hush", b"hush"))
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


async def test_a_token_beside_a_token_file_is_used_while_the_file_cannot_be_read(tmp_path: Path) -> None:
    clock, path = VirtualClock(), tmp_path / "token"
    credentials = token_file(path, fallback=bearer("beside"), clock=clock)
    assert (await credentials.fetch()).authorization == "Bearer beside"
    path.write_text("from the file")
    clock.advance(61)
    assert (await credentials.fetch()).authorization == "Bearer from the file"


@pytest.mark.parametrize("content", [b"hush\nhush", b"hush\x00", b"\xff\xfe", b"x" * 2_000_000])
async def test_a_token_file_that_no_header_can_hold_is_refused_without_being_shown(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(KubeconfigError, match="token file") as caught:
        await token_file(tmp_path / "token").fetch()
    assert "hush" not in str(caught.value)


async def test_requests_at_the_same_time_share_one_load() -> None:
    loads = 0

    async def load() -> ClientIdentity:
        nonlocal loads
        loads += 1
        await anyio.lowlevel.checkpoint()
        return bearer(str(loads))

    credentials = CachedCredentials(load)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(credentials.fetch)
    assert loads == 1


async def test_a_failure_that_nobody_foresaw_leaves_the_old_identity_in_use_too() -> None:
    clock, loads = VirtualClock(), 0

    async def load() -> ClientIdentity:
        nonlocal loads
        loads += 1
        if loads != 2:
            raise RuntimeError("token=hush")
        return ClientIdentity("Bearer t", lifetime=60)

    credentials = CachedCredentials(load, clock=clock)
    with pytest.raises(KubeconfigError, match="cannot be loaded: RuntimeError") as caught:
        await credentials.fetch()
    assert "hush" not in str(caught.value)
    first = await credentials.fetch()
    clock.advance(70)
    assert await credentials.fetch() is first


async def test_rejections_in_a_row_cause_one_load_per_interval() -> None:
    clock = VirtualClock()

    async def load() -> ClientIdentity:
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
    issued = trustme.CA().issue_cert("client")
    certificate, key = issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()
    spec = plugin(tmp_path, status(clientCertificateData=certificate, clientKeyData=key))
    identity = await exec_plugin(spec, "file").fetch()
    assert identity.key_pair == KeyPair(certificate.encode(), key.encode())
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
        ("sys.exit('no entry')", r"failed \(exit code 1\): no entry"),
        ("print('hello')", "is no ExecCredential as JSON or YAML"),
        ("sys.stdout.buffer.write(bytes(range(256)))", "is no ExecCredential as JSON or YAML"),
        ("print('[' * 200_000)", "is no ExecCredential as JSON or YAML"),
        ("print(' ' * 2_000_000)", "printed more than 1 MiB"),
        ("sys.stderr.buffer.write(bytes(range(128, 256)) + b'\\n\\x1b[2J\\n'); sys.exit(3)", r"exit code 3\)"),
        ("os.kill(os.getpid(), 9)", r"exit code -9\)"),
        (status(), "neither a token nor a client certificate"),
        (status(clientKeyData="hush"), "a certificate or a key without the other"),
    ],
)
async def test_a_plugin_that_fails_says_whose_it_is(tmp_path: Path, program: str, message: str) -> None:
    with pytest.raises(KubeconfigError, match=f"(?s)file x, user y.*{message}") as caught:
        await exec_plugin(plugin(tmp_path, program), "file x, user y").fetch()
    assert "hush" not in str(caught.value)


async def test_a_missing_plugin_is_named_with_its_install_hint() -> None:
    spec = ExecSpec(
        command="no-such-plugin-anywhere", api_version=V1, interactive_mode="Never", install_hint="brew install it\x1b"
    )
    with pytest.raises(
        KubeconfigError, match="'no-such-plugin-anywhere' was not found: brew install it\N{REPLACEMENT CHARACTER}"
    ):
        await exec_plugin(spec, "file").fetch()


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_plugin_that_cannot_be_started_is_a_documented_error(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("no program")
    with pytest.raises(KubeconfigError, match=r"cannot be run: chmod \+x it"):
        await exec_plugin(plugin(tmp_path, "", command=str(tmp_path / "script")), "file").fetch()
    (tmp_path / "script").chmod(0o755)
    for spec in (
        plugin(tmp_path, "", command=str(tmp_path / "script")),
        plugin(tmp_path, "", args=["a\0b"]),
        plugin(tmp_path, "", env=[EnvironmentVariable("A=B", "x")]),
        plugin(tmp_path, "", env=[EnvironmentVariable("A", "\ud800")]),
    ):
        with pytest.raises(KubeconfigError, match="cannot be started"):
            await exec_plugin(spec, "file").fetch()


async def test_a_plugin_is_told_of_the_cluster_if_it_asks_and_gets_its_environment(tmp_path: Path) -> None:
    program = (
        f"open({str(tmp_path / 'told')!r}, 'w').write(json.dumps([os.environ['KUBERNETES_EXEC_INFO'],"
        f" os.environ['GIVEN'], os.environ['EMPTY'], sys.stdin.read()]))\n{status(token='t')}"
    )
    environment = [EnvironmentVariable("GIVEN", "x"), EnvironmentVariable("EMPTY")]
    tls = TlsSettings(ca=b"a CA", server_name="name")
    cluster = ClusterInfo("https://example.com", tls, "http://proxy:3128", {"audience": "a"})

    async def told(asks: bool) -> Any:
        spec = plugin(tmp_path, program, env=environment, provide_cluster_info=asks)
        await exec_plugin(spec, "file", cluster).fetch()
        info, *rest = json.loads((tmp_path / "told").read_text())
        assert rest == ["x", "", ""]
        return json.loads(info)

    assert await told(False) == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}
    assert (await told(True))["spec"]["cluster"] == {
        "server": "https://example.com",
        "tls-server-name": "name",
        "certificate-authority-data": base64.b64encode(b"a CA").decode(),
        "proxy-url": "http://proxy:3128",
        "config": {"audience": "a"},
    }


async def test_what_a_plugin_says_is_seen_while_it_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    waits = f"while not os.path.exists({str(tmp_path / 'signed-in')!r}): pass\n"
    program = f"print('enter the code AB12', file=sys.stderr, flush=True)\n{waits}{status(token='t')}"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(exec_plugin(plugin(tmp_path, program), "file").fetch)
        await until(lambda: "enter the code AB12" in caplog.text)
        (tmp_path / "signed-in").touch()


async def test_much_on_stderr_blocks_nothing_and_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = f"sys.stderr.write('a line\\n' * 60_000 + 'x' * 400_000)\n{status(token='t')}"
    with anyio.fail_after(30):
        assert (await exec_plugin(plugin(tmp_path, program), "file").fetch()).authorization == "Bearer t"
    assert caplog.text.count("a line") == 40
    assert "more lines are not shown" in caplog.text


async def test_a_plugin_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execplugin, "PLUGIN_TIMEOUT", 1.0)
    monkeypatch.setattr(execplugin, "TERMINATION_GRACE", 0.1)
    child = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    program = (
        "import subprocess, signal, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        f"child.stdout.readline()\nopen({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "signal.signal(15, signal.SIG_IGN)\nprint('sign in please', file=sys.stderr)\ntime.sleep(600)"
    )
    with anyio.fail_after(30), pytest.raises(KubeconfigError, match="gave no answer in 1 s and was ended: sign in"):
        await exec_plugin(plugin(tmp_path, program), "file").fetch()
    await all_ended(tmp_path / "pids")


async def test_a_plugin_that_hangs_ends_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    program = f"import time\nopen({str(tmp_path / 'pids')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(exec_plugin(plugin(tmp_path, program), "file").fetch)
        await until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text() != "")
        tasks.cancel_scope.cancel()
    await all_ended(tmp_path / "pids")


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - it is about a log, a file, another process
            await anyio.sleep(0.01)


async def all_ended(pids: Path) -> None:
    """Wait until no process of a file runs any more; one that only waits for its parent has ended."""

    def ended(pid: str) -> bool:
        try:
            return " Z " in Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True

    await until(lambda: all(map(ended, pids.read_text().split())))


async def test_a_child_that_a_plugin_leaves_behind_does_not_hold_up_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execplugin, "OUTPUT_GRACE", 0.1)
    program = (
        "import subprocess\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(str(child.pid))\n{status(token='t')}"
    )
    try:
        with anyio.fail_after(30):
            assert (await exec_plugin(plugin(tmp_path, program), "file").fetch()).authorization == "Bearer t"
    finally:
        os.kill(int((tmp_path / "pids").read_text()), 9)


async def test_a_plugin_that_fails_later_leaves_the_old_token_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, first = VirtualClock(), status(token="t", expirationTimestamp="2026-01-01T00:10:00Z")
    broken = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": None})
    program = f"if os.path.getsize({str(tmp_path / 'runs')!r}) == 1:\n    {first}\nelse:\n    print({broken!r})"
    credentials = exec_plugin(plugin(tmp_path, program), "file", clock=clock)
    await credentials.fetch()
    clock.advance(700)
    assert (await credentials.fetch()).authorization == "Bearer t"
    assert "has no status" in caplog.text
    assert "the old ones stay in use" in caplog.text
    clock.advance(9)
    assert credentials.current() is not None, "not again for each request"
    clock.advance(2)
    assert credentials.current() is None, "but soon: the old token has ended"


async def test_a_plugin_that_fails_is_not_run_again_for_each_request(tmp_path: Path) -> None:
    clock = VirtualClock()
    credentials = exec_plugin(plugin(tmp_path, "sys.exit(1)"), "file", clock=clock)
    for _ in range(3):
        with pytest.raises(KubeconfigError, match="exit code 1"):
            await credentials.fetch()
    assert runs(tmp_path) == 1
    clock.advance(PLUGIN_MIN_INTERVAL + 1)
    with pytest.raises(KubeconfigError):
        await credentials.fetch()
    assert runs(tmp_path) == 2


def credential(**status: object) -> bytes:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        credential(token="t"),
        b"\xef\xbb\xbf" + credential(token="t", expirationTimestamp="2030-01-01T00:00:00.123456789Z"),
        credential(token="t").replace(b'"kind": "ExecCredential", ', b""),
        f"apiVersion: {V1}\nstatus:\n  token: t\n  expirationTimestamp: 2030-01-01T00:00:00Z\n".encode(),
    ],
)
def test_an_answer_is_read_as_client_go_reads_it(answer: bytes) -> None:
    assert identity_of(answer, V1, "file", VirtualClock().now()).authorization == "Bearer t"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "no ExecCredential as JSON or YAML"),
        (b"null", "no ExecCredential as JSON or YAML: Expected `object`"),
        (b"[]", "Expected `object`"),
        (b'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}', "has no status"),
        (credential().replace(b"{}", b"null"), "has no status"),
        (credential().replace(b"{}", b"[]"), "Expected `object"),
        (credential(), "neither a token nor"),
        (credential(token=5), "got `int`"),
        (credential(token="hush").replace(b"/v1", b"/v1beta1"), "of apiVersion client.authentication.k8s.io/v1"),
        (credential(token="hush").replace(b"ExecC", b"C"), "of kind ExecCredential"),
        (credential(token="hu\nsh"), "token holds a line break"),
        (credential(token="hush\ud800"), "the exec plugin's answer"),
        (credential(token="hush", expirationTimestamp="2026-01-01T00:10:00"), "a time with a zone"),
        (credential(token="hush", expirationTimestamp="tomorrow"), "a time with a zone"),
        (credential(token="hush", expirationTimestamp="9999-99-99T00:00:00Z"), "a time with a zone"),
        (credential(token="hush", expirationTimestamp=5), "got `int`"),
        (credential(clientCertificateData="hush"), "without the other"),
        (credential(clientCertificateData="hush", clientKeyData="hush"), "client certificate and its key do not fit"),
    ],
)
def test_a_malformed_answer_is_a_documented_error(answer: bytes, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message) as caught:
        identity_of(answer, V1, "file", VirtualClock().now())
    assert "hush" not in str(caught.value)
    assert "hu\nsh" not in str(caught.value)
