"""What form a body comes in: JSON, YAML or protobuf, repeated keys, and what is no object at all. Pure.

Bodies come from anybody: every text ends in an object or a ValueError, in linear time.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from kopylite.apiserver.request import protobuf
from kopylite.apiserver.request.negotiation import JSON, NAMED, TYPES, YAML
from kopylite.apiserver.request.protobuf import PROTOBUF
from kopylite.apiserver.request.request import HttpRequest
from kopylite.errors import BadRequest, UnsupportedMediaType
from kopylite.objects.yamlread import YamlError, read_document

# Go stops at 10,000, and no object of the API comes near. Here it is what every supported Python reads: the C decoders
# of 3.12 give up below 2,000 whatever the recursion limit is, and at 10,000 those of 3.11 overflow a stack of 4 MB,
# which ends the process. YAML has the same bound.
MAX_DEPTH = 1000
_SHOWN_BYTES = 30
_HEAD = ("apiVersion", "kind")
_JSON_NAMES: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
# An integer with more digits than this is larger than every float64.
_FLOAT_DIGITS = 309
_HUGE = re.compile(rb"[0-9]{309}")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
# An escape: a whole surrogate pair, one without its other half (group 1), or any other.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def decode_body(request: HttpRequest, kind: str, *, custom: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The object in the body, and the paths of fields that it gives twice (of YAML: a text for each).

    Args:
        kind: what should be in it, for messages.
        custom: a custom resource, which has no protobuf form.

    Raises:
        UnsupportedMediaType: it is neither JSON, YAML nor protobuf.
        BadRequest: it does not parse, or is no object.
    """
    media_type = request.headers.get("content-type", JSON).split(";")[0].strip().lower() or JSON
    if media_type == PROTOBUF and not custom:
        return _decode_protobuf(request.body, kind), []
    if media_type not in TYPES:
        text = f"the body of the request was in an unknown format - accepted media types include: {NAMED}"
        raise UnsupportedMediaType(text)
    try:
        if media_type == YAML:
            repeated: list[str] = []
            found = from_yaml(request.body, repeated), repeated
        else:
            found = from_json(request.body)
        _check_head(found[0])
    except ValueError as error:
        text = _go_text(error)
        # What stands for no object of the API is not named.
        raise BadRequest(text) if kind == "DeleteOptions" else unrecognized(kind, text, request.body) from None
    return found


def _check_head(obj: dict[str, Any]) -> None:
    for key in obj:
        if key in _HEAD and not isinstance(obj[key], str | None):
            found = _JSON_NAMES.get(type(obj[key]), "number")
            raise ValueError(f"json: cannot unmarshal {found} into Go struct field .{key} of type string")


def _decode_protobuf(body: bytes, kind: str) -> dict[str, Any]:
    try:
        return protobuf.decode(body)
    except protobuf.MalformedProtobuf as error:
        raise unrecognized(kind, str(error), body) from None


def unrecognized(kind: str, text: str, body: bytes) -> BadRequest:
    """The 400 for a body that is no object of a known kind, with its beginning."""
    start = body[:_SHOWN_BYTES]
    # What looks like JSON is shown as it is, all else in hexadecimal.
    shown = start.decode("utf-8", "replace") if start.lstrip().startswith(b"{") else start.hex()
    if len(body) > _SHOWN_BYTES:
        shown += " ..."
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {text} ({shown or '<empty>'})")


def go_yaml_error(error: YamlError) -> str:
    if error.problem.startswith("json: "):
        return error.problem
    return f"yaml: line {error.go_line}: {error.problem}" if error.go_line else f"yaml: {error.problem}"


def _go_text(error: Exception) -> str:
    """The parse error in the words of Go, for the errors that are met in practice."""
    if isinstance(error, YamlError):
        return go_yaml_error(error)
    problem = str(error)
    if isinstance(error, _NoObject):
        problem = (
            f"json: cannot unmarshal {error} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    return f"couldn't get version/kind; json parse error: {problem}"


def _json_problem(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return "unexpected end of JSON input"
    where = {
        "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
        "Expecting ':' delimiter": "after object key",
        "Expecting ',' delimiter": "after object key:value pair",
        "Extra data": "after top-level value",
    }.get(error.msg, "looking for beginning of value")
    return f"invalid character '{error.doc[error.pos]}' {where}"


class _NoObject(ValueError):
    """Names the JSON type that stands in the place of an object."""


class _Pairs(dict[str, Any]):
    """An object that remembers which of its keys came more than once."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: set[str] = set()
        if len(self) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                (self.repeated if key in seen else seen).add(key)


def parse_json(body: bytes) -> Any:
    """Any JSON value, as Go's decoder takes it: what is no UTF-8 becomes U+FFFD.

    Raises:
        ValueError: it is no JSON, nests too deep, or holds a number that no float64 takes; in Go's words.
    """
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(body)
    if b"\\ud" in body or b"\\uD" in body:
        body = _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], body)
    if not _HUGE.search(body):
        try:
            return msgspec.json.decode(body)
        except ValueError:
            pass  # the slow way has the error, or takes what is no UTF-8
    try:
        return json.loads(
            body.decode("utf-8", "replace"), parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise ValueError(_json_problem(error)) from None


def _check_depth(body: bytes) -> None:
    depth = 0
    for byte in _STRING.sub(b"", body):
        if byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"invalid character '{chr(byte)}' exceeded max depth")
        elif byte in b"]}":
            depth -= 1


def _integer(text: str) -> int:
    if len(text) > _FLOAT_DIGITS:
        raise _no_float(text)
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _no_float(text)
    return number


def _no_float(text: str) -> ValueError:
    return ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")


def _constant(text: str) -> Any:
    raise ValueError(f"invalid character '{text.lstrip('-')[0]}' looking for beginning of value")


def from_json(body: bytes) -> tuple[dict[str, Any], list[str]]:
    """An object and the paths of its duplicate fields. Raises ValueError."""
    fast = parse_json(body)
    if not isinstance(fast, dict):
        raise _NoObject("null" if fast is None else _JSON_NAMES.get(type(fast), "number"))
    # An object with a repeated key has more colons than the decoded one has keys; else there is nothing to find.
    if _keys(fast) >= body.count(b":"):
        return fast, []
    found: list[str] = []
    _collect_repeated(json.loads(body.decode("utf-8", "replace"), object_pairs_hook=_Pairs), "", found)
    return fast, found


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_keys(v) for v in value.values())
    if isinstance(value, list):
        return sum(_keys(v) for v in value)
    return 0


def _collect_repeated(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        for key, inner in value.items():
            where = f"{path}.{key}" if path else key
            if key in value.repeated:
                found.append(where)
            _collect_repeated(inner, where, found)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _collect_repeated(inner, f"{path}[{index}]", found)


def from_yaml(body: bytes, repeated: list[str] | None = None) -> dict[str, Any]:
    """An object; `repeated` is told of keys that come twice. Raises ValueError (YamlError: it is no YAML)."""
    value = read_document(body, repeated=repeated)
    if not isinstance(value, dict):
        raise _NoObject("null" if value is None else _JSON_NAMES.get(type(value), "number"))
    return value


def repeated_keys(body: bytes) -> list[str]:
    """What Go's strict decoder says of the keys that come twice in a YAML text. Raises YamlError."""
    found: list[str] = []
    read_document(body, repeated=found)
    return found
