from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
import trustme

from kopylite.client.credentials import KeyPair
from kopylite.client.tls import CHECK_PERIOD, TlsContexts, TlsSettings, build_context
from kopylite.errors import KubeconfigError
from kopylite.testing.clock import VirtualClock


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def pair(ca: trustme.CA) -> KeyPair:
    cert = ca.issue_cert("client")
    return KeyPair(b"".join(b.bytes() for b in cert.cert_chain_pems), cert.private_key_pem.bytes())


def test_a_context_verifies_the_server_with_tls_1_2_or_newer(ca: trustme.CA) -> None:
    context = build_context(TlsSettings(ca.cert_pem.bytes()))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert len(context.get_ca_certs()) == 1


def test_what_is_in_the_bundle_is_trusted_be_it_a_root_or_not(ca: trustme.CA) -> None:
    below = ca.create_child_ca()
    issued = below.issue_cert("api.example.com")
    own = issued.cert_chain_pems[0]
    for trusted in (ca.cert_pem, below.cert_pem, own):
        assert handshake(build_context(TlsSettings(trusted.bytes())), issued) == ""
    for strange in (trustme.CA().cert_pem, below.issue_cert("api.example.com").cert_chain_pems[0]):
        assert "certificate verify failed" in handshake(build_context(TlsSettings(strange.bytes())), issued)


def handshake(context: ssl.SSLContext, issued: trustme.LeafCert) -> str:
    """What a client has against a server's certificate; "": nothing."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(serving)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname="api.example.com")
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            return str(error)
    return ""


def test_verification_is_off_only_when_asked() -> None:
    context = build_context(TlsSettings(insecure=True))
    assert context.verify_mode is ssl.CERT_NONE


def test_a_key_that_does_not_fit_is_named_without_being_shown(ca: trustme.CA) -> None:
    one, other = pair(ca), pair(ca)
    with pytest.raises(KubeconfigError, match="client certificate in the kubeconfig and its key do not fit"):
        build_context(TlsSettings(certificate=one.certificate, key=other.key))
    with pytest.raises(KubeconfigError, match="exec plugin's client certificate"):
        build_context(TlsSettings(), KeyPair(one.certificate, b"nonsense"))


def test_an_unusable_ca_or_certificate_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"certificate authority in .*ca\.crt is unusable"):
        build_context(TlsSettings(tmp_path / "ca.crt"))
    with pytest.raises(KubeconfigError, match="certificate authority in the kubeconfig is unusable"):
        build_context(TlsSettings(b"no PEM"))
    with pytest.raises(KubeconfigError, match=r"client certificate in .*tls\.crt cannot be read"):
        build_context(TlsSettings(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key"))


def test_the_context_stays_the_same_until_a_file_changes(tmp_path: Path, ca: trustme.CA) -> None:
    clock, path = VirtualClock(), tmp_path / "ca.crt"
    path.write_bytes(ca.cert_pem.bytes())
    contexts = TlsContexts(TlsSettings(path), clock)
    first = contexts.current()
    path.write_bytes(trustme.CA().cert_pem.bytes())
    os.utime(path, (1, 1))
    assert contexts.current() is first, "files are looked at now and then"
    clock.advance(CHECK_PERIOD)
    second = contexts.current()
    assert second is not first
    clock.advance(CHECK_PERIOD)
    assert contexts.current() is second


def test_a_refusal_makes_the_files_be_looked_at_at_once(tmp_path: Path, ca: trustme.CA) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(ca.cert_pem.bytes())
    contexts = TlsContexts(TlsSettings(path), VirtualClock())
    first = contexts.current()
    path.write_bytes(trustme.CA().cert_pem.bytes())
    os.utime(path, (1, 1))
    contexts.recheck()
    assert contexts.current() is not first


def test_a_half_finished_rotation_leaves_the_old_context_in_use(tmp_path: Path, ca: trustme.CA) -> None:
    clock = VirtualClock()
    old, new = pair(ca), pair(ca)
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    cert.write_bytes(old.certificate)
    key.write_bytes(old.key)
    contexts = TlsContexts(TlsSettings(certificate=cert, key=key, ca=ca.cert_pem.bytes()), clock)
    first = contexts.current()
    cert.write_bytes(new.certificate)
    os.utime(cert, (1, 1))
    clock.advance(CHECK_PERIOD)
    assert contexts.current() is first
    key.write_bytes(new.key)
    clock.advance(CHECK_PERIOD)
    assert contexts.current() is not first


def test_a_new_client_certificate_of_the_credentials_makes_a_new_context(ca: trustme.CA) -> None:
    contexts = TlsContexts(TlsSettings(ca.cert_pem.bytes()), VirtualClock())
    one, other = pair(ca), pair(ca)
    first = contexts.current(one)
    assert contexts.current(one) is first
    assert contexts.current(other) is not first


def test_no_key_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ca: trustme.CA) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    build_context(TlsSettings(), pair(ca))
    assert list(tmp_path.iterdir()) == []


def test_no_secret_is_in_the_repr() -> None:
    assert "hush" not in repr(TlsSettings(ca=b"hush", certificate=b"hush", key=b"hush"))
