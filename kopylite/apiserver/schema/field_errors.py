"""Errors of single fields, with the texts of Kubernetes' `field.Error`, and their sum as a 422. Pure.

Paths are plain strings in the server's notation: `spec.containers[0].name`, `metadata.labels[app]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kopylite.errors import Cause, Invalid

NOT_FOUND = "FieldValueNotFound"
REQUIRED = "FieldValueRequired"
DUPLICATE = "FieldValueDuplicate"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
TOO_SHORT = "FieldValueTooShort"
TOO_MANY = "FieldValueTooMany"
TOO_FEW = "FieldValueTooFew"
TYPE_INVALID = "FieldValueTypeInvalid"
INTERNAL = "InternalError"

_TEXTS = {
    NOT_FOUND: "Not found",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_SHORT: "Too short",
    TOO_MANY: "Too many",
    TOO_FEW: "Too few",
    TYPE_INVALID: "Invalid value",
    INTERNAL: "Internal error",
}
_WITHOUT_VALUE = frozenset({REQUIRED, FORBIDDEN, TOO_LONG, TOO_SHORT, INTERNAL})
# The path of a nil field.Path, as Go prints it: errors about the object as a whole.
NO_PATH = "<nil>"


class _Omitted:
    """Marks an error whose value is not shown."""

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Any = _Omitted()


class RawText(str):
    """A value whose text is printed as it stands, like a Go value that is no JSON (`0x0`, say)."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field.

    Attributes:
        reason: the cause's reason, e.g. "FieldValueInvalid".
        field: path of the field; "" or NO_PATH for the whole object.
        detail: the explanation after the last colon; may be empty.
        value: the bad value, printed by the rules of Go (`go_value`); OMITTED shows none.
    """

    reason: str
    field: str
    detail: str = ""
    value: Any = OMITTED

    @property
    def message(self) -> str:
        """The text without the path, as in `details.causes[].message`."""
        text = _TEXTS[self.reason]
        if self.reason not in _WITHOUT_VALUE and self.value is not OMITTED:
            text = f"{text}: {go_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def child(path: str, name: str) -> str:
    """The path of a field of the object at `path` ("" is the root)."""
    return f"{path}.{name}" if path else name


def at(path: str, key: object) -> str:
    """The path of an element of a list (by index) or of a map (by key)."""
    return f"{path}[{key}]"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(REQUIRED, field, detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(INVALID, field, detail, value)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(TYPE_INVALID, field, detail, value)


def unsupported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    """The values are listed in the order given: Go callers mostly sort them first."""
    listed = ", ".join(go_quote(v) for v in supported)
    return FieldError(NOT_SUPPORTED, field, f"supported values: {listed}" if supported else "", value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(FORBIDDEN, field, detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(DUPLICATE, field, "", value)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(NOT_FOUND, field, "", value)


def too_long(field: str, limit: int) -> FieldError:
    """Args: limit: in bytes; negative means that the text names none."""
    text = f"may not be more than {limit} byte{'' if limit == 1 else 's'}" if limit >= 0 else "value is too long"
    return FieldError(TOO_LONG, field, text)


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Args: count: shown unless negative. limit: negative means that the text names none."""
    text = f"must have at most {limit} item{'' if limit == 1 else 's'}" if limit >= 0 else "has too many items"
    return FieldError(TOO_MANY, field, text, count if count >= 0 else OMITTED)


def internal(field: str, detail: str) -> FieldError:
    return FieldError(INTERNAL, field, detail)


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as one: `a`, or `[a, b]`; a repeated message is named once."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def invalid_error(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """The 422 that the server sends for these errors; each becomes a cause, repetitions included."""
    qualified = f"{kind}.{group}" if group else kind
    message = f"{qualified} {go_quote(name)} is invalid"
    if errors:
        message = f"{message}: {aggregate(str(e) for e in errors)}"
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    causes = [Cause(e.reason, e.message, e.field) for e in errors]
    return Invalid(message, details=details, causes=causes)


def go_value(value: Any) -> str:
    """A value as `field.Error` prints it: strings quoted, numbers and booleans plain, the rest as JSON."""
    if isinstance(value, RawText):
        return str(value)
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, float):
        return go_float(value)
    return go_json(value)


def go_quote(text: str) -> str:
    """Go's `strconv.Quote`: double quotes, escapes for what does not print."""
    return f'"{"".join(_quoted(c) for c in text)}"'


_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_float(value: float) -> str:
    """Go's `%v` of a float64: the shortest form, with an exponent below 1e-4 and from 1e6 on."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    digits = mantissa.lstrip("-").replace(".", "")
    power = int(exponent or 0) + len(mantissa.lstrip("-").partition(".")[0]) - 1
    leading = len(digits) - len(digits.lstrip("0"))
    power -= leading
    digits = digits.strip("0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    if digits == "0":
        return f"{sign}0"
    if power < -4 or power >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return sign + _plain(digits, power)


def _plain(digits: str, power: int) -> str:
    """Digits with the point after position `power`, without an exponent."""
    if power < 0:
        return f"0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    rest = digits[power + 1 :]
    return f"{whole}.{rest}" if rest else whole


class GoStruct(dict[str, Any]):
    """A Go struct: printed in the order of its fields, unlike a map, whose keys Go sorts."""


def go_json(value: Any) -> str:
    """JSON as Go's encoder writes it: keys sorted, no spaces, `<`, `>` and `&` escaped, whole floats as integers."""
    text = json.dumps(_go_form(value), separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _go_form(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, GoStruct):
        return {k: _go_form(v) for k, v in value.items()}
    if isinstance(value, dict):
        return {str(k): _go_form(value[k]) for k in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_go_form(v) for v in value]
    return value
