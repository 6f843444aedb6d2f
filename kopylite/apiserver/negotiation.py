"""What form a body comes in and goes out in: Accept headers, JSON and YAML, duplicate keys. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from kopylite.apiserver import protobuf
from kopylite.apiserver.protobuf import PROTOBUF
from kopylite.apiserver.requests import Request, is_true
from kopylite.errors import ApiError, BadRequest, NotAcceptable, UnsupportedMediaType

JSON, YAML = "application/json", "application/yaml"
# What answers are made in. Bodies may also be protobuf.
_TYPES = (JSON, YAML)
_TABLE_VERSIONS = ("v1", "v1beta1")
_VIEWS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _JsonTimestamps(_Loader):  # type: ignore[misc]
    """YAML 1.1 without its timestamp type: Kubernetes' YAML is JSON in other clothes."""


_JsonTimestamps.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for key, resolvers in _Loader.yaml_implicit_resolvers.items()
}


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
            return to_yaml(obj)
        return msgspec.json.format(msgspec.json.encode(obj), indent=2) if self.pretty else msgspec.json.encode(obj)

    def finish(self, body: bytes) -> bytes:
        """The body, given as compact JSON, in this form."""
        if self.type == YAML:
            return to_yaml(msgspec.json.decode(body))
        return msgspec.json.format(body, indent=2) if self.pretty else body


def accept_media(request: Request, *, watch: bool = False, views: bool = True) -> Media:
    """The first form in the Accept header that can be served. Raises NotAcceptable.

    Args:
        views: whether Table and PartialObjectMetadata make sense for this answer.
    """
    pretty = _wants_pretty(request)
    include = request.param("includeObject") or "Metadata"
    header = request.headers.get("accept", "")
    for clause in _clauses(header) if header else [("*/*", {})]:
        media_type, parameters = clause
        if media_type in ("*/*", "application/*"):
            media_type = JSON
        if media_type not in _TYPES or (watch and media_type != JSON):
            continue
        view = parameters.get("as", "")
        if view:
            version = parameters.get("v", "v1")
            served = view in _VIEWS and version in _TABLE_VERSIONS and parameters.get("g") == "meta.k8s.io"
            if not served or not views:
                continue
            return Media(media_type, view, version, include, pretty and not watch)
        return Media(media_type, pretty=pretty and not watch, include_object=include)
    if watch:
        streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        raise NotAcceptable(f"only the following media types are accepted: {streams}")
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(_TYPES)}", details={})


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
    """The object in the body, and the paths of fields that it gives twice.

    Args:
        kind: what should be in it, for messages.
        custom: a custom resource, which has no protobuf form.

    Raises:
        UnsupportedMediaType: it is neither JSON, YAML nor protobuf.
        BadRequest: it does not parse, or is no object.
    """
    media_type = request.headers.get("content-type", JSON).split(";")[0].strip().lower() or JSON
    if media_type == PROTOBUF and not custom:
        return _decode_protobuf(request.body), []
    if media_type not in _TYPES:
        accepted = f"application/json, application/yaml, {PROTOBUF}"
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise UnsupportedMediaType(text)
    try:
        if media_type == YAML:
            return from_yaml(request.body), []
        return from_json(request.body)
    except (ValueError, yaml.YAMLError) as error:
        shown = request.body[:64].hex() or "<empty>"
        text = f"couldn't get version/kind; json parse error: {_go_text(error, request.body)} ({shown})"
        raise BadRequest(f"the object provided is unrecognized (must be of type {kind}): {text}") from None


def _decode_protobuf(body: bytes) -> dict[str, Any]:
    try:
        return protobuf.decode(body)
    except protobuf.MalformedProtobuf as error:
        raise BadRequest(str(error)) from None


def _go_text(error: Exception, body: bytes) -> str:
    """The parse error in the words of Go, for the errors that are met in practice."""
    if isinstance(error, json.JSONDecodeError):
        if error.pos >= len(error.doc.rstrip()):
            return "unexpected end of JSON input"
        return f"invalid character '{error.doc[error.pos]}' looking for beginning of value"
    if isinstance(error, _NoObject):
        return (
            f"json: cannot unmarshal {error} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    return str(error)


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
        raise _NoObject("array" if isinstance(fast, list) else type(fast).__name__.replace("str", "string"))
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


def from_yaml(body: bytes) -> dict[str, Any]:
    """An object. Raises ValueError or yaml.YAMLError."""
    value = yaml.load(body, Loader=_JsonTimestamps)
    if not isinstance(value, dict):
        raise _NoObject("null" if value is None else type(value).__name__)
    return _json_keys(value)  # type: ignore[no-any-return]


def _json_keys(value: Any) -> Any:
    """YAML allows keys of any type; JSON's are strings, and sigs.k8s.io/yaml converts them so."""
    if isinstance(value, dict):
        return {_key_text(key): _json_keys(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_json_keys(v) for v in value]
    return value


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def to_yaml(obj: Any) -> bytes:
    text: str = yaml.dump(obj, Dumper=_Dumper, default_flow_style=False, sort_keys=True, allow_unicode=True)
    return text.encode()


def status_body(error: ApiError, media: Media) -> bytes:
    return media.encode(error.to_status())
