"""Whatever a kubeconfig, a plugin or a bundle of certificates holds: a value, or the documented error that hides it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopylite.client.contexts import from_kubeconfig
from kopylite.client.execplugin import identity_of
from kopylite.client.kubeconfig import read_kubeconfig
from kopylite.client.tls import TlsSettings, build_context
from kopylite.errors import KubeconfigError
from kopylite.testing.clock import VirtualClock

V1 = "client.authentication.k8s.io/v1"
NOW = VirtualClock().now()

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
)


def plugin_answers(fields: Any) -> Any:
    names = st.sampled_from(["token", "clientCertificateData", "clientKeyData", "expirationTimestamp", "other"])
    credential = st.fixed_dictionaries(
        {},
        optional={
            "apiVersion": st.just(V1) | documents,
            "kind": st.just("ExecCredential") | documents,
            "status": st.dictionaries(names, fields) | documents,
        },
    )
    return (credential | documents).map(lambda value: json.dumps(value).encode())


@given(st.binary() | plugin_answers(documents))
def test_any_answer_of_a_plugin_is_an_identity_or_a_documented_error(answer: bytes) -> None:
    told = ""
    try:
        identity = identity_of(answer, V1, "file", NOW)
    except KubeconfigError as error:
        told = str(error)
    assert told.startswith("file: the exec plugin's answer") or identity.authorization or identity.key_pair


@st.composite
def kubeconfigs(draw: st.DrawFn) -> bytes:
    """Bytes that are like a kubeconfig in all but some places."""

    def some(**fields: Any) -> Any:
        return st.fixed_dictionaries({}, optional={name: documents | like for name, like in fields.items()}) | documents

    text = st.just("x") | st.sampled_from(["https://a", "http://127.0.0.1", "HTTPS://[::1]:1", "a:1", "eA=="])
    cluster = some(**{"server": text, "certificate-authority-data": text, "proxy-url": text, "extensions": documents})
    executed = some(
        command=text, apiVersion=st.just(V1), interactiveMode=st.just("Never"), args=documents, env=documents
    )
    user = some(**{"token": text, "username": text, "exec": executed, "auth-provider": documents, "as": text})
    context = some(cluster=st.just("x"), user=st.just("x"), namespace=text)

    def section(kind: str, like: Any) -> Any:
        return st.lists(some(**{"name": st.just("x"), kind: like}), max_size=2) | documents

    document = some(
        clusters=section("cluster", cluster), users=section("user", user), contexts=section("context", context),
        **{"current-context": st.just("x"), "kind": st.just("Config")},
    )  # fmt: skip
    return yaml.safe_dump(draw(document)).encode()


@given(st.binary() | kubeconfigs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_kubeconfig_is_a_config_or_a_documented_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)
    told = ""
    try:
        told = from_kubeconfig(read_kubeconfig([path])).source
    except KubeconfigError as error:
        told = str(error)
    assert str(path) in told


@given(st.binary() | st.binary().map(lambda b: b"-----BEGIN CERTIFICATE-----\n" + b + b"\n-----END CERTIFICATE-----"))
def test_any_bundle_of_certificates_is_a_context_or_a_documented_error(bundle: bytes) -> None:
    with pytest.raises(KubeconfigError, match="certificate authority in the kubeconfig is unusable"):
        build_context(TlsSettings(ca=bundle))


@given(st.binary(), st.binary())
def test_any_client_certificate_is_a_documented_error(certificate: bytes, key: bytes) -> None:
    with pytest.raises(KubeconfigError, match="the client certificate in the kubeconfig"):
        build_context(TlsSettings(insecure=True, certificate=certificate, key=key))
