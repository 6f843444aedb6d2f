"""Certificates of webhooks: read from a folder, or made and kept in a Secret that all replicas share.

A Secret of `auto` holds `ca.crt` (the newest authority first, then those that are still trusted), `ca.key` (of the
newest), `tls.crt` and `tls.key`. What is to be done about it is told by `renewed`, from its content and the time alone:

    serving certificate    90 days; renewed when a third is left, or its hosts are others
    authority              2 years; another one when a third is left. It signs from a day after that: till then every
                           caBundle has it; and the old one stays in the bundle until it expires

So each change can be made by any replica, twice, or late. Writes have the resourceVersion that was read, a new Secret
none: of two replicas that start at once, one writes and the other reads.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kopylite.boundary import say
from kopylite.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    TransportError,
    UsageError,
)
from kopylite.objects import Kind, Unstructured
from kopylite.serving.authority import Authority
from kopylite.wholefiles import write_private

if TYPE_CHECKING:
    from kopylite.client import LiveClient

SECRET = Kind("v1", "Secret", "secrets", True)

AUTHORITY_DAYS = 730
SERVING_DAYS = 90
# From a new authority to its first certificate.
OVERLAP = timedelta(days=1)

_PARTS = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_ATTEMPTS = 10
_MOST_KNOWN = 8
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


class BadCertificate(UsageError):
    """A certificate and key that cannot be served; the text has nothing of either."""


@dataclass(frozen=True, slots=True)
class ServingPair:
    """What a server shows: the chain and its key, PEM; and what its callers trust, b"" where others see to that."""

    chain: bytes
    key: bytes
    bundle: bytes = b""

    def __repr__(self) -> str:
        return "ServingPair(…)"


def check_pair(pair: ServingPair) -> None:
    """Raises: BadCertificate: it does not fit together."""
    load_pair(new_context(), pair)


def load_pair(context: ssl.SSLContext, pair: ServingPair) -> None:
    """Have new connections served with a pair; the connections that are open stay.

    Raises:
        BadCertificate: it does not fit together; the context goes on with the pair that it had.
    """
    with _as_file(pair.chain) as chain, _as_file(pair.key) as key:
        try:
            for each in (new_context(), context):  # a half loaded pair would serve nobody
                each.load_cert_chain(chain, key, password=_no_password)
        except (ssl.SSLError, OSError, ValueError):
            raise BadCertificate("certificate and key are unreadable, or do not belong together") from None


def distrust(pair: ServingPair, host: str = "") -> str:
    """Why a caller who trusts the bundle would not trust the chain at this moment; "": it would.

    Found out by a handshake in memory, as the API server begins each call.

    Args:
        host: that the caller asks for; "": any, and where there is no bundle, whatever authority signed it.
    """
    server, client = new_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_pair(server, pair)
    client.check_hostname, client.hostname_checks_common_name = bool(host), False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Go does: the bundle may have the certificate itself
    try:
        client.load_verify_locations(cadata=(pair.bundle or pair.chain).decode("ascii", "ignore"))
    except ssl.SSLError:
        return "the authority that callers are to trust is unreadable"
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=host or None),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
    return ""


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """The path of a file: the ssl module reads nothing else. In memory where the system has that: so no key gets to a
    disk, and a container needs none to write to."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("kopylite"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "part.pem")
        write_private(path, content)
        yield str(path)


def new_context() -> ssl.SSLContext:
    """Of a server: TLS 1.2 or newer, HTTP/1.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted")  # OpenSSL would ask the terminal for it


def pair_in(folder: Path) -> ServingPair:
    """The tls.crt, tls.key and (if there is one) ca.crt of a folder, as cert-manager and kubelet write them.

    Raises:
        BadCertificate: one cannot be read.
    """
    try:
        chain, key = (folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()
        bundle = (folder / "ca.crt").read_bytes() if (folder / "ca.crt").exists() else b""
    except OSError as error:
        raise BadCertificate(f"{error.filename}: {error.strerror}") from None
    return ServingPair(chain, key, bundle)


def joined(own: bytes, known: bytes, now: datetime) -> bytes:
    """A bundle with what callers trust already, as long as it is valid: other replicas may still show a certificate of
    it. b"" where others see to the bundle. Their order stays where nothing is new: replicas of two authorities would
    each put their own first, again and again."""
    found, valid = _certificates_in(own), [pem for pem in _certificates_in(known) if _is_valid(pem, now)]
    if found and not set(found) <= set(valid):
        valid = found + [pem for pem in valid if pem not in found][:_MOST_KNOWN]
    return b"".join(valid if found else ())


def _certificates_in(bundle: bytes) -> list[bytes]:
    return [found + b"\n" for found in _CERTIFICATE.findall(bundle)]


def _is_valid(pem: bytes, now: datetime) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=pem.decode())
        known = context.get_ca_certs()  # a certificate that is no authority's is not shown, and may be trusted, too
        return all(ssl.cert_time_to_seconds(one["notAfter"]) > now.timestamp() for one in known)  # type: ignore[arg-type]
    except (ssl.SSLError, ValueError, KeyError):
        return False


def renewed(stored: Mapping[str, bytes], hosts: Sequence[str], now: datetime) -> dict[str, bytes]:
    """What a Secret is to hold; equal to what it holds when that will do.

    Raises:
        UsageError: the package `cryptography` is not installed.
    """
    parts = {name: stored.get(name, b"") for name in _PARTS}
    authorities = Authority.certificates(parts["ca.crt"], now)[:_MOST_KNOWN]
    authority = Authority.load(authorities[0], parts["ca.key"]) if authorities else None
    if authority is None:
        authority = Authority.new("kopylite webhooks", AUTHORITY_DAYS, now)
        authorities = [authority.certificate, *authorities]
        signer: Authority | None = authority
    elif authority.left(now) < 1 / 3:
        signer = None
        authority = Authority.new("kopylite webhooks", AUTHORITY_DAYS, now)
        authorities = [authority.certificate, *authorities]
    else:
        signer = authority
    serving = Authority.serving(parts["tls.crt"], parts["tls.key"], hosts, authorities, now)
    if signer is not None and serving is not None and not serving.is_from(signer) and now - signer.begins < OVERLAP:
        signer = None
    if serving is None or (signer is not None and (serving.left < 1 / 3 or not serving.is_from(signer))):
        parts["tls.crt"], parts["tls.key"] = (signer or authority).sign(hosts, SERVING_DAYS, now)
    parts["ca.crt"], parts["ca.key"] = b"".join(authorities), authority.key
    return parts


class SecretCertificates:
    """The pair of a Secret that all replicas share.

    Args:
        client: reads and writes the Secret.
        hosts: that the certificate has to name.

    Attributes:
        problem: why the Secret could not be written, though there is a pair to serve with; "": it could, or need not.
    """

    def __init__(self, client: LiveClient, namespace: str, name: str, hosts: Sequence[str]) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._hosts = list(hosts)
        self.problem = ""
        # What was good the last time, for a Secret that somebody deletes or garbles.
        self._known: dict[str, bytes] = {}

    async def current(self, now: datetime) -> ServingPair:
        """The pair to serve with; the Secret is written first where it has to be.

        A stored pair that is still valid will do when the Secret cannot be written; `problem` says why it cannot.

        Raises:
            ApiError, TransportError: the Secret could not be read, or not written, and holds nothing to serve with.
            UsageError: the package `cryptography` is not installed.
        """
        self.problem = ""
        for _ in range(_ATTEMPTS):
            secret = await self._client.find(SECRET, self._name, namespace=self._namespace)
            stored = _data_of(secret)
            wanted = renewed(stored if _usable(stored, now) or not self._known else self._known, self._hosts, now)
            try:
                if wanted != stored:
                    await self._write(secret, wanted)
            except (AlreadyExists, Conflict, NotFound) as error:
                faster = error  # another replica, or somebody who deleted it
                continue
            except (ApiError, TransportError) as error:
                if not _servable(stored, self._hosts, now):
                    raise
                self.problem = (
                    f"Secret {self._namespace}/{self._name} is to be renewed, and cannot be written: {say(error)}"
                )
                wanted = stored
            self._known = wanted
            return ServingPair(wanted["tls.crt"], wanted["tls.key"], wanted["ca.crt"])
        raise faster

    async def _write(self, secret: Unstructured | None, parts: Mapping[str, bytes]) -> None:
        if secret is not None and secret.get("immutable"):
            raise Invalid(
                f"Secret {self._namespace}/{self._name} is immutable, and its certificates are to be renewed: delete "
                "it, and it is made anew"
            )
        data = {name: base64.b64encode(value).decode() for name, value in parts.items()}
        if secret is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            await self._client.create(Unstructured(apiVersion="v1", kind="Secret", metadata=metadata, data=data))
        else:
            await self._client.update(Unstructured({**secret, "data": {**(secret.get("data") or {}), **data}}))


def _data_of(secret: Unstructured | None) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in _PARTS:
        text = (secret.get("data") or {}).get(name) if secret is not None else ""
        try:
            found[name] = base64.b64decode(text or "", validate=True)
        except (binascii.Error, ValueError, TypeError):
            found[name] = b""
    return found


def _usable(parts: Mapping[str, bytes], now: datetime) -> bool:
    authorities = Authority.certificates(parts["ca.crt"], now)
    return bool(authorities) and Authority.load(authorities[0], parts["ca.key"]) is not None


def _servable(parts: Mapping[str, bytes], hosts: Sequence[str], now: datetime) -> bool:
    authorities = Authority.certificates(parts["ca.crt"], now)
    return Authority.serving(parts["tls.crt"], parts["tls.key"], hosts, authorities, now) is not None
