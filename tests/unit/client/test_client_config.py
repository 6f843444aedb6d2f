from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopylite.client import config as config_module
from kopylite.client.addresses import environment_proxy
from kopylite.client.config import ClientConfig, in_cluster, load_config
from kopylite.client.contexts import from_kubeconfig
from kopylite.client.credentials import StaticCredentials, bearer
from kopylite.client.kubeconfig import read_kubeconfig
from kopylite.errors import KubeconfigError

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig, pod or proxy of the machine."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def write(path: Path, *, cluster: dict[str, Any] | None = None, user: Any = "with a token", **more: Any) -> Path:
    """A kubeconfig with one context "main" of cluster "c" and user "u"."""
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": {"token": "t"} if user == "with a token" else user}],
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
    user = {
        "token": "t",
        "as": "alice",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes/x": ["view"]},
    }
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
        ({"clusters": ["x"]}, "each entry of `clusters` needs a name"),
        ({"clusters": {"c": {}}}, "`clusters` should be a list"),
        ({"clusters": [{"name": "c", "cluster": "x"}]}, "cluster 'c': Expected `object`"),
        ({"clusters": [{"name": "c"}, {"name": "c"}]}, "`clusters` has two entries 'c'"),
        ({"kind": "Secret"}, "should be of apiVersion v1 and kind Config"),
        ({"contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": 5}}]}, "namespace"),
        ({"cluster": {"insecure-skip-tls-verify": "true"}}, "cluster 'c': Expected `bool"),
        ({"cluster": {"server": "https://127.0.0.1:999999"}}, "server should be a URL"),
        ({"cluster": {"server": "https://[::1"}}, "server should be a URL"),
        ({"cluster": {"server": "https://a\nb"}}, "server should be a URL"),
        ({"cluster": {"certificate-authority-data": "eA==", "insecure-skip-tls-verify": True}}, "remove the latter"),
        ({"cluster": {"certificate-authority-data": "eA==", "certificate-authority": "x"}}, "remove one of them"),
        ({"cluster": {"certificate-authority-data": "eA == "}}, "is no base64"),
        ({"user": {"token": 12345}}, "user 'u': Expected `str"),
        ({"user": {"token": "t", "username": "a", "password": "b"}}, "only one of them"),
        ({"user": {"token": "t", "as-groups": ["g"]}}, "need a user: add `as`"),
        ({"user": {"token": "t", "as": "a\nb"}}, "'Impersonate-User' holds a line break"),
        ({"user": {"token": "t\n"}}, "the token holds a line break"),
        ({"user": {"exec": {}, "auth-provider": {}}}, "only one of them"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "gke-gcloud-auth-plugin"),
        ({"cluster": {"server": ""}}, "server should be a URL"),
        ({"cluster": {"server": "ftp://x"}}, "server should be a URL"),
        ({"cluster": {"server": "https://u:p@x"}}, "server holds a user name"),
        ({"cluster": {"certificate-authority-data": "%%"}}, "certificate-authority-data is no base64"),
        ({"cluster": {"certificate-authority-data": "DATA+OMITTED"}}, "certificate-authority-data was left out.*--raw"),
        ({"user": {"client-certificate-data": "REDACTED", "client-key-data": "x"}}, "data was left out.*--raw"),
        ({"user": {"token": "REDACTED"}}, "token was left out.*--raw"),
        ({"user": {"username": "a", "password": "REDACTED"}}, "password was left out.*--raw"),
        ({"cluster": {"certificate-authority": "none"}}, "certificate-authority names .*none, which is no file"),
        ({"cluster": {"proxy-url": "ftp://x"}}, "a proxy should be a URL"),
        ({"user": {"client-certificate-data": "eA=="}}, "client-certificate needs a client-key"),
        ({"user": {"tokenFile": "none"}}, "tokenFile names .*none, which is no file"),
        ({"user": {"exec": {"command": "x"}}}, "exec needs a command and an apiVersion"),
        ({"user": {"exec": {"command": "x", "apiVersion": "v1"}}}, "exec has apiVersion 'v1'"),
        ({"user": {"exec": {"command": "x", "apiVersion": V1}}}, "exec has no interactiveMode"),
        ({"user": {"exec": {"command": "x", "apiVersion": V1, "env": [{}]}}}, "without a name"),
        ({"user": {"exec": {"command": "x", "apiVersion": V1, "args": [1]}}}, r"got `int` - at `\$.exec.args\[0\]"),
        ({"user": {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Always"}}}, "nobody to ask"),
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
    def command(written: str) -> str | None:
        path = write(tmp_path / "kc", user={"exec": {"command": written}})
        spec = read_kubeconfig([path]).users["u"].values.exec
        assert spec is not None
        return spec.command

    assert command("./bin/x") == str(tmp_path / "bin" / "x")
    assert command("./missing/../bin/x") == str(tmp_path / "bin" / "x"), "as Go has it: by the text alone"
    assert command("aws") == "aws"


def test_no_secret_is_in_the_repr(tmp_path: Path) -> None:
    data = base64.b64encode(b"hush").decode()
    user = {"token": "hush", "client-certificate-data": data, "client-key-data": data, "as": "hush"}
    assert "hush" not in repr(read_kubeconfig([write(tmp_path / "kc", user=user)]).users)
    config = load(write(tmp_path / "kc", user=user, cluster={"proxy-url": "http://u:hush@proxy"}))
    assert "hush" not in repr(config)
    assert data not in repr(config)
    assert "hush" not in repr(read_kubeconfig([tmp_path / "kc"]))


def test_the_plain_cases_do_not_import_kubernetes_asyncio(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", user={"token": "t"})
    program = (
        f"import sys; from kopylite.client import load_config; load_config({str(path)!r}); "
        "assert not [m for m in sys.modules if m.startswith(('kubernetes_asyncio', 'aiohttp'))], 'imported'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


@pytest.mark.parametrize(
    "change",
    [
        {"user": None},
        {"user": {}},
        {"user": {"token": None}},
        {"user": {"token": ""}},
        {"user": {"exec": None}},
        {"user": {"password": "alone"}},
        {"user": {"as": "alice"}},
        {"user": {"client-key-data": "eA=="}},
        {"user": {"tokn": "a typo"}},
        {"contexts": [{"name": "main", "context": {"cluster": "c"}}]},
        {"contexts": [{"name": "main", "context": {"cluster": "c", "user": None}}]},
        {"contexts": [{"name": "main", "context": {"cluster": "c", "user": "typo"}}]},
        {"users": None},
    ],
)
def test_nobody_is_anonymous_by_accident(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write(tmp_path / "kc", **change)
    with pytest.raises(KubeconfigError, match=r"holds no credentials|names no user|names the user") as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "'main'" in str(caught.value)
    deliberate = load_config(path, anonymous=True)
    assert header(deliberate) is None
    assert deliberate.headers == ()


def test_an_anonymous_client_shows_nothing_of_what_the_kubeconfig_has(tmp_path: Path) -> None:
    user = {"token": "t", "as": "a", "client-certificate-data": "eA==", "client-key-data": "eA=="}
    config = load_config(write(tmp_path / "kc", user=user), anonymous=True)
    assert (header(config), config.headers, config.tls.certificate) == (None, (), None)


def test_of_several_credentials_the_one_counts_that_client_go_takes(tmp_path: Path) -> None:
    plugin = {"command": "no-such-plugin", "apiVersion": V1, "interactiveMode": "Never"}
    pair = {"client-certificate-data": "eA==", "client-key-data": "eA=="}
    assert header(load(write(tmp_path / "kc", user={"exec": plugin, "token": "t"}))) == "Bearer t"
    assert header(load(write(tmp_path / "kc", user={"exec": plugin, "username": "u"}))) == "Basic dTo="
    assert header(load(write(tmp_path / "kc", user={"exec": plugin, **pair}))) is None
    assert load(write(tmp_path / "kc", user={"exec": plugin})).credentials.current() is None


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("HTTPS://Example.COM:6443/", "https://example.com:6443"),
        ("https://example.com/prefix/?a=b", "https://example.com/prefix"),
        ("https://[FD00::1]:6443", "https://[fd00::1]:6443"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
    ],
)
def test_a_server_is_brought_into_one_form(tmp_path: Path, server: str, url: str) -> None:
    assert load(write(tmp_path / "kc", cluster={"server": server})).server == url
    assert ClientConfig(server).server == url


@pytest.mark.parametrize(
    "change",
    [{"certificate-authority-data": "eA=="}, {"insecure-skip-tls-verify": True}, {"tls-server-name": "x"}],
)
def test_a_host_and_port_with_tls_settings_is_https(tmp_path: Path, change: dict[str, Any]) -> None:
    assert load(write(tmp_path / "kc", cluster={"server": "example.com:6443", **change})).server.startswith("https://")


def test_credentials_go_to_another_machine_over_https_only(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", cluster={"server": "http://10.0.0.1:8080"})
    with pytest.raises(KubeconfigError, match=r"http://10.0.0.1:8080 is plain HTTP.*--allow-plain-http"):
        load(path)
    with pytest.raises(KubeconfigError, match="is plain HTTP"):
        load(write(tmp_path / "host", cluster={"server": "example.com:8080"}))
    assert header(load_config(path, allow_plain_http=True)) == "Bearer t"
    assert header(load_config(path, anonymous=True)) is None
    with pytest.raises(KubeconfigError, match="is plain HTTP"):
        ClientConfig("http://10.0.0.1", credentials=StaticCredentials(bearer("t")))
    for nearby in ("http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"):
        assert header(load(write(tmp_path / "near", cluster={"server": nearby}))) == "Bearer t"


def test_a_client_certificate_alone_is_nobody_over_http(tmp_path: Path) -> None:
    pair = {"client-certificate-data": "eA==", "client-key-data": "eA=="}
    with pytest.raises(KubeconfigError, match=r"cannot be shown to http://127.0.0.1:1"):
        load(write(tmp_path / "kc", cluster={"server": "http://127.0.0.1:1"}, user=pair))


def test_a_token_that_was_left_out_does_not_matter_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    load(write(tmp_path / "kc", user={"token": "REDACTED", "tokenFile": "token"}))


def test_base64_may_have_line_breaks(tmp_path: Path) -> None:
    data = base64.encodebytes(b"a CA" * 40).decode().replace("\n", "\r\n")
    assert load(write(tmp_path / "kc", cluster={"certificate-authority-data": data})).tls.ca == b"a CA" * 40


def test_a_password_is_in_no_error(tmp_path: Path) -> None:
    for change in (
        {"server": "ftp://u:hush@x"},
        {"server": "https://u:hush@x"},
        {"proxy-url": "ftp://u:hush@x"},
        {"proxy-url": "http://u:hush@"},
    ):
        with pytest.raises(KubeconfigError) as caught:
            load(write(tmp_path / "kc", cluster=change))
        assert "hush" not in str(caught.value)


def test_null_and_empty_sections_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", kind=None, apiVersion="", preferences=None)
    path.write_text(path.read_text() + "extensions:\n")
    assert load(path).server == "https://example.com:6443"
    users = [{"name": "u", "user": {"token": "t", "exec": None, "auth-provider": None, "as-groups": None}}, None]
    assert header(load(write(tmp_path / "kc", users=users))) == "Bearer t"


def test_a_kubeconfig_is_read_by_gos_rules(tmp_path: Path) -> None:
    path = write(tmp_path / "kc")
    path.write_text(path.read_text().replace("token: t", "token: 1e3x") + "---\nsecond: document\n")
    assert header(load(path)) == "Bearer 1e3x"
    path.write_text(path.read_text().replace("token: 1e3x", "token: no"))
    with pytest.raises(KubeconfigError, match=r"user 'u': Expected `str"):
        load(path)


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="is larger than 8 MiB"):
        load_config("/dev/zero")


PROXIES = [
    ("", True),
    ("*", False),
    ("example.com", False),
    ("EXAMPLE.com", False),
    (" other, example.com ", False),
    ("com", False),
    ("ple.com", True),
    (".example.com", True),
    ("*.example.com", True),
    (".com", False),
    ("*.com", False),
    ("example.com:6443", False),
    ("example.com:443", True),
    ("example.com.evil", True),
]


@pytest.mark.parametrize(("no_proxy", "used"), PROXIES)
def test_no_proxy_names_hosts_as_for_go(no_proxy: str, used: bool) -> None:
    environment = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": no_proxy}
    assert (environment_proxy("https://example.com:6443", environment) == "http://proxy:3128") is used


@pytest.mark.parametrize(
    ("no_proxy", "used"),
    [
        ("10.0.0.0/8", False),
        ("10.0.0.1", False),
        ("10.0.0.1:443", False),
        ("10.0.0.1:80", True),
        ("10.0.1.0/24", True),
        ("fd00::/8", True),
        ("0.0.1", True),
        ("10.0.0.0/99", True),
    ],
)
def test_no_proxy_names_addresses_as_for_go(no_proxy: str, used: bool) -> None:
    environment = {"https_proxy": "http://proxy:3128", "no_proxy": no_proxy}
    assert (environment_proxy("https://10.0.0.1", environment) is not None) is used
    if "fd00" in no_proxy:
        assert environment_proxy("https://[fd00::1]:6443", environment) is None


def test_a_proxy_variable_is_for_its_scheme_and_never_for_the_machine_itself() -> None:
    environment = {"http_proxy": "http://small", "HTTP_PROXY": "http://big"}
    assert environment_proxy("http://example.com", environment) == "http://small"
    assert environment_proxy("https://example.com", environment) is None
    for nearby in ("http://localhost:1", "http://127.8.0.1", "http://[::1]"):
        assert environment_proxy(nearby, environment) is None
    with pytest.raises(KubeconfigError, match=r"environment variable HTTP_PROXY: a proxy should be a URL") as caught:
        environment_proxy("http://example.com", {"HTTP_PROXY": "ftp://u:hush@x"})
    assert "hush" not in str(caught.value)
