"""Kubernetes' CEL libraries of URLs, IP addresses, networks and named formats. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from kopylite.apiserver.schema.cel.library import FunctionFailed, Library, attempts, no_overload
from kopylite.apiserver.schema.cel.values import OptionalValue
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.schema.formats import conforms
from kopylite.apiserver.schema.names import (
    dns1035_errors,
    label_errors,
    label_key_errors,
    label_value_errors,
    subdomain_errors,
)

ADDRESSES = Library()

_URL, _IP, _CIDR, _FORMAT = "kubernetes.URL", "kubernetes.IP", "kubernetes.CIDR", "kubernetes.Format"


@ADDRESSES.add("url", is_global=True)
def url(text: str) -> dict[str, str]:
    if not conforms("uri", text):
        reason = "empty url" if not text else "invalid URI for request"
        raise FunctionFailed(f"URL parse error during conversion from string: parse {go_quote(text)}: {reason}")
    return {_URL: text}


@ADDRESSES.add("isURL", "bool", is_global=True)
def is_url(text: str) -> bool:
    return conforms("uri", text)


def _parts(value: dict[str, str]) -> SplitResult:
    return urlsplit(value[_URL])


@ADDRESSES.add("getScheme", "string")
def get_scheme(value: Any) -> str:
    return _parts(value).scheme


@ADDRESSES.add("getHost", "string")
def get_host(value: Any) -> str:
    return str(_parts(value).netloc).rpartition("@")[2]


@ADDRESSES.add("getHostname", "string")
def get_hostname(value: Any) -> str:
    host = str(get_host(value))
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


@ADDRESSES.add("getPort", "string")
def get_port(value: Any) -> str:
    port = _parts(value).port
    return "" if port is None else str(port)


@ADDRESSES.add("getEscapedPath", "string")
def get_escaped_path(value: Any) -> str:
    return _parts(value).path


@ADDRESSES.add("getQuery")
def get_query(value: Any) -> dict[str, list[str]]:
    return parse_qs(_parts(value).query, keep_blank_values=True)


IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _parse_ip(text: str) -> IpAddress:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        problem = f"ParseAddr({go_quote(text)}): {_address_problem(text)}"
        raise FunctionFailed(
            f"IP Address {go_quote(text)} parse error during conversion from string: {problem}"
        ) from error
    if "%" in text:
        raise FunctionFailed(f"IP address {go_quote(text)} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise FunctionFailed(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return address


def _address_problem(text: str) -> str:
    """What Go's netip.ParseAddr says; of IPv6 only the commonest."""
    first = re.search(r"[.:%]", text)
    if first is None:
        return "unable to parse IP"
    if first[0] == ":":
        return f"each colon-separated field must have at least one digit (at {go_quote(text)})"
    fields = text.split(".")
    for index, part in enumerate(fields):
        bad = re.search(r"[^0-9]", part)
        if bad is not None:
            return f"unexpected character (at {go_quote('.'.join(fields[index:])[bad.start() :])})"
        if len(part) > 1 and part.startswith("0"):
            return "IPv4 field has octet with leading zero"
        if part and int(part) > 255:
            return "IPv4 field has value >255"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _parse_cidr(text: str) -> tuple[IpAddress, Network]:
    address, slash, prefix = text.rpartition("/")
    problem = ""
    if not slash:
        problem = "no '/'"
    elif not attempts(_parse_ip, address):
        problem = f"ParseAddr({go_quote(address)}): {_address_problem(address)}"
    elif not prefix.isdecimal():
        problem = f"bad bits after slash: {go_quote(prefix)}"
    elif int(prefix) > _parse_ip(address).max_prefixlen:
        problem = "prefix length out of range"
    if problem:
        parsed = "network address parse error during conversion from string"
        raise FunctionFailed(f"{parsed}: {parsed}: netip.ParsePrefix({go_quote(text)}): {problem}")
    return _parse_ip(address), ipaddress.ip_network(text, strict=False)


def _argument(parse: Callable[[str], Any], text: str) -> Any:
    """A string that stands for an address or network; to a function, one that does not parse is no argument."""
    try:
        return parse(text)
    except FunctionFailed as error:
        raise no_overload() from error


def _address(value: Any) -> IpAddress:
    return _parse_ip(value[_IP]) if isinstance(value, dict) else cast("IpAddress", _argument(_parse_ip, value))


def _network(value: Any) -> Network:
    if isinstance(value, dict):
        return _parse_cidr(value[_CIDR])[1]
    return cast("Network", _argument(_parse_cidr, value)[1])


@ADDRESSES.add("ip", is_global=True)
def ip(value: Any) -> dict[str, str]:
    """Of a string, or the address in a CIDR."""
    if isinstance(value, dict):
        return {_IP: value[_CIDR].partition("/")[0]}
    return {_IP: str(_parse_ip(value))}


@ADDRESSES.add("isIP", "bool", is_global=True)
def is_ip(text: str) -> bool:
    return attempts(_parse_ip, text)


@ADDRESSES.add("ip.isCanonical", "bool", is_global=True)
def is_canonical(text: str) -> bool:
    return str(_parse_ip(text)) == text


@ADDRESSES.add("family", "int")
def family(value: Any) -> int:
    return _address(value).version


@ADDRESSES.add("isUnspecified", "bool")
def is_unspecified(value: Any) -> bool:
    return _address(value).is_unspecified


@ADDRESSES.add("isLoopback", "bool")
def is_loopback(value: Any) -> bool:
    return _address(value).is_loopback


@ADDRESSES.add("isLinkLocalMulticast", "bool")
def is_link_local_multicast(value: Any) -> bool:
    address = _address(value)
    block = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(block)


@ADDRESSES.add("isLinkLocalUnicast", "bool")
def is_link_local_unicast(value: Any) -> bool:
    return _address(value).is_link_local


@ADDRESSES.add("isGlobalUnicast", "bool")
def is_global_unicast(value: Any) -> bool:
    """As Go has it: private addresses are global unicast too."""
    address = _address(value)
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


@ADDRESSES.add("cidr", is_global=True)
def cidr(text: str) -> dict[str, str]:
    address, network = _parse_cidr(text)
    return {_CIDR: f"{address}/{network.prefixlen}"}


@ADDRESSES.add("isCIDR", "bool", is_global=True)
def is_cidr(text: str) -> bool:
    return attempts(_parse_cidr, text)


@ADDRESSES.add("containsIP", "bool")
def contains_ip(value: Any, address: Any) -> bool:
    return _address(address) in _network(value)


@ADDRESSES.add("containsCIDR", "bool")
def contains_cidr(value: Any, other: Any) -> bool:
    outer, inner = _network(value), _network(other)
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


@ADDRESSES.add("masked")
def masked(value: Any) -> dict[str, str]:
    return {_CIDR: str(_network(value))}


@ADDRESSES.add("prefixLength", "int")
def prefix_length(value: Any) -> int:
    return _network(value).prefixlen


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(text.removesuffix("-") + "a" if text.endswith("-") else text)


def _crd_format(name: str, problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if conforms(name, text) else [problem]


_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": label_errors,
    "dns1123Subdomain": subdomain_errors,
    "dns1035Label": dns1035_errors,
    "qualifiedName": label_key_errors,
    "dns1123LabelPrefix": _prefix(label_errors),
    "dns1123SubdomainPrefix": _prefix(subdomain_errors),
    "dns1035LabelPrefix": _prefix(dns1035_errors),
    "labelValue": label_value_errors,
    "uri": _crd_format("uri", "invalid URI for request"),
    "uuid": _crd_format("uuid", "does not match the UUID format"),
    "byte": _crd_format("byte", "invalid base64"),
    "date": _crd_format("date", "invalid date"),
    "datetime": _crd_format("datetime", "invalid datetime"),
}
FORMAT_NAMES = frozenset(_FORMATS)


@ADDRESSES.add("format_of")
def format_of(name: str) -> dict[str, str]:
    """`format.<name>()`."""
    return {_FORMAT: name}


@ADDRESSES.add("format.named", is_global=True)
def format_named(name: str) -> Any:
    return OptionalValue.of({_FORMAT: name}) if name in _FORMATS else OptionalValue.none()


@ADDRESSES.add("validate")
def validate(value: Any, text: str) -> Any:
    found = _FORMATS[value[_FORMAT]](text)
    return OptionalValue.of(found) if found else OptionalValue.none()
