"""CertificateAuthority: a fresh CA with server and client certificates, for servers on this machine.
Authority: one that is kept, for webhooks.

Needs the package `cryptography` (extras `dev` and `webhooks`), imported only when a certificate is made.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

# Back-dated, so that a certificate made just now is valid on a clock that is a little behind.
_SKEW = timedelta(minutes=5)
# One from so far in the future was made by a clock that was wrong. No two clocks that work differ as much.
_FUTURE = timedelta(days=1)
_BEGIN = b"-----BEGIN CERTIFICATE-----"


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
        builder = self._builder(self._name, self._key)
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
        builder = self._builder(subject, key).add_extension(x509.ExtendedKeyUsage([usage]), False)
        if names is not None:
            builder = builder.add_extension(names, False)
        return IssuedCertificate(_pem(self._sign(builder)), private_key_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return _builder(subject, self._name, key, self._key, (self._not_before, self._not_after))

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        from cryptography.hazmat.primitives import hashes

        return builder.sign(self._key, hashes.SHA256())


class Authority:
    """A CA that outlives the process: made, or loaded from its PEM, and asked about certificates that it may have made.

    Attributes:
        certificate, key: PEM. The key never shows in a repr.
        begins: since when it signs.
    """

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key
        self.certificate = _pem(certificate)
        self.key = private_key_pem(key)
        self.begins = certificate.not_valid_before_utc + _SKEW

    def __repr__(self) -> str:
        return "Authority(…)"

    @classmethod
    def new(cls, name: str, days: int, now: datetime) -> Authority:
        """A fresh one, valid from now for some days.

        Raises:
            UsageError: the package `cryptography` is not installed.
        """
        _require_cryptography()
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name), _subject(name), key, key, (now - _SKEW, now + timedelta(days=days)))
        return cls(_with_ca_extensions(builder).sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Authority | None:
        """One that was made before; None: that is none, or certificate and key do not belong together."""
        _require_cryptography()
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        try:
            loaded = x509.load_pem_x509_certificate(certificate)
            loaded_key = serialization.load_pem_private_key(key, None)
            if isinstance(loaded_key, ec.EllipticCurvePrivateKey) and loaded.public_key() == loaded_key.public_key():
                return cls(loaded, loaded_key)
        except Exception:  # of any bytes, whatever its parsers raise
            return None
        return None

    @staticmethod
    def certificates(bundle: bytes, now: datetime) -> list[bytes]:
        """Those of a PEM bundle that are valid, one PEM each, in their order; what is none is left out."""
        _require_cryptography()
        from cryptography import x509

        found: list[bytes] = []
        for part in bundle.split(_BEGIN)[1:]:
            try:
                certificate = x509.load_pem_x509_certificate(_BEGIN + part)
                if certificate.not_valid_after_utc > now > certificate.not_valid_before_utc - _FUTURE:
                    found.append(_pem(certificate))
            except Exception:
                continue
        return found

    @staticmethod
    def serving(
        chain: bytes, key: bytes, hosts: Sequence[str], authorities: Sequence[bytes], now: datetime
    ) -> KnownCertificate | None:
        """What is known of a serving certificate; None: it is not of these hosts, authorities and key, or over."""
        _require_cryptography()
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        try:
            leaf = x509.load_pem_x509_certificate(chain)
            names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            fits = serialization.load_pem_private_key(key, None).public_key() == leaf.public_key()
            fits = fits and {_general_name(host) for host in hosts} <= set(names)
            known = KnownCertificate(leaf, _left(leaf, now))
            trusted = any(known.is_by(x509.load_pem_x509_certificate(authority)) for authority in authorities)
        except Exception:
            return None
        begun = leaf.not_valid_before_utc - _FUTURE < now
        return known if fits and trusted and begun and known.left > 0 else None

    def left(self, now: datetime) -> float:
        """The share of its time that is left."""
        return _left(self._certificate, now)

    def sign(self, hosts: Sequence[str], days: int, now: datetime) -> tuple[bytes, bytes]:
        """A certificate for a server that answers as any of `hosts`, and its key; PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        times = now - _SKEW, min(now + timedelta(days=days), self._certificate.not_valid_after_utc)
        builder = _builder(_subject(hosts[0][:64]), self._certificate.subject, key, self._key, times)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), False)
        return _pem(builder.sign(self._key, hashes.SHA256())), private_key_pem(key)


@dataclass(frozen=True, slots=True)
class KnownCertificate:
    """A serving certificate that is in use. Attributes: left: the share of its time that is left."""

    certificate: x509.Certificate
    left: float

    def is_from(self, authority: Authority) -> bool:
        return self.is_by(authority._certificate)

    def is_by(self, authority: x509.Certificate) -> bool:
        """Whether a CA signed it."""
        try:
            self.certificate.verify_directly_issued_by(authority)
        except Exception:
            return False
        return True


def _left(certificate: x509.Certificate, now: datetime) -> float:
    whole = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return (certificate.not_valid_after_utc - now) / whole


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    times: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(times[0])
        .not_valid_after(times[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False)
    )


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
            "certificates need the package cryptography; install it with: pip install 'kopylite[webhooks]' (or [dev])"
        ) from error
