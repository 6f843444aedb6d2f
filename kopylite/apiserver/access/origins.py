"""Web pages: a browser on this machine sends requests for whoever wrote the page. None of them may act here. Pure.

A page cannot send an Authorization header to another origin unasked, so whatever carries a bearer token is no page's.
What is left is what a browser or the place of the machine itself gives away: client certificates, and the rights of
anonymous requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from kopylite.apiserver.access.authentication import bearer_token
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.errors import Forbidden
from kopylite.serving.address import is_loopback

_READS: Final = ("GET", "HEAD", "OPTIONS")
_FOREIGN_SITES: Final = ("cross-site", "same-site")
# Of foreign texts in errors.
_SHOWN = 100


def check_no_web_page(method: str, headers: Mapping[str, str], *, listening: str) -> None:
    """Refuse what a web page of somebody else may have sent.

    Args:
        headers: by lower-case name.
        listening: the host that this server listens on, as it was configured.

    Raises:
        Forbidden: the Host is no name of the loopback that is listened on (DNS rebinding); or a write comes from a
            page of another origin.
    """
    if bearer_token(headers.get("authorization", "")):
        return
    host = headers.get("host", "")
    if host and is_loopback(listening) and not _is_own(_host_of(host), listening):
        raise Forbidden(
            f"the Host {_quoted(host)} is no name of this server, which listens on loopback only, so that no web page "
            "reaches it by a DNS name of its own; use 127.0.0.1 or localhost, or send a bearer token"
        )
    if method in _READS:
        return
    origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "").lower()
    if (origin and _origin_host(origin) != host.lower()) or site in _FOREIGN_SITES:
        raise Forbidden(
            f"a web page of another origin ({_quoted(origin or site)}) may not write here without a bearer token"
        )


def _is_own(name: str, listening: str) -> bool:
    return name == listening.lower() or is_loopback(name) or name.endswith(".localhost")


def _host_of(host: str) -> str:
    """The name in a Host header, without the port; "" if there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _origin_host(origin: str) -> str:
    """Host and port of an Origin header; "" for `null` and what is no origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _quoted(text: str) -> str:
    return go_quote(text[:_SHOWN])
