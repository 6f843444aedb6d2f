"""From a request body to an object that the write pipeline takes: kind, metadata, schema, fieldValidation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from kopylite.apiserver.builtin.data import documents, kinds_of
from kopylite.apiserver.builtin.scalars import Reading, Undecodable
from kopylite.apiserver.builtin.strategies import CODECS
from kopylite.apiserver.reads.views import go_package
from kopylite.apiserver.request.bodies import decode_body, parse_json, unrecognized
from kopylite.apiserver.request.negotiation import YAML
from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.field_errors import invalid, invalid_error
from kopylite.apiserver.schema.objectmeta import MetadataError
from kopylite.apiserver.world import Call
from kopylite.apiserver.writes.metadata import decode_metadata
from kopylite.errors import ApiError, BadRequest

_HEAD = ("apiVersion", "kind", "metadata")
# Upstream cuts the list of decoding problems there.
_MAX_STRICT_ERRORS = 10


def check_kind(resource: Resource, obj: dict[str, Any]) -> None:
    """The body's apiVersion and kind must be the endpoint's. Built-ins may leave them out.

    Raises:
        BadRequest: another kind, or none for a custom resource.
        Invalid: another kind for a custom resource.
    """
    if resource.custom and not obj.get("kind"):
        body = msgspec.json.encode(obj)
        raise unrecognized(resource.kind, f"Object 'Kind' is missing in '{body.decode()}'", body)
    api_version = obj.get("apiVersion") or ("" if resource.custom else resource.api_version)
    kind = obj.get("kind") or resource.kind
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise BadRequest(f"the object provided is unrecognized (must be of type {resource.kind})")
    if (api_version, kind) != (resource.api_version, resource.kind):
        if resource.custom:
            raise _custom_kind_error(resource, obj)
        raise _other_kind(api_version, kind, resource.kind, go_package(resource))
    obj["apiVersion"], obj["kind"] = api_version, kind


def _custom_kind_error(resource: Resource, obj: dict[str, Any]) -> ApiError:
    errors = []
    if obj["kind"] != resource.kind:
        errors.append(invalid("kind", obj["kind"], f"must be {resource.kind}"))
    if obj.get("apiVersion", "") != resource.api_version:
        errors.append(invalid("apiVersion", obj.get("apiVersion", ""), f"must be {resource.api_version}"))
    metadata = obj.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    return invalid_error(obj["kind"], resource.group, name, errors)


def decode_object(call: Call, obj: dict[str, Any], duplicates: Sequence[str], field_validation: str) -> dict[str, Any]:
    """Check, prune and default a body in place; returns it in canonical order of its fields.

    Raises:
        BadRequest: wrong kind, wrong types, or (Strict) unknown or duplicate fields.
    """
    resource = call.resource
    found = obj.get("apiVersion")
    if resource.custom and obj.get("kind") and isinstance(found, str) and found != resource.api_version:
        expected = f"expected API version ({resource.api_version})"
        raise BadRequest(f"the API version in the data ({found}) does not match the {expected}")
    check_kind(resource, obj)
    lines = duplicates if call.request.headers.get("content-type", "").startswith(YAML) else ()
    try:
        problems = decode_problems(resource, obj, () if lines else duplicates, order=call.request.body)
    except DecodingFailed as error:
        raise BadRequest(handled_as(resource, str(error))) from None
    if (lines or problems) and field_validation == "Strict":
        unmarshal = ["\n  ".join(("yaml: unmarshal errors:", *lines))] if lines else []
        raise BadRequest(handled_as(resource, strict_text([*unmarshal, *problems])))
    if field_validation == "Warn":
        call.warnings.extend([*lines, *problems])
    resource.strategy.default(obj)
    return canonical(obj)


def read_typed(request: HttpRequest, name: str, api_version: str) -> dict[str, Any]:
    """The body as one of the built-in types that are no stored objects, without what is unknown.

    Args:
        name: of its schema, such as io.k8s.api.policy.v1.Eviction.
        api_version: what it may say of itself; "": whatever it wants.

    Raises:
        UnsupportedMediaType: it is in no form that is known.
        BadRequest: it does not parse, is of another kind, or a value cannot be read as its type.
    """
    package, _, kind = name.rsplit(".", 2)
    obj = decode_body(request, kind)[0]
    # To Go a slash alone is no version.
    given = (obj.get("apiVersion") or "").strip("/") or api_version, obj.get("kind") or kind
    # Evictions have a version that is served no longer, and still understood.
    if api_version and given not in ((api_version, kind), ("policy/v1beta1", "Eviction")):
        raise _other_kind(*given, kind, package.rpartition(".")[2])
    return typed(obj, name)


def _other_kind(api_version: str, given: str, wanted: str, package: str) -> BadRequest:
    """`package`: where Go keeps the kind that was wanted."""
    version = api_version.rpartition("/")[2]
    known = api_version in documents() and given in kinds_of(api_version)
    reason = f"converting ({version}.{given}) to ({package}.{wanted}): unknown conversion"
    if given == wanted or not known:
        reason = f'no kind "{given}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    return BadRequest(f'{given} in version "{version}" cannot be handled as a {wanted}: {reason}')


def typed(obj: dict[str, Any], name: str) -> dict[str, Any]:
    """An object read as a built-in type, in place. Raises BadRequest."""
    version, kind = name.split(".")[-2:]
    try:
        if isinstance(obj.get("metadata"), dict):
            decode_metadata(obj)
        return CODECS[name].decode(obj, "", Reading())
    except (MetadataError, Undecodable) as error:
        text = str(error).replace(" ObjectMeta.", " ObjectMeta.metadata.")
        if kind == "DeleteOptions":
            raise BadRequest(text) from None
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {text}') from None


def read_delete_options(request: HttpRequest) -> dict[str, Any] | None:
    """The DeleteOptions in the body; None if there is none. Raises as `read_typed`."""
    return read_typed(request, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "") if request.body else None


class DecodingFailed(Exception):
    """The object cannot be read as its kind; the text is that of Go's decoder."""


def decode_problems(
    resource: Resource, obj: dict[str, Any], duplicates: Sequence[str], *, order: bytes = b""
) -> list[str]:
    """Prune in place. Returns what a strict decoder would object to. Raises DecodingFailed.

    Args:
        order: the JSON that `obj` came from: several problems are told in its order.
    """
    try:
        unknown = dict.fromkeys([*decode_metadata(obj), *resource.strategy.decode(obj)])
    except MetadataError as error:
        # Built-ins are decoded as a whole, so that the path leads through the object.
        text = str(error) if resource.custom else str(error).replace(" ObjectMeta.", " ObjectMeta.metadata.")
        raise DecodingFailed(text) from None
    except BadRequest as error:
        raise DecodingFailed(error.message.removeprefix(handled_as(resource, ""))) from None
    problems = {path: f'unknown field "{path}"' for path in unknown}
    problems.update((path, f'duplicate field "{path}"') for path in duplicates)
    if len(problems) > 1 and order:
        return [problems[path] for path in _in_order(order, problems)]
    return list(problems.values())


def _in_order(body: bytes, paths: Collection[str]) -> list[str]:
    """The paths as they come in the body; those that are not in it (it may be YAML) last."""
    found: dict[str, None] = {}
    try:
        _walk(parse_json(body), "", paths, found)
    except ValueError:
        return list(paths)
    return list(found | dict.fromkeys(paths))


def _walk(value: Any, path: str, paths: Collection[str], found: dict[str, None]) -> None:
    if path in paths:
        found[path] = None
    if isinstance(value, dict):
        for key, inner in value.items():
            _walk(inner, f"{path}.{key}" if path else key, paths, found)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _walk(inner, f"{path}[{index}]", paths, found)


def strict_text(problems: Sequence[str]) -> str:
    return f"strict decoding error: {', '.join(problems[:_MAX_STRICT_ERRORS])}"


def handled_as(resource: Resource, text: str) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {text}'


def canonical(obj: dict[str, Any]) -> dict[str, Any]:
    """The same object with apiVersion, kind and metadata in front: list items of built-ins drop the first two."""
    ordered = {key: obj[key] for key in _HEAD if key in obj}
    ordered.update((key, value) for key, value in obj.items() if key not in _HEAD)
    return ordered


def check_namespace_matches(call: Call, metadata: dict[str, Any]) -> None:
    """An object of no namespace loses one that it was sent with. Raises BadRequest."""
    if not call.resource.namespaced:
        metadata.pop("namespace", None)
    elif metadata.get("namespace") and metadata["namespace"] != call.target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
