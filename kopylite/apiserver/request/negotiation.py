"""What form a body comes in and goes out in: Accept headers, JSON and YAML, duplicate keys. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from kopylite.apiserver.request import protobuf
from kopylite.apiserver.request.protobuf import PROTOBUF
from kopylite.apiserver.request.request import Request, is_true
from kopylite.errors import BadRequest, NotAcceptable, UnsupportedMediaType
from kopylite.objects.yamlread import YamlError, read_document
from kopylite.objects.yamlwrite import to_go_yaml

JSON, YAML = "application/json", "application/yaml"
# What answers are made in. Bodies may also be protobuf.
_TYPES = (JSON, YAML)
# What errors name. It is the real server's list, though answers here are never protobuf.
_NAMED = f"{JSON}, {YAML}, {PROTOBUF}"
_STREAMS = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
_SHOWN_BYTES = 30
_TABLE_VERSIONS = ("v1", "v1beta1")
_INCLUDED = ("Metadata", "Object", "None")
_VIEWS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Media:
    """The form of an answer. `view`: "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"."""

    type: str = JSON
    view: str = ""
    view_version: str = "v1"
    include_object: str = "Metadata"
    pretty: bool = False
    parameters: tuple[tuple[str, str], ...] = ()

    def encode(self, obj: Any) -> bytes:
        if self.type == YAML:
            return to_go_yaml(obj)
        return msgspec.json.format(msgspec.json.encode(obj), indent=2) if self.pretty else msgspec.json.encode(obj)

    def finish(self, body: bytes) -> bytes:
        """The body, given as compact JSON, in this form."""
        if self.type == YAML:
            return to_go_yaml(msgspec.json.decode(body))
        return msgspec.json.format(body, indent=2) if self.pretty else body


def accept_media(
    request: Request, *, watch: bool = False, views: bool = True, collection: bool = False, custom: bool = False
) -> Media:
    """The first form in the Accept header that can be served. Raises NotAcceptable.

    Args:
        views: whether Table and PartialObjectMetadata make sense for this answer.
        collection, custom: the path is one that can be watched, or one of a custom resource; for the error's text.
    """
    pretty = _wants_pretty(request)
    include = request.param("includeObject") or "Metadata"
    header = request.headers.get("accept", "")
    known = custom
    for media_type, parameters in _clauses(header) if header else [("*/*", {})]:
        media_type = JSON if media_type == "*/*" else media_type
        known = known or media_type in (*_TYPES, PROTOBUF)
        if media_type not in _TYPES:
            continue
        if watch and media_type != JSON:
            break
        view = parameters.get("as", "")
        if view:
            version = parameters.get("v", "v1")
            served = view in _VIEWS and version in _TABLE_VERSIONS and parameters.get("g") == "meta.k8s.io"
            if not served or not views:
                continue
            if view == "Table" and include not in _INCLUDED:
                allowed = "must be 'Metadata', 'Object', 'None', or empty"
                text = f'includeObject: Invalid value: "{include}": {allowed}'
                raise BadRequest(f"Unable to convert to Table as requested: {text}")
            return Media(media_type, view, version, include, pretty and not watch)
        return Media(media_type, pretty=pretty and not watch, include_object=include)
    if known:
        only = _STREAMS if watch and YAML in header else _NAMED
        raise NotAcceptable(f"only the following media types are accepted: {only}")
    available = f"{_NAMED}, {_STREAMS}" if collection or watch else _NAMED
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {available}")


def wants(request: Request, media_type: str, **parameters: str) -> bool:
    """Whether the client's first acceptable choice is this type with these parameters."""
    for found, given in _clauses(request.headers.get("accept", "")):
        if found == media_type and all(given.get(k) == v for k, v in parameters.items()):
            return True
        if found in (JSON, "*/*") and "as" not in given:
            return False
    return False


def _clauses(header: str) -> list[tuple[str, dict[str, str]]]:
    """Media types with parameters, by descending q, else in the order given."""
    clauses = []
    for clause in header.split(","):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        clauses.append((media_type.lower(), parameters))
    return sorted(clauses, key=lambda c: -_quality(c[1].get("q", "1")))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _wants_pretty(request: Request) -> bool:
    if "pretty" in request.query:
        return is_true(request.query["pretty"])
    # Upstream does people at a terminal the same favour.
    return request.agent.startswith(("curl", "Wget", "Mozilla/5.0"))


def decode_body(request: Request, kind: str, *, custom: bool = False) -> tuple[dict[str, Any], list[str]]:
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
    if media_type not in _TYPES:
        text = f"the body of the request was in an unknown format - accepted media types include: {_NAMED}"
        raise UnsupportedMediaType(text)
    try:
        if media_type == YAML:
            repeated: list[str] = []
            return from_yaml(request.body, repeated), repeated
        return from_json(request.body)
    except ValueError as error:
        text = _go_text(error)
        # What stands for no object of the API is not named.
        raise BadRequest(text) if kind == "DeleteOptions" else unrecognized(kind, text, request.body) from None


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
    if isinstance(error, json.JSONDecodeError):
        problem = _json_problem(error)
    elif isinstance(error, _NoObject):
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


_JSON_NAMES: dict[type, str] = {list: "array", str: "string", bool: "bool"}


class _NoObject(ValueError):
    """Names the JSON type that stands in the place of an object."""


class _Pairs(dict[str, Any]):
    """An object that remembers which of its keys came more than once."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: list[str] = []
        if len(self) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen and key not in self.repeated:
                    self.repeated.append(key)
                seen.add(key)


def from_json(body: bytes) -> tuple[dict[str, Any], list[str]]:
    """An object and the paths of its duplicate fields. Raises ValueError."""
    try:
        fast = msgspec.json.decode(body)
    except ValueError:
        fast = json.loads(body)  # for its error, or what only it accepts (NaN)
    if not isinstance(fast, dict):
        raise _NoObject("null" if fast is None else _JSON_NAMES.get(type(fast), "number"))
    # An object with a repeated key has more colons than the decoded one has keys; else there is nothing to find.
    if _keys(fast) >= body.count(b":"):
        return fast, []
    found: list[str] = []
    _collect_repeated(json.loads(body, object_pairs_hook=_Pairs), "", found)
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
