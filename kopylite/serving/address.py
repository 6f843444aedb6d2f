"""Address: where a server listens, as written on the command line."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from kopylite.errors import UsageError

OFF = "off"
LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """Host and port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address | None:
    """The Address for "host:port", "[v6]:port" or ":port"; None for "off".

    A missing host means 127.0.0.1, not every interface: listening to the network has to be written out, as
    in "0.0.0.0:8080".

    Raises:
        UsageError: for anything else, with the forms that are understood.
    """
    if text == OFF:
        return None
    host, colon, digits = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    well_formed = bool(colon) and digits.isascii() and digits.isdigit() and int(digits) < 65536
    if not well_formed or (":" in host and not bracketed):
        raise UsageError(f"address {text!r} is none of host:port, [ipv6]:port, :port (on {LOOPBACK}) and {OFF}")
    return Address(host.strip("[]") or LOOPBACK, int(digits))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on `host`, a name or an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
