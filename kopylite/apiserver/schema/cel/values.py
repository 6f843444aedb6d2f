"""Kubernetes' CEL libraries of quantities, URLs, addresses, versions and formats. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from cel import OptionalValue

from kopylite.apiserver.names import (
    dns1035_errors,
    label_errors,
    label_key_errors,
    label_value_errors,
    subdomain_errors,
)
from kopylite.apiserver.schema.cel.library import CallFailed, Library, no_overload
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.schema.formats import conforms

VALUES = Library()

_QUANTITY, _URL, _IP = "kubernetes.Quantity", "kubernetes.URL", "kubernetes.IP"
_CIDR, _SEMVER, _FORMAT = "kubernetes.CIDR", "kubernetes.Semver", "kubernetes.Format"
_BINARY = {unit: Decimal(2) ** (10 * (i + 1)) for i, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL = {unit: Decimal(10) ** (3 * (i - 3)) for i, unit in enumerate(("n", "u", "m", "", *"kMGTPE"))}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z.-]+))?"
)


def parse_quantity(text: str) -> Decimal:
    """The number that a quantity (`1500m`, `2Gi`, `1e3`) stands for.

    Raises:
        CallFailed: it is none.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise CallFailed(_QUANTITY_TEXT)
    unit = match[2] or ""
    if unit[:1] in ("e", "E") and len(unit) > 1:
        return Decimal(match[1]).scaleb(int(unit[1:]))
    return Decimal(match[1]) * (_BINARY.get(unit) or _DECIMAL[unit])


def _quantity_value(number: Decimal) -> dict[str, str]:
    return {_QUANTITY: str(number.normalize())}


def _number(value: Any) -> Decimal:
    if isinstance(value, dict) and _QUANTITY in value:
        return Decimal(value[_QUANTITY])
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise no_overload()


def _attempts(make: Callable[..., Any], *args: Any) -> bool:
    try:
        make(*args)
    except CallFailed:
        return False
    return True


@VALUES.add("quantity", is_global=True)
def quantity(text: str) -> dict[str, str]:
    return _quantity_value(parse_quantity(text))


@VALUES.add("isQuantity", "bool", is_global=True)
def is_quantity(text: str) -> bool:
    return _attempts(parse_quantity, text)


@VALUES.add("sign", "int")
def sign(value: Any) -> int:
    number = _number(value)
    return (number > 0) - (number < 0)


@VALUES.add("isInteger", "bool")
def is_integer(value: Any) -> bool:
    number = _number(value)
    return number == number.to_integral_value() and abs(number) < 2**63


@VALUES.add("asInteger", "int")
def as_integer(value: Any) -> int:
    if not is_integer(value):
        raise CallFailed("cannot convert value to integer")
    return int(_number(value))


@VALUES.add("asApproximateFloat", "double")
def as_float(value: Any) -> float:
    return float(_number(value))


@VALUES.add("add")
def add(a: Any, b: Any) -> dict[str, str]:
    return _quantity_value(_number(a) + _number(b))


@VALUES.add("sub")
def subtract(a: Any, b: Any) -> dict[str, str]:
    return _quantity_value(_number(a) - _number(b))


def _compare(a: Any, b: Any) -> int:
    left, right = (_version_key(v[_SEMVER]) if isinstance(v, dict) and _SEMVER in v else _number(v) for v in (a, b))
    if type(left) is not type(right):
        raise no_overload()
    return (left > right) - (left < right)  # type: ignore[operator]


@VALUES.add("isLessThan", "bool")
def is_less_than(a: Any, b: Any) -> bool:
    return _compare(a, b) < 0


@VALUES.add("isGreaterThan", "bool")
def is_greater_than(a: Any, b: Any) -> bool:
    return _compare(a, b) > 0


@VALUES.add("compareTo", "int")
def compare_to(a: Any, b: Any) -> int:
    return _compare(a, b)


@VALUES.add("url", is_global=True)
def url(text: str) -> dict[str, str]:
    if not conforms("uri", text):
        reason = "empty url" if not text else "invalid URI for request"
        raise CallFailed(f"URL parse error during conversion from string: parse {go_quote(text)}: {reason}")
    return {_URL: text}


@VALUES.add("isURL", "bool", is_global=True)
def is_url(text: str) -> bool:
    return conforms("uri", text)


def _parts(value: dict[str, str]) -> SplitResult:
    return urlsplit(value[_URL])


@VALUES.add("getScheme", "string")
def get_scheme(value: Any) -> str:
    return _parts(value).scheme


@VALUES.add("getHost", "string")
def get_host(value: Any) -> str:
    return str(_parts(value).netloc).rpartition("@")[2]


@VALUES.add("getHostname", "string")
def get_hostname(value: Any) -> str:
    host = str(get_host(value))
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


@VALUES.add("getPort", "string")
def get_port(value: Any) -> str:
    port = _parts(value).port
    return "" if port is None else str(port)


@VALUES.add("getEscapedPath", "string")
def get_escaped_path(value: Any) -> str:
    return _parts(value).path


@VALUES.add("getQuery")
def get_query(value: Any) -> dict[str, list[str]]:
    return parse_qs(_parts(value).query, keep_blank_values=True)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _parse_ip(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        problem = f"ParseAddr({go_quote(text)}): {_address_problem(text)}"
        raise CallFailed(f"IP Address {go_quote(text)} parse error during conversion from string: {problem}") from error
    if "%" in text:
        raise CallFailed(f"IP address {go_quote(text)} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CallFailed(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
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


def _parse_cidr(text: str) -> tuple[Address, Network]:
    address, slash, prefix = text.rpartition("/")
    problem = ""
    if not slash:
        problem = "no '/'"
    elif not _attempts(_parse_ip, address):
        problem = f"ParseAddr({go_quote(address)}): {_address_problem(address)}"
    elif not prefix.isdecimal():
        problem = f"bad bits after slash: {go_quote(prefix)}"
    elif int(prefix) > _parse_ip(address).max_prefixlen:
        problem = "prefix length out of range"
    if problem:
        parsed = "network address parse error during conversion from string"
        raise CallFailed(f"{parsed}: {parsed}: netip.ParsePrefix({go_quote(text)}): {problem}")
    return _parse_ip(address), ipaddress.ip_network(text, strict=False)


def _argument(parse: Callable[[str], Any], text: str) -> Any:
    """A string that stands for an address or network; to a function, one that does not parse is no argument."""
    try:
        return parse(text)
    except CallFailed as error:
        raise no_overload() from error


def _address(value: Any) -> Address:
    return _parse_ip(value[_IP]) if isinstance(value, dict) else cast("Address", _argument(_parse_ip, value))


def _network(value: Any) -> Network:
    if isinstance(value, dict):
        return _parse_cidr(value[_CIDR])[1]
    return cast("Network", _argument(_parse_cidr, value)[1])


@VALUES.add("ip", is_global=True)
def ip(value: Any) -> dict[str, str]:
    """Of a string, or the address in a CIDR."""
    if isinstance(value, dict):
        return {_IP: value[_CIDR].partition("/")[0]}
    return {_IP: str(_parse_ip(value))}


@VALUES.add("isIP", "bool", is_global=True)
def is_ip(text: str) -> bool:
    return _attempts(_parse_ip, text)


@VALUES.add("ip.isCanonical", "bool", is_global=True)
def is_canonical(text: str) -> bool:
    return str(_parse_ip(text)) == text


@VALUES.add("family", "int")
def family(value: Any) -> int:
    return _address(value).version


@VALUES.add("isUnspecified", "bool")
def is_unspecified(value: Any) -> bool:
    return _address(value).is_unspecified


@VALUES.add("isLoopback", "bool")
def is_loopback(value: Any) -> bool:
    return _address(value).is_loopback


@VALUES.add("isLinkLocalMulticast", "bool")
def is_link_local_multicast(value: Any) -> bool:
    address = _address(value)
    block = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(block)


@VALUES.add("isLinkLocalUnicast", "bool")
def is_link_local_unicast(value: Any) -> bool:
    return _address(value).is_link_local


@VALUES.add("isGlobalUnicast", "bool")
def is_global_unicast(value: Any) -> bool:
    """As Go has it: private addresses are global unicast too."""
    address = _address(value)
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


@VALUES.add("cidr", is_global=True)
def cidr(text: str) -> dict[str, str]:
    address, network = _parse_cidr(text)
    return {_CIDR: f"{address}/{network.prefixlen}"}


@VALUES.add("isCIDR", "bool", is_global=True)
def is_cidr(text: str) -> bool:
    return _attempts(_parse_cidr, text)


@VALUES.add("containsIP", "bool")
def contains_ip(value: Any, address: Any) -> bool:
    return _address(address) in _network(value)


@VALUES.add("containsCIDR", "bool")
def contains_cidr(value: Any, other: Any) -> bool:
    outer, inner = _network(value), _network(other)
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


@VALUES.add("masked")
def masked(value: Any) -> dict[str, str]:
    return {_CIDR: str(_network(value))}


@VALUES.add("prefixLength", "int")
def prefix_length(value: Any) -> int:
    return _network(value).prefixlen


def _version_key(text: str) -> tuple[Any, ...]:
    """Sorts by the rules of semver 2: a pre-release comes before its release; numbers before words."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise CallFailed(_version_problem(text))
    release = tuple(int(match[i]) for i in (1, 2, 3))
    if match[4] is None:
        return (*release, 1, ())
    parts = tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in match[4].split("."))
    return (*release, 0, parts)


def _version_problem(text: str) -> str:
    parts = text.split(".", 2)
    if not text:
        return "Version string empty"
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found"
    parts[2] = re.split("[-+]", parts[2], maxsplit=1)[0]
    for name, part in zip(("Major", "Minor", "Patch"), parts, strict=True):
        if not part.isascii() or not part.isdecimal():
            return f"Invalid character(s) found in {name.lower()} number {go_quote(part)}"
        if len(part) > 1 and part.startswith("0"):
            return f"{name} number must not contain leading zeroes {go_quote(part)}"
    return "Prerelease is empty"


def _normalized(text: str) -> str:
    """A loose version (`v1.2`, `01.2.3`) in full form."""
    core, mark, rest = re.fullmatch(r"v?([^-+]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [part.lstrip("0") or "0" for part in core.split(".")]
    return ".".join(parts + ["0"] * (3 - len(parts))) + mark + rest


@VALUES.add("semver", is_global=True)
def semver(text: str, normalize: bool = False) -> dict[str, str]:
    text = _normalized(text) if normalize else text
    _version_key(text)
    return {_SEMVER: text}


@VALUES.add("isSemver", "bool", is_global=True)
def is_semver(text: str, normalize: bool = False) -> bool:
    return _attempts(semver, text, normalize)


def _version_part(name: str, index: int) -> None:
    @VALUES.add(name, "int")
    def read(value: Any) -> int:
        return int(_version_key(value[_SEMVER])[index])


for _index, _name in enumerate(("major", "minor", "patch")):
    _version_part(_name, _index)


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


@VALUES.add("format_of")
def format_of(name: str) -> dict[str, str]:
    """`format.<name>()`."""
    return {_FORMAT: name}


@VALUES.add("format.named", is_global=True)
def format_named(name: str) -> Any:
    return OptionalValue.of({_FORMAT: name}) if name in _FORMATS else OptionalValue.none()


@VALUES.add("validate")
def validate(value: Any, text: str) -> Any:
    found = _FORMATS[value[_FORMAT]](text)
    return OptionalValue.of(found) if found else OptionalValue.none()
