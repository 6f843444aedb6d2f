"""What form an answer goes out in: Accept headers, JSON, YAML and protobuf. Pure.

As apiserver's endpoints/handlers/negotiation/negotiate.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kopylite.apiserver.request import protobuf
from kopylite.apiserver.request.protobuf import PROTOBUF
from kopylite.apiserver.request.request import HttpRequest, is_true
from kopylite.errors import BadRequest, NotAcceptable
from kopylite.objects.yamlwrite import go_yaml_list, to_go_yaml

JSON, YAML = "application/json", "application/yaml"
# The forms of every resource; built-in kinds, lists of metadata and errors have protobuf too.
TYPES = (JSON, YAML)
# What errors name, whether the resource has all of them or not.
NAMED = f"{JSON}, {YAML}, {PROTOBUF}"
_STREAMS = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
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

    @property
    def stream_type(self) -> str:
        """The content type of a watch."""
        return f"{PROTOBUF};stream=watch" if self.type == PROTOBUF else self.type

    def encode(self, obj: Any) -> bytes:
        if self.type == PROTOBUF:
            return protobuf.encode(obj)
        if self.type == YAML:
            return to_go_yaml(obj)
        return msgspec.json.format(msgspec.json.encode(obj), indent=2) if self.pretty else msgspec.json.encode(obj)

    def encode_list(self, head: dict[str, Any], name: str, items: Iterable[dict[str, Any]]) -> bytes:
        """A document of many items, of which one at a time is in memory.

        Args:
            head: all but the items; what it has in the place of the list stays there if there are none.
            name: of the field with the items.
        """
        if self.type == PROTOBUF:
            return protobuf.encode_list(head, items)
        if self.type == YAML:
            return go_yaml_list(head, name, items)
        parts = [msgspec.Raw(msgspec.json.encode(item)) for item in items]
        return self.encode({**head, name: parts} if parts else head)

    def event(self, kind: str, obj: Any) -> bytes:
        """An event of a watch, with its end."""
        if self.type == PROTOBUF:
            return protobuf.encode_event(kind, obj)
        return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"

    def finish(self, body: bytes) -> bytes:
        """The body, given as compact JSON, in this form."""
        if self.type != JSON:
            return self.encode(msgspec.json.decode(body))
        return msgspec.json.format(body, indent=2) if self.pretty else body


def accept_media(
    request: HttpRequest,
    *,
    watch: bool = False,
    views: bool = True,
    collection: bool = False,
    custom: bool = False,
    binary: bool = True,
) -> Media:
    """The first form in the Accept header that can be served. Raises NotAcceptable.

    Args:
        views: whether Table and PartialObjectMetadata make sense for this answer.
        collection: the path is one that can be watched; for the error's text.
        custom: it is one of a custom resource, which has no protobuf form, though its metadata has.
        binary: whether this answer has a protobuf form, if the resource has.
    """
    pretty = _wants_pretty(request)
    include = request.param("includeObject") or "Metadata"
    header = request.headers.get("accept", "")
    known = custom
    for media_type, parameters in _clauses(header) if header else [("*/*", {})]:
        media_type = JSON if media_type == "*/*" else media_type
        known = known or media_type in (*TYPES, PROTOBUF)
        view = parameters.get("as", "")
        has_protobuf = binary and view != "Table" and not (custom and not view)
        if media_type not in TYPES and not (media_type == PROTOBUF and has_protobuf):
            continue
        if watch and media_type == YAML:
            break
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
        only = _STREAMS if watch and YAML in header else NAMED
        raise NotAcceptable(f"only the following media types are accepted: {only}")
    available = f"{NAMED}, {_STREAMS}" if collection or watch else NAMED
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {available}")


def wanted_form(request: HttpRequest, parameters: Mapping[str, str]) -> str | None:
    """The form that the client wants with these parameters; None if it likes something without them better."""
    for found, given in _clauses(request.headers.get("accept", "")):
        if found in (*TYPES, PROTOBUF) and all(given.get(key) == value for key, value in parameters.items()):
            return found
        if found in (*TYPES, PROTOBUF, "*/*", "application/*") and "as" not in given:
            return None
    return None


def preferred(request: HttpRequest, types: Sequence[str]) -> str | None:
    """The one of these types that the client likes best, the first if it takes any; None if it takes none of them."""
    for found, _ in _clauses(request.headers.get("accept") or "*/*"):
        prefix = found.removesuffix("*") if found.endswith("/*") else None
        for media_type in types:
            if media_type == found or prefix == "*/" or (prefix and media_type.startswith(prefix)):
                return media_type
    return None


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


def _wants_pretty(request: HttpRequest) -> bool:
    if "pretty" in request.query:
        return is_true(request.query["pretty"])
    # Upstream does people at a terminal the same favour.
    return request.agent.startswith(("curl", "Wget", "Mozilla/5.0"))
