"""Who we are to the server, and until when: client certificates, tokens, plugins. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kopylite.doctor.certificates import validities
from kopylite.doctor.findings import Finding, error, warning
from kopylite.doctor.wire import number, span, text

CHECK = "credentials"
# What renews itself (a mounted token, a plugin) does so long before its end.
RENEWED_SECONDS = 60.0
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What we show of ourselves.

    Attributes:
        source: where it came from, for people.
        certificate: of the client, as PEM; b"" if there is none.
        authorization: the header; "" if there is none.
        renews: it renews itself: it is a mounted token, or comes from a plugin.
        lifetime: seconds that a plugin gave it from its loading on; None: it did not say.
    """

    source: str
    certificate: bytes = b""
    authorization: str = ""
    renews: bool = False
    lifetime: float | None = None


def judge(shown: Shown, now: datetime) -> Iterator[Finding]:
    """What of it ends soon, or has ended. `now` is the server's time."""
    for found in validities(shown.certificate)[:1]:  # the first is ours, the others are who signed it
        left = found.left(now)
        again = "get a new kubeconfig from whoever gave you this one (kubeadm: kubeadm certs renew)"
        if left <= 0:
            yield error(CHECK, shown.source, f"the client certificate ended {span(-left)} ago", again)
        elif found.begins > now:
            text = f"the client certificate begins in {span((found.begins - now).total_seconds())}"
            yield error(CHECK, shown.source, text, "wait, or mend the clock of the machine that made it")
        elif found.ends_soon(now):
            yield warning(CHECK, shown.source, f"the client certificate ends in {span(left)}", again)
    claims = claims_of(shown.authorization)
    ends = number(claims, "exp")
    if ends is not None:
        yield from _token(shown, ends, number(claims, "iat"), now)
    elif shown.renews and shown.lifetime is not None and shown.lifetime <= 0:
        yield error(CHECK, shown.source, "the credentials that the plugin gives have ended already", "log in anew")


def _token(shown: Shown, ends: int, issued: int | None, now: datetime) -> Iterator[Finding]:
    left = ends - now.timestamp()
    again = "log in anew, or: kubectl -n NAMESPACE create token SERVICEACCOUNT --duration=24h"
    if shown.renews:
        again = "it should have been renewed: look why the kubelet, or the plugin, does not"
    soon = RENEWED_SECONDS
    if not shown.renews:
        soon = min(_DAY, (ends - issued) / 5) if issued is not None and issued < ends else _DAY
    if left <= 0:
        yield error(CHECK, shown.source, f"the token ended {span(-left)} ago", again)
    elif left < soon:
        yield warning(CHECK, shown.source, f"the token ends in {span(left)}", again)


def claims_of(authorization: str) -> dict[str, Any]:
    """What a bearer token says of itself, unverified; nothing if it is no JWT."""
    scheme, _, token = authorization.partition(" ")
    parts = token.strip().split(".")
    if scheme.lower() != "bearer" or len(parts) != 3 or len(token) > 100_000:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def service_account(authorization: str) -> str:
    """ "system:serviceaccount:NAMESPACE:NAME" of a service account's token; "" of others."""
    subject = text(claims_of(authorization), "sub")
    return subject if subject.startswith("system:serviceaccount:") else ""


def server_certificate(host: str, ends: str, begins: str, now: datetime) -> Iterator[Finding]:
    """Whether the certificate that the API server shows ends soon. The times are as `ssl` tells them."""
    try:
        end, begin = (datetime.strptime(each, "%b %d %H:%M:%S %Y %Z").replace(tzinfo=UTC) for each in (ends, begins))
    except ValueError:
        return
    left, life = (end - now).total_seconds(), (end - begin).total_seconds()
    if left < min(7 * _DAY, life / 5):
        text = f"the certificate of the API server ends in {span(left)}; then nobody can connect any more"
        yield warning("tls", host, text, "renew it on the control plane (kubeadm: kubeadm certs renew apiserver)")
