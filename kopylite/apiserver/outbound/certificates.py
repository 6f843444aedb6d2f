"""What Go says of a webhook's certificate that was refused: OpenSSL has other words, and no names and times."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from datetime import UTC, datetime
from typing import Any

# OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which the ssl module does not name.
_NO_CHECK_TIME = 0x200000
_LOOK_SECONDS = 5.0


def trust(bundle: str) -> ssl.SSLContext:
    """Who a webhook's certificate must be from: the base64 PEM bundle, else whom this machine trusts.

    As in Go, whatever is in the bundle is trusted: an authority whose issuer is not there too, or the certificate
    itself. And a common name is no name.

    Raises:
        ValueError, ssl.SSLError: the bundle is none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    if bundle:
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
    else:
        context.load_default_certs()
    return context


async def certificate_problem(
    error: ssl.SSLCertVerificationError, address: tuple[str, int], expected: str, bundle: str, now: datetime
) -> str:
    """Go's words for a certificate that was refused.

    Args:
        address: where the connection went; it is looked at again.
        expected: the name that the certificate should have had.
    """
    text = error.verify_message.lower()
    expired = "expired" in text or "not yet valid" in text
    if not expired and "mismatch" not in text and "not valid for" not in text:
        return "certificate signed by unknown authority"
    shown = await _shown(address, expected, bundle)
    if expired:
        return f"certificate has expired or is not yet valid: {_time_problem(shown, now)}"
    return _name_problem(shown, expected)


async def _shown(address: tuple[str, int], expected: str, bundle: str) -> dict[str, Any]:
    """The certificate that is shown there, whatever its names and times; {}: it is gone."""
    context = trust(bundle)
    context.check_hostname = False
    context.verify_flags |= _NO_CHECK_TIME
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            _, writer = await asyncio.open_connection(*address, ssl=context, server_hostname=expected)
    except (OSError, TimeoutError):
        return {}
    found: dict[str, Any] = writer.get_extra_info("peercert") or {}
    writer.transport.abort()
    return found


def _time_problem(shown: dict[str, Any], now: datetime) -> str:
    ends, begins = (ssl.cert_time_to_seconds(shown[key]) if key in shown else None for key in ("notAfter", "notBefore"))
    if ends is not None and now.timestamp() > ends:
        return f"current time {_rfc3339(now)} is after {_rfc3339(datetime.fromtimestamp(ends, UTC))}"
    start = datetime.fromtimestamp(begins, UTC) if begins is not None else now
    return f"current time {_rfc3339(now)} is before {_rfc3339(start)}"


def _name_problem(shown: dict[str, Any], expected: str) -> str:
    names: list[tuple[str, str]] = list(shown.get("subjectAltName") or ())
    if not names and ("commonName", expected) in [part for parts in shown.get("subject") or () for part in parts]:
        return "certificate relies on legacy Common Name field, use SANs instead"
    try:
        ipaddress.ip_address(expected)
        kind = "IP Address"
    except ValueError:
        kind = "DNS"
    valid = [name for found, name in names if found == kind]
    if valid:
        return f"certificate is valid for {', '.join(valid)}, not {expected}"
    if kind == "DNS":
        return f"certificate is not valid for any names, but wanted to match {expected}"
    return f"cannot validate certificate for {expected} because it doesn't contain any IP SANs"


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
