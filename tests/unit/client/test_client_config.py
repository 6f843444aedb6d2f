from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopylite.client import config as config_module
from kopylite.client.config import ClientConfig, from_kubeconfig, in_cluster, load_config
from kopylite.client.kubeconfig import read_kubeconfig
from kopylite.errors import KubeconfigError


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig, pod or proxy of the machine."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def write(
    path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any
) -> Path:
    """A kubeconfig with one context "main" of cluster "c" and user "u"."""
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "main",
    } | more
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def load(path: Path, context: str | None = None) -> ClientConfig:
    return from_kubeconfig(read_kubeconfig([path]), context)


def header(config: ClientConfig) -> str | None:
    identity = config.credentials.current()
    assert identity is not None
    return identity.authorization


def test_a_context_gives_server_namespace_and_source(tmp_path: Path) -> None:
    contexts = [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}]
    config = load(write(tmp_path / "kc", contexts=contexts))
    assert config.server == "https://example.com:6443"
    assert config.namespace == "shop"
    assert config.source == f"kubeconfig {tmp_path / 'kc'}, context 'main'"
    assert load(write(tmp_path / "kc")).namespace == "default"


def test_token_and_password_become_headers(tmp_path: Path) -> None:
    assert header(load(write(tmp_path / "kc", user={"token": "t"}))) == "Bearer t"
    assert header(load(write(tmp_path / "kc", user={"username": "u", "password": "p"}))) == "Basic dTpw"
    assert header(load(write(tmp_path / "kc"))) is None


async def test_a_token_file_comes_before_a_token_and_is_relative_to_its_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "token").write_text("from file")
    config = load(write(tmp_path / "sub" / "kc", user={"token": "t", "tokenFile": "token"}))
    assert (await config.credentials.fetch()).authorization == "Bearer from file"


def test_certificates_come_as_data_or_as_files(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("a CA")
    (tmp_path / "tls.crt").write_text("a certificate")
    data = base64.b64encode(b"a key").decode()
    user = {"client-certificate": "tls.crt", "client-key-data": data}
    tls = load(
        write(tmp_path / "kc", cluster={"certificate-authority": "ca.crt", "tls-server-name": "other"}, user=user)
    ).tls
    assert (tls.ca, tls.certificate, tls.key) == (tmp_path / "ca.crt", tmp_path / "tls.crt", b"a key")
    assert (tls.server_name, tls.insecure) == ("other", False)


def test_skipping_verification_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load(write(tmp_path / "kc", cluster={"insecure-skip-tls-verify": True})).tls.insecure
    assert "set certificate-authority instead" in caplog.text


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {"as": "alice", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"scopes/x": ["view"]}}
    assert load(write(tmp_path / "kc", user=user)).headers == (
        ("Impersonate-User", "alice"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes%2Fx", "view"),
    )


def test_the_proxy_is_the_clusters_else_the_environments_and_never_for_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert load(write(tmp_path / "kc")).proxy == "http://proxy:3128"
    assert load(write(tmp_path / "kc", cluster={"proxy-url": "http://mine:1"})).proxy == "http://mine:1"
    assert load(write(tmp_path / "kc", cluster={"server": "https://127.0.0.1:6443"})).proxy is None
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert load(write(tmp_path / "kc")).proxy is None


def test_of_several_files_the_first_with_a_name_counts_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "a" / "kc", cluster={"server": "https://first"}, user={"tokenFile": "t"})
    (tmp_path / "a" / "t").write_text("x")
    second = write(
        tmp_path / "b" / "kc",
        cluster={"server": "https://second", "tls-server-name": "not taken"},
        clusters=[
            {"name": "c", "cluster": {"server": "https://second", "tls-server-name": "not taken"}},
            {"name": "more", "cluster": {"server": "https://more"}},
        ],
        contexts=[{"name": "other", "context": {"cluster": "more", "user": "u"}}],
        **{"current-context": "other"},
    )
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}::{second}")
    config = load_config()
    assert config.server == "https://first"
    assert config.tls.server_name is None
    assert load_config(context="other").server == "https://more"


def test_the_order_is_argument_then_variable_then_pod_then_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KubeconfigError, match="no cluster to connect to"):
        load_config()
    write(tmp_path / "home" / ".kube" / "config", cluster={"server": "https://home"})
    assert load_config().server == "https://home"
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("t")
    monkeypatch.setattr(config_module, "SERVICE_ACCOUNT", account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert load_config().source == "in-cluster"
    assert load_config(context="main").server == "https://home"
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "kc", cluster={"server": "https://variable"})))
    assert load_config().server == "https://variable"
    given = write(tmp_path / "given", cluster={"server": "https://given"})
    assert load_config(given).server == "https://given"


async def test_in_cluster_reads_the_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KubeconfigError, match="not in a cluster"):
        in_cluster(tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    with pytest.raises(KubeconfigError, match="automountServiceAccountToken"):
        in_cluster(tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("operators\n")
    config = in_cluster(tmp_path)
    assert config.server == "https://[fd00::1]:443"
    assert config.namespace == "operators"
    assert config.proxy is None
    assert config.tls.ca == tmp_path / "ca.crt"
    assert (await config.credentials.fetch()).authorization == "Bearer t"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "no current-context is set.*--context.*main"),
        ({"current-context": "gone"}, "no context 'gone'; choose one of: main"),
        ({"clusters": []}, "context 'main' names the cluster 'c', which is in no file"),
        ({"users": []}, "context 'main' names the user 'u', which is in no file"),
        ({"clusters": [{"cluster": {}}]}, "each entry of `clusters` needs a name"),
        ({"clusters": [{"name": "c", "cluster": "x"}]}, "cluster is no mapping"),
        ({"cluster": {"server": ""}}, "server should be a URL"),
        ({"cluster": {"server": "ftp://x"}}, "server should be a URL"),
        ({"cluster": {"server": "https://u:p@x"}}, "server holds a user name"),
        ({"cluster": {"certificate-authority-data": "%%"}}, "certificate-authority-data is no base64"),
        ({"cluster": {"certificate-authority": "none"}}, "certificate-authority names .*none, which is no file"),
        ({"cluster": {"proxy-url": "socks5://x"}}, "http:// and https:// URLs only"),
        ({"user": {"client-certificate-data": "eA=="}}, "client-key need each other"),
        ({"user": {"tokenFile": "none"}}, "tokenFile names .*none, which is no file"),
        ({"user": {"exec": {"command": "x"}}}, "exec needs a command and an apiVersion"),
        ({"user": {"exec": {"command": "x", "apiVersion": "v1", "interactiveMode": "Always"}}}, "nobody to ask"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_the_way_out(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "kc", **change)
    with pytest.raises(KubeconfigError, match=f"(?s){message}") as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_no_kubeconfig_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = tmp_path / "kc"
    path.write_text("users:\n- token: hush\n  : :\n bad")
    with pytest.raises(KubeconfigError, match=r"is no YAML \(line \d+\)") as caught:
        load_config(path)
    assert "hush" not in str(caught.value)
    path.write_text("[1]")
    with pytest.raises(KubeconfigError, match="should hold a mapping"):
        load_config(path)
    with pytest.raises(KubeconfigError, match="cannot be read"):
        load_config(tmp_path)
    with pytest.raises(KubeconfigError, match="cannot be read"):
        load_config(tmp_path / "missing")


def test_an_empty_file_among_others_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").write_text("")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'empty'}:{write(tmp_path / 'kc')}")
    assert load_config().server == "https://example.com:6443"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(KubeconfigError, match="no such file"):
        load_config()


def test_an_exec_command_with_a_separator_is_relative_to_its_kubeconfig(tmp_path: Path) -> None:
    spec = config_module._exec_spec({"command": "./bin/x", "apiVersion": "v1"}, "file", tmp_path)
    assert spec["command"] == str(tmp_path / "bin" / "x")
    assert config_module._exec_spec({"command": "aws", "apiVersion": "v1"}, "file", tmp_path)["command"] == "aws"


def test_no_secret_is_in_the_repr(tmp_path: Path) -> None:
    data = base64.b64encode(b"hush").decode()
    user = {"token": "hush", "client-certificate-data": data, "client-key-data": data, "as": "hush"}
    config = load(write(tmp_path / "kc", user=user, cluster={"proxy-url": "http://u:hush@proxy"}))
    assert "hush" not in repr(config)
    assert data not in repr(config)
    assert "hush" not in repr(read_kubeconfig([tmp_path / "kc"]))


def test_the_plain_cases_do_not_import_kubernetes_asyncio(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", user={"token": "t"})
    program = (
        f"import sys; from kopylite.client import load_config; load_config({str(path)!r}); "
        "assert not [m for m in sys.modules if m.startswith(('kubernetes_asyncio', 'aiohttp.web'))"
        " if m != 'aiohttp.web_exceptions'], 'imported'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
