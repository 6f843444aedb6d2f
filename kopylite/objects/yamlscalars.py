"""Plain scalars of YAML as Go's resolver reads them, and numbers as Go passes them on in JSON. Linear in the text."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal
from typing import Any

# The first characters of texts that can be anything but texts; all others need no second look.
_HINTS = frozenset("+-.0123456789yYnNtTfFoO~")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}  # fmt: skip
_BASED = re.compile(r"([+-]?)0(?:[bB]([01]+)|[oO]?([0-7]+)|[xX]([0-9a-fA-F]+))")
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# goyaml's own: "0b" and then a number with a sign.
_SIGNED_BINARY = re.compile(r"0b([+-][01]+)")
# Longer ones are beyond 64 bits, whatever stands in them; Python takes quadratic time to read them.
_MAX_DIGITS = 20
_SAFE_WHOLE = 1e21
_TAG = "tag:yaml.org,2002:"


def plain_value(text: str) -> Any:
    """The value of a scalar without quotes."""
    if text and text[0] not in _HINTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return _number(text)


def tagged_value(tag: str, text: str) -> Any:
    """The value of a scalar with a tag such as `!!int`, quoted or not. Foreign tags make texts.

    Raises:
        ValueError: the text is no such value.
    """
    name = tag.removeprefix(_TAG)
    if name == tag or name not in ("bool", "int", "float", "null", "binary", "timestamp"):
        return text
    if name == "binary":
        try:
            return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode("utf-8", "replace")
        except binascii.Error:
            raise ValueError("!!binary value contains invalid base64 data") from None
    value = plain_value(text)
    fits: dict[str, tuple[type, ...]] = {
        "bool": (bool,), "int": (int,), "float": (float, int), "null": (type(None),), "timestamp": (str,),
    }  # fmt: skip
    if type(value) not in fits[name]:
        raise ValueError(f"cannot decode the value as a !!{name}")
    return value


def _number(text: str) -> Any:
    """The number in a text that begins like one, or the text itself."""
    if text[0] == ".":
        value = float(text) if _FLOAT.fullmatch(text) else math.inf
        return text if math.isinf(value) else value
    if text[0] not in "+-0123456789":
        return text
    bare = text.replace("_", "")
    if match := _BASED.fullmatch(bare):
        sign, binary, octal, hexadecimal = match.groups()
        whole = int(binary or octal or hexadecimal, 2 if binary else 8 if octal else 16)
        whole = -whole if sign == "-" else whole
        if _fits_64_bits(whole, signed=bool(sign)):
            return whole
    elif _DECIMAL.fullmatch(bare) and len(bare) <= _MAX_DIGITS + 1:
        whole = int(bare)
        if _fits_64_bits(whole, signed=bare[0] in "+-"):
            return whole
    if _FLOAT.fullmatch(bare):
        value = float(bare)
        return text if math.isinf(value) else value
    if match := _SIGNED_BINARY.fullmatch(bare):
        whole = int(match[1], 2)
        return whole if _fits_64_bits(whole, signed=True) else text
    return text


def _fits_64_bits(value: int, *, signed: bool) -> bool:
    return -(2**63) <= value < (2**63 if signed else 2**64)


def in_json(value: int | float) -> int | float:
    """A number as it arrives after its way through JSON: Go writes whole floats below 1e21 without a point, and the
    API server reads integers of 64 bits with a sign, and everything else as a float.

    Raises:
        ValueError: JSON has no NaN and no infinity.
    """
    if isinstance(value, int):
        return value if _fits_64_bits(value, signed=True) else float(value)
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise ValueError(f"json: unsupported value: {name}")
    if abs(value) >= _SAFE_WHOLE or not value.is_integer():
        return value
    whole = int(Decimal(repr(value)))  # Go prints the shortest digits and fills up with zeros
    return whole if -(2**63) <= whole < 2**63 else value


def number(text: str) -> int | float:
    """A number of JSON as the API server reads it: integers of 64 bits, else floats; 1.0 is 1.

    Raises:
        ValueError: it is beyond every float.
    """
    if len(text) <= _MAX_DIGITS and _DECIMAL.fullmatch(text):
        return in_json(int(text))
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return in_json(value)


def key_text(value: Any) -> str:
    """The text of a key that is none: numbers and booleans are written out.

    Raises:
        ValueError: null cannot be a key, nor can the largest integers.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and _fits_64_bits(value, signed=True):
        return str(value)
    if isinstance(value, float):
        return _key_of_float(value)
    raise ValueError(f"{'null' if value is None else 'a number of more than 63 bits'} is no key")


def _key_of_float(value: float) -> str:
    """Go writes a float key with the fewest digits that tell it from its neighbours of 32 bits."""
    try:
        small = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        small = math.copysign(math.inf, value)
    if not math.isfinite(small):
        return ".nan" if math.isnan(small) else ".inf" if small > 0 else "-.inf"
    for precision in range(9):
        text = f"{small:.{precision}e}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == small:
            break
    mantissa, exponent = text.split("e")
    if -4 <= int(exponent) < 6:
        return f"{Decimal(text):f}"
    return f"{mantissa}e{int(exponent):+03d}"


def reads_back(text: str) -> bool:
    """Whether a text without quotes is read as this very text."""
    return type(plain_value(text)) is str
