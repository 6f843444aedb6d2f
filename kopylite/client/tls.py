"""TLS contexts for one server, made again when the files behind them change."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kopylite.client.credentials import KeyPair
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KubeconfigError

# How often the files are looked at; certificates are rotated long before they end.
CHECK_PERIOD = 30.0

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How the server proves itself to the client, and the client to the server.

    Attributes:
        ca: trusted certificates as PEM, or the file that holds them; None trusts the system's.
        certificate, key: of the client, likewise.
        server_name: the name to expect in the server's certificate instead of the host in its URL.
        insecure: the server's certificate is not checked at all.
    """

    ca: bytes | Path | None = field(default=None, repr=False)
    certificate: bytes | Path | None = field(default=None, repr=False)
    key: bytes | Path | None = field(default=None, repr=False)
    server_name: str | None = None
    insecure: bool = False


class TlsContexts:
    """Gives the SSLContext for the next connection.

    The same context is given until a file has changed or the credentials bring another client certificate;
    connections are pooled per context, so a new one leaves the old connections to end by themselves.
    """

    __slots__ = ("_checked_at", "_clock", "_context", "_key_pair", "_settings", "_stamps")

    def __init__(self, settings: TlsSettings, clock: Clock = SYSTEM_CLOCK) -> None:
        self._settings = settings
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._key_pair: KeyPair | None = None
        self._stamps: tuple[object, ...] = ()
        self._checked_at = 0.0

    def current(self, key_pair: KeyPair | None = None) -> ssl.SSLContext:
        """The context to connect with.

        Args:
            key_pair: a client certificate that takes the place of the configured one.

        Raises:
            KubeconfigError: a certificate or key cannot be read or does not fit, and no older context works.
        """
        now = self._clock.monotonic()
        context = self._context
        if context is not None and key_pair is self._key_pair and now - self._checked_at < CHECK_PERIOD:
            return context
        self._checked_at = now
        stamps = self._stamps_of_files()
        if context is None or key_pair is not self._key_pair or stamps != self._stamps:
            try:
                context = build_context(self._settings, key_pair)
            except KubeconfigError:
                # Caught in the middle of a rotation: certificate and key are replaced one after the other.
                if context is None or key_pair is not self._key_pair:
                    raise
                return context
            self._context, self._key_pair, self._stamps = context, key_pair, stamps
        return context

    def recheck(self) -> None:
        """Look at the files again for the next connection: the server refused this one."""
        self._checked_at = -CHECK_PERIOD

    def _stamps_of_files(self) -> tuple[object, ...]:
        sources = (self._settings.ca, self._settings.certificate, self._settings.key)
        return tuple(_stamp(source) for source in sources if isinstance(source, Path))


def build_context(settings: TlsSettings, key_pair: KeyPair | None = None) -> ssl.SSLContext:
    """A client context of TLS 1.2 or newer.

    Not `ssl.create_default_context`: from Python 3.13 on it is strict about extensions that the CAs of many
    clusters lack. As in Go, whatever is in the bundle is trusted: an authority whose issuer is not there too, or the
    server's own certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, settings.ca)
    if key_pair is not None:
        _load_pair(context, key_pair.certificate, key_pair.key, "the exec plugin's client certificate")
    elif settings.certificate is not None and settings.key is not None:
        what = f"the client certificate {_name(settings.certificate)}"
        try:
            certificate, key = _read(settings.certificate), _read(settings.key)
        except OSError as error:
            raise KubeconfigError(f"{what} cannot be read: {error}") from error
        _load_pair(context, certificate, key, what)
    return context


def check_pair(pair: KeyPair, what: str) -> None:
    """Refuse a client certificate and key that no connection could show. Raises KubeconfigError."""
    _load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pair.certificate, pair.key, what)


def _trust(context: ssl.SSLContext, source: bytes | Path) -> None:
    """Trust the certificates of a bundle, as Go does: those that can be read, whatever stands between them."""
    try:
        bundle = _read(source)
    except OSError as error:
        raise KubeconfigError(
            f"the certificate authority {_name(source)} is unusable: {error.strerror or error}"
        ) from error
    found = 0
    for block in _certificates(bundle):
        try:
            context.load_verify_locations(cadata=base64.b64decode(block))
        except (ssl.SSLError, ValueError):
            continue
        found += 1
    if not found:
        raise KubeconfigError(
            f"the certificate authority {_name(source)} is unusable: it holds no certificate as PEM "
            "(-----BEGIN CERTIFICATE-----)"
        )


def _certificates(bundle: bytes) -> Iterator[bytes]:
    """The base64 texts of the certificates in a PEM file."""
    end = 0
    while (begin := bundle.find(_BEGIN, end)) >= 0:
        begin += len(_BEGIN)
        end = bundle.find(_END, begin)
        if end < 0:
            return
        yield bundle[bundle.rfind(_BEGIN, 0, end) + len(_BEGIN) : end]


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, what: str) -> None:
    # The ssl module reads key pairs from files only. The folder is the user's alone and gone at once.
    with tempfile.TemporaryDirectory(prefix="kopylite-") as folder:
        pem = Path(folder, "pair.pem")
        pem.touch(mode=0o600)
        pem.write_bytes(certificate.rstrip() + b"\n" + key)
        try:
            context.load_cert_chain(pem, password=lambda: "")
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(
                f"{what} and its key do not fit, are no PEM, or the key has a password: {error}"
            ) from error


def _read(source: bytes | Path) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else source


def _name(source: bytes | Path) -> str:
    return f"in {source}" if isinstance(source, Path) else "in the kubeconfig"


def _stamp(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
