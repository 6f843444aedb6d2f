"""TLS of the embedded server: a fresh certificate, and client certificates of its own CA."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kopylite.serving.authority import CertificateAuthority


def server_context(authority: CertificateAuthority, hosts: Sequence[str]) -> ssl.SSLContext:
    """A server's context; client certificates are asked for, and those of the authority are verified."""
    pair = authority.server(hosts)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    # The ssl module reads keys from files only.
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(0o600)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    return context
