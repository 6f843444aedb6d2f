"""CertificateAuthority: a fresh CA with server and client certificates, for servers on this machine.

Needs the package `cryptography` (extra `dev`), imported only when a certificate is made.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

# Back-dated, so that a certificate made just now is valid on a clock that is a little behind.
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate and its private key, both PEM. The key never shows in a repr."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "IssuedCertificate(…)"


class CertificateAuthority:
    """A self-signed CA (ECDSA P-256) that lives as long as this object.

    Args:
        name: the common name of the CA.
        days: how long its certificates are valid.
        clock: where "now" comes from.

    Raises:
        UsageError: the package `cryptography` is not installed.
    """

    def __init__(self, name: str = "kopylite", *, days: int = 365, clock: Clock = SYSTEM_CLOCK) -> None:
        _require_cryptography()
        from cryptography.hazmat.primitives.asymmetric import ec

        self._not_before = clock.now() - _SKEW
        self._not_after = clock.now() + timedelta(days=days)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name)
        builder = self._builder(self._name, self._key.public_key())
        self._certificate = self._sign(_with_ca_extensions(builder))

    @property
    def certificate(self) -> bytes:
        """The CA certificate, PEM: what clients trust."""
        return _pem(self._certificate)

    def server(self, hosts: Sequence[str]) -> IssuedCertificate:
        """A certificate for a server that answers as any of `hosts` (DNS names or IP addresses)."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._leaf(_subject(hosts[0]), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, groups: Sequence[str] = ()) -> IssuedCertificate:
        """A certificate that a Kubernetes API server takes for `user` in `groups`."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._leaf(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _leaf(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, names: x509.ExtensionType | None
    ) -> IssuedCertificate:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), False)
        if names is not None:
            builder = builder.add_extension(names, False)
        return IssuedCertificate(_pem(self._sign(builder)), private_key_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        from cryptography import x509

        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._not_before)
            .not_valid_after(self._not_after)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        from cryptography.hazmat.primitives import hashes

        return builder.sign(self._key, hashes.SHA256())


def signing_key() -> bytes:
    """A fresh ECDSA P-256 private key, PEM: signs service account tokens."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric import ec

    return private_key_pem(ec.generate_private_key(ec.SECP256R1()))


def private_key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key in the unencrypted form that OpenSSL, Go and Python all read."""
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def _subject(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _with_ca_extensions(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    from cryptography import x509

    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True).add_extension(usage, True)


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "certificates need the package cryptography; install it with: pip install 'kopylite[dev]'"
        ) from error
