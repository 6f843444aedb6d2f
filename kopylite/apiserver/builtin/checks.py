"""The checks that validations of built-in kinds share: each answers with the errors of one field. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kopylite.apiserver.schema.field_errors import (
    FieldError,
    RawText,
    child,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kopylite.apiserver.schema.names import label_errors, label_key_errors, label_value_errors, subdomain_errors
from kopylite.objects.amounts import parse_quantity
from kopylite.objects.selectors import OPERATORS, Requirement, Selector

Object = dict[str, Any]
Errors = list[FieldError]

NOT_NEGATIVE = "must be greater than or equal to 0"
MAX_INT32 = 2**31 - 1
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def texts(field: str, value: Any, messages: Iterable[str]) -> Errors:
    """One `Invalid value` for each message."""
    return [invalid(field, value, text) for text in messages]


def nonnegative(obj: Mapping[str, Any], path: str, *fields: str) -> Errors:
    """Those of the fields that are set may not be negative."""
    return [
        invalid(child(path, field), obj[field], NOT_NEGATIVE)
        for field in fields
        if isinstance(obj.get(field), int) and obj[field] < 0
    ]


def in_range(field: str, value: int, low: int, high: int) -> Errors:
    return [] if low <= value <= high else [invalid(field, value, f"must be between {low} and {high}, inclusive")]


def one_of(field: str, value: Any, allowed: Sequence[str], *, needed: bool = False) -> Errors:
    """A value of an enum; "" and None are missing, which is an error only if it is needed."""
    if value in ("", None):
        return [required(field)] if needed else []
    return [] if value in allowed else [unsupported(field, value, allowed)]


def label_name(field: str, value: str) -> Errors:
    """A DNS label, required."""
    return texts(field, value, label_errors(value)) if value else [required(field)]


def optional(check: Callable[[str], list[str]], field: str, value: str | None) -> Errors:
    return texts(field, value, check(value)) if value else []


def subdomain(field: str, value: str | None) -> Errors:
    return optional(subdomain_errors, field, value)


def qualified_name(field: str, value: str) -> Errors:
    return texts(field, value, label_key_errors(value))


def domain_path(field: str, value: str) -> Errors:
    """`domain/path`, such as acme.io/foo."""
    domain, slash, path = value.partition("/")
    if not slash or not domain or not path:
        return [invalid(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return texts(field, domain, subdomain_errors(domain))


def csi_driver_name(field: str, name: str) -> Errors:
    """The name of a driver: required, at most 63 bytes, a DNS subdomain in any case."""
    if not name:
        return [required(field)]
    found = [too_long(field, 63)] if len(name.encode()) > 63 else []
    return found + texts(field, name, subdomain_errors(name.lower()))


def no_backsteps(field: str, path: str) -> Errors:
    """A path that does not lead upwards."""
    return [invalid(field, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending_path(field: str, path: str) -> Errors:
    """A path that stays in its folder."""
    absolute = [invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    return absolute + no_backsteps(field, path)


def local_path(field: str, path: str) -> Errors:
    """A path in a volume that a kubelet writes: names that begin with two dots are its own."""
    found = descending_path(field, path)
    if path.startswith("..") and not path.startswith("../"):
        found.append(invalid(field, path, "must not start with '..'"))
    return found


def template_metadata(metadata: Object, path: str) -> Errors:
    """The metadata of a template, which has labels and annotations and nothing else."""
    found = annotation_keys(metadata.get("annotations"), f"{path}.annotations")
    found += labels(metadata.get("labels"), f"{path}.labels")
    others = sorted(k for k, v in metadata.items() if v is not None and k not in ("labels", "annotations"))
    # The server names fields as Go does, their first letter in lower case.
    return found + [forbidden(f"{path}.{'uID' if k == 'uid' else k}", "cannot be set") for k in others]


def labels(values: Mapping[str, str] | None, path: str) -> Errors:
    found: Errors = []
    for key, value in sorted((values or {}).items()):
        found += texts(path, key, label_key_errors(key))
        found += texts(path, value, label_value_errors(value))
    return found


def annotation_keys(values: Mapping[str, str] | None, path: str) -> Errors:
    return [e for key in sorted(values or {}) for e in texts(path, key, label_key_errors(key.lower()))]


def label_selector(selector: Object | None, path: str) -> Errors:
    """The syntax of a LabelSelector."""
    if selector is None:
        return []
    found = labels(selector.get("matchLabels"), child(path, "matchLabels"))
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        found += requirement_operator(requirement, where)
        found += texts(f"{where}.key", requirement.get("key", ""), label_key_errors(requirement.get("key", "")))
        for position, value in enumerate(requirement.get("values") or ()):
            found += texts(f"{where}.values[{position}]", value, label_value_errors(value))
    return found


def requirement_operator(requirement: Object, path: str, *, comparisons: bool = False) -> Errors:
    """The operator of a selector's requirement, and whether the values fit it; `comparisons`: Gt and Lt are known."""
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn"):
        return [] if values else [required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist"):
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(f"{path}.values", text)] if values else []
    if comparisons and operator in ("Gt", "Lt"):
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if len(values or ()) == 1 else [required(f"{path}.values", text)]
    return [invalid(f"{path}.operator", operator, "not a valid selector operator")]


def selects(selector: Object | None, of: Mapping[str, str]) -> bool:
    """Does a valid LabelSelector match labels? None matches nothing, an empty one everything."""
    if selector is None:
        return False
    equal = [Requirement(key, "=", frozenset((value,))) for key, value in (selector.get("matchLabels") or {}).items()]
    expressions = selector.get("matchExpressions") or ()
    if any(one.get("operator") not in OPERATORS for one in expressions):
        return False
    others = [
        Requirement(one["key"], OPERATORS[one["operator"]], frozenset(one.get("values") or ())) for one in expressions
    ]
    return Selector([*equal, *others]).matches(of)


def port_number(field: str, value: int) -> Errors:
    return in_range(field, value, 1, 65535)


def port_name_errors(name: str) -> list[str]:
    """Why `name` is no IANA service name."""
    found = []
    if len(name.encode()) > 15:
        found.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]*", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_number_or_name(field: str, value: int | str) -> Errors:
    return port_number(field, value) if isinstance(value, int) else texts(field, value, port_name_errors(value))


def config_key(field: str, key: str) -> Errors:
    if len(key.encode()) > 253:
        return [invalid(field, key, "must be no more than 253 characters")]
    if not _CONFIG_KEY.fullmatch(key):
        return [invalid(field, key, _CONFIG_KEY_TEXT)]
    if key == ".":
        return [invalid(field, key, "must not be '.'")]
    if key == "..":
        return [invalid(field, key, "must not be '..'")]
    return [invalid(field, key, "must not start with '..'")] if key.startswith("..") else []


def number_or_percent(field: str, value: int | str) -> Errors:
    """A number that is not negative, or a percentage."""
    if isinstance(value, int):
        return [] if value >= 0 else [invalid(field, value, NOT_NEGATIVE)]
    return [] if re.fullmatch(r"[0-9]+%", value) else [invalid(field, value, _PERCENT_TEXT)]


def at_most_100_percent(field: str, value: int | str) -> Errors:
    if isinstance(value, str) and re.fullmatch(r"[0-9]+%", value) and int(value[:-1]) > 100:
        return [invalid(field, value, "must not be greater than 100%")]
    return []


def is_zero(value: int | str) -> bool:
    """Is a number, or a percentage, zero? Go takes what is neither for a zero, too."""
    return value == 0 if isinstance(value, int) else re.fullmatch(r"[+-]?0*[1-9][0-9]*%?", value) is None


def quantity_not_negative(field: str, text: str) -> Errors:
    return [] if parse_quantity(text).value >= 0 else [invalid(field, text, NOT_NEGATIVE)]


def ip_address(field: str, value: str) -> Errors:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return [invalid(field, value, _BAD_IP)]
    return []


def cidr(field: str, value: str) -> Errors:
    try:
        interface = ipaddress.ip_interface(value) if "/" in value else None
    except ValueError:
        interface = None
    if interface is None:
        return [invalid(field, value, _BAD_CIDR)]
    if interface.ip != interface.network.network_address:
        return [invalid(field, value, "must not have bits set beyond the prefix length")]
    return []


def immutable(field: str, value: Any, old: Any, text: str = "field is immutable") -> Errors:
    return [] if value == old else [invalid(field, value, text)]


def frozen(field: str, value: Any, old: Any, text: str = "field is immutable") -> Errors:
    """A field that never changes, where the server shows no value."""
    return [] if value == old else [invalid(field, RawText("null"), text)]


def go_struct(fields: Mapping[str, Any]) -> RawText:
    """A Go struct in a message: like JSON, its fields named and ordered as in Go."""
    return RawText(json.dumps(fields, separators=(",", ":")))
