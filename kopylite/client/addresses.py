"""Addresses of API servers and proxies: checked, brought into one form, and shown without their passwords.

Which proxy stands before a server is decided as Go's net/http does it for every client-go program.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from kopylite.errors import KubeconfigError

# What Go's net/http, and so kubectl, understands.
PROXY_SCHEMES = ("http", "https", "socks5")
PORTS = {"http": 80, "https": 443, "socks5": 1080}
_USER = re.compile(r"(?<=//)[^/\s]*@")


def without_user(url: str) -> str:
    """The URL for an error or a log: without user name and password."""
    return _USER.sub("", url)


def server_url(text: str, where: str, *, tls: bool = False) -> str:
    """The URL of an API server in one form: scheme and host in small letters, no slash at the end, no query.

    Args:
        text: a URL, or host:port.
        tls: what host:port alone means: https when the settings speak of TLS, else http, as in client-go.

    Raises:
        KubeconfigError: it is none; `where` begins the message.
    """
    full = text if "://" in text else f"{'https' if tls else 'http'}://{text}"
    parts = _split(full) if text else None
    if parts is None or parts.scheme not in ("http", "https"):
        shown = repr(without_user(text)[:200])
        raise KubeconfigError(f"{where}: server should be a URL such as https://host:6443, not {shown}")
    if "@" in parts.netloc:
        raise KubeconfigError(f"{where}: server holds a user name; put it into the user's entry")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def proxy_url(text: str, where: str) -> str:
    """A proxy's URL, checked. Raises KubeconfigError, without its password."""
    parts = _split(text) if "://" in text else None
    if parts is None or parts.scheme not in PROXY_SCHEMES:
        shown = repr(without_user(text)[:200])
        raise KubeconfigError(
            f"{where}: a proxy should be a URL such as http://host:3128 (or https://, socks5://), not {shown}"
        )
    return f"{parts.scheme}://{parts.netloc}"


def _split(url: str) -> SplitResult | None:
    """The parts of a URL that a request can be sent to, else None."""
    # urlsplit drops line breaks without a word.
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        usable = bool(ascii_host(parts.hostname or "")) and parts.port != 0  # .port raises where it is out of range
    except ValueError:
        return None
    return parts if usable else None


def ascii_host(host: str) -> str:
    """A host as it goes out: names in letters of other languages have a form in plain ones. Raises ValueError."""
    return host.encode("idna").decode()


def host_header(url: SplitResult) -> str:
    """What the header Host says of a URL: the port if it is named there, and no interface of this machine."""
    host = ascii_host(url.hostname or "").partition("%")[0]
    shown = f"[{host}]" if ":" in host else host
    return shown if url.port is None else f"{shown}:{url.port}"


def tls_name(text: str, where: str) -> str:
    """A name to expect in a server's certificate, checked. Raises KubeconfigError."""
    try:
        if text.isprintable() and not text.startswith(".") and ascii_host(text):
            return text
    except ValueError:
        pass
    raise KubeconfigError(f"{where}: tls-server-name {text[:200]!r} is neither a host's name nor an address")


def is_loopback(server: str) -> bool:
    """Whether nobody but this machine can listen on the way to a server."""
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def origin_of(url: str) -> str:
    """Scheme, host and port of an absolute URL, for an error; "" if it is none."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:300] if parts is not None and parts.scheme else ""


def environment_proxy(server: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for a server; small letters win.

    A proxy without a scheme is an http one. NO_PROXY is a list of "*", hosts (which stand for their subdomains too),
    ".domain" and "*.domain" (subdomains only), addresses and CIDR ranges; all but the ranges may have a port. The
    machine itself never has a proxy.

    Raises:
        KubeconfigError: the variable holds no usable URL.
    """
    parts = urlsplit(server)
    text = _variable(environment, f"{parts.scheme}_proxy")
    if not text or is_loopback(server):
        return None
    if _bypassed(parts, _variable(environment, "no_proxy")):
        return None
    name = f"{parts.scheme.upper()}_PROXY"
    return proxy_url(text if "://" in text else f"http://{text}", f"the environment variable {name}")


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _bypassed(server: SplitResult, no_proxy: str) -> bool:
    host, port = server.hostname or "", str(server.port or PORTS[server.scheme])
    address = _address(host)
    for entry in no_proxy.lower().split(","):
        entry = entry.strip()
        if entry == "*":
            return True
        if address is not None and "/" in entry:
            network = _network(entry)
            if network is not None and network.version == address.version and address in network:
                return True
            continue
        name, its_port = _host_and_port(entry)
        if not name or (its_port and its_port != port):
            continue
        if address is not None:
            if _address(name) == address:
                return True
            continue
        name = name[1:] if name.startswith("*.") else name
        if host.endswith(name if name.startswith(".") else f".{name}") or host == name:
            return True
    return False


def _host_and_port(entry: str) -> tuple[str, str]:
    """The parts of host, host:port, address, [v6] and [v6]:port."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
