"""The string formats that CRD schemas know, with the server's idea of each. Pure.

A format that is not listed here is ignored by the server (and reported as a warning when the CRD is written).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from kopylite.apiserver.schema.regex import compile_go

_UUID = "(?i)^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}}$"
_ANY = "[0-9a-f]"
_HOSTNAME = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)"
    r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_CARD = (
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
)
_BYTE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]++"
# RFC 5322 as Go's net/mail reads it: atoms or a quoted text, then a domain or a literal.
_EMAIL = re.compile(rf'(?:{_ATOM}(?:\.{_ATOM})*+|"(?:[^"\\\r\n]|\\.)++")@(?:{_ATOM}(?:\.{_ATOM})*+|\[[^\[\]\\\s]++\])')
_DURATION_UNITS = ("nano", "micro", "milli", "second", "minute", "hour", "day", "week")


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: compile_go(pattern).matches(text)


def _is_uri(text: str) -> bool:
    """Go's url.ParseRequestURI: absolute, or a rooted path; no control characters, valid escapes and port."""
    if not text or any(ord(c) < 0x20 or ord(c) == 0x7F for c in text):
        return False
    if text == "*":
        return True
    if re.search("%(?![0-9A-Fa-f]{2})", text.split("?", 1)[0]):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises if it is no number
        if re.search(r'[\s"<>\\^`{|}]', parts.netloc):
            return False
    except ValueError:
        return False
    return (bool(parts.scheme) and not text.startswith(":")) or text.startswith("/")


def _is_email(text: str) -> bool:
    head, opened, rest = text.rstrip().rpartition("<")
    named = opened and rest.endswith(">") and "<" not in head
    return _EMAIL.fullmatch((rest[:-1] if named else text).strip()) is not None


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255 or not compile_go(_HOSTNAME).matches(text):
        return False
    return all(len(part.encode()) <= 63 for part in text.split("."))


def _without_leading_zeros(text: str) -> str:
    return re.sub(r"(^|\.)0+(?=\d)", r"\1", text)


def is_ip(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(_without_leading_zeros(text) if version == 4 else text).version == version
    except ValueError:
        return False


def _is_ipv4(text: str) -> bool:
    """Upstream's rule: any address that is written with points, so an IPv4 address within IPv6, too."""
    return is_ip(text, 4) or ("." in text and _is_ipv6(text))


def _is_ipv6(text: str) -> bool:
    return "%" not in text and is_ip(text, 6)


def _is_cidr(text: str) -> bool:
    address, slash, prefix = text.partition("/")
    if not slash or not prefix.isdecimal() or "%" in address:
        return False
    try:
        ipaddress.ip_network(f"{_without_leading_zeros(address)}/{prefix}", strict=False)
    except ValueError:
        return False
    return True


def _is_mac(text: str) -> bool:
    """Go's net.ParseMAC: 6, 8 or 20 bytes, separated by colons, hyphens or dots."""
    octets = r"[0-9a-fA-F]{{2}}(?:{0}[0-9a-fA-F]{{2}}){{{1}}}"
    words = r"[0-9a-fA-F]{{4}}(?:\.[0-9a-fA-F]{{4}}){{{0}}}"
    forms = [octets.format(sep, n) for sep in ":-" for n in (5, 7, 19)] + [words.format(n) for n in (2, 3, 9)]
    return any(re.fullmatch(form, text) for form in forms)


def _is_card(text: str) -> bool:
    digits = re.sub("[^0-9]", "", text)
    if re.search(_CARD, digits) is None:
        return False
    doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits))]
    return sum(n - 9 if n >= 10 else n for n in doubled) % 10 == 0


def _is_isbn10(text: str) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", plain):
        return False
    values = [10 if c == "X" else int(c) for c in plain]
    return sum((i + 1) * v for i, v in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", plain):
        return False
    return sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(plain)) % 10 == 0


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, separator, clock = text.lower().partition("t")
    match = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", clock)
    if not separator or not _is_date(day) or match is None:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    """Go's time.ParseDuration, or numbers with units in Scala's words ("2 hours")."""
    if re.fullmatch(r"[-+]?(0|((\d++(\.\d*+)?|\.\d++)(ns|us|µs|μs|ms|s|m|h))++)", text):
        return True
    short = {"ns", "us", "µs", "ms", "s", "m", "h", "d", "w", "wk", "mi", "micros", "millis", "min", "hr"}
    units = [unit.lower() for unit in re.findall(r"(?<!\d)\d++\s*+([A-Za-zµ]++)", text)]
    return any(unit in short or unit.startswith(_DURATION_UNITS) for unit in units)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches("^[0-9a-fA-F]{24}$"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matches(_UUID.format(_ANY, _ANY)),
    "uuid3": _matches(_UUID.format("3", _ANY)),
    "uuid4": _matches(_UUID.format("4", "[89ab]")),
    "uuid5": _matches(_UUID.format("5", "[89ab]")),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": lambda text: len(text) == 11 and re.search(r"^\d{3}[- ]?\d{2}[- ]?\d{4}\Z", text) is not None,
    "hexcolor": _matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matches(rf"^rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)$"),
    "byte": _matches("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_datetime,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_SHORT_NAME, text) is not None,
    "k8slongname": lambda text: (
        len(text) <= 253 and re.fullmatch(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*", text) is not None
    ),
}


def recognised(format_name: str, type_name: str) -> bool:
    """Does the server check this format for values of this type?"""
    if type_name in ("", "string"):
        return format_name.replace("-", "") in _FORMATS
    if type_name == "integer":
        return format_name in ("int32", "int64")
    return type_name == "number" and format_name in ("float", "double")


def conforms(format_name: str, text: str) -> bool:
    """Is `text` of a format? True for formats that are not recognised."""
    check = _FORMATS.get(format_name.replace("-", ""))
    return check is None or check(text)
