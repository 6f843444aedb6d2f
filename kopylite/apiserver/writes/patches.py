"""PATCH in its four forms, each turned into a change for the write pipeline.

As apiserver's endpoints/handlers/patch.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kopylite.apiserver.aside import aside
from kopylite.apiserver.patching.apply import apply
from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.apiserver.patching.merge_patch import merge_patch
from kopylite.apiserver.patching.strategic import go_text, strategic_merge
from kopylite.apiserver.request.bodies import from_yaml, go_yaml_error, parse_json, repeated_keys
from kopylite.apiserver.request.options import WriteQuery, write_options
from kopylite.apiserver.schema.field_errors import go_json, invalid, invalid_error
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes import metadata as meta
from kopylite.apiserver.writes.decoding import (
    DecodingFailed,
    canonical,
    check_kind,
    check_namespace_matches,
    decode_problems,
    strict_text,
)
from kopylite.apiserver.writes.writer import (
    PATCH_RETRIES,
    UpdateFunc,
    UpdatePolicy,
    Writer,
    Written,
    check_name,
    conflict,
)
from kopylite.errors import ApiError, BadRequest, UnsupportedMediaType
from kopylite.objects.yamlread import YamlError

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY_PATCH = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

_UNMARSHAL = re.compile(r"cannot unmarshal (\w+) into Go .* of type (\S+)$")
_SCALARS = frozenset({"int32", "int64", "bool", "string", "float64", "uint8"})
_JSON_NAMES: dict[type, str] = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


async def patch(world: World, writer: Writer, call: Call) -> Written:
    """Serve a PATCH request.

    Raises:
        UnsupportedMediaType: no patch type, or one that this kind does not take.
        BadRequest, Invalid, Conflict, NotFound.
    """
    form = checked_form(call)
    options = write_options(call.request, "PatchOptions", apply=form == APPLY_PATCH)
    if form == APPLY_PATCH:
        config = await aside(lambda: applied_config(call), len(call.request.body))
        change = _apply_change(world, call, config, options)
        create = not call.target.subresource
        policy = UpdatePolicy(PATCH_RETRIES, managed=True, create=create, patch=True)
        return await writer.update(call, change, options, policy)
    function = await aside(lambda: patch_function(call, form), len(call.request.body))
    change = _patch_change(call, function, options)
    return await writer.update(call, change, options, UpdatePolicy(PATCH_RETRIES, patch=True))


def checked_form(call: Call) -> str:
    """Which kind of patch it is. Raises UnsupportedMediaType."""
    form = call.request.headers.get("content-type", "").split(";")[0].strip().lower()
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not call.resource.custom:
        accepted.insert(2, STRATEGIC_PATCH)
        if form not in accepted:
            raise UnsupportedMediaType("415: Unsupported Media Type")
    if form not in accepted:
        text = "the body of the request was in an unknown format - accepted media types include: "
        raise UnsupportedMediaType(text + ", ".join(accepted))
    return form


def patch_function(call: Call, form: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The patch in the body as a function from object to object. Raises BadRequest."""
    try:
        body = parse_json(call.request.body)
    except ValueError as error:
        text = f"error decoding patch: {error}" if form == STRATEGIC_PATCH else "invalid JSON patch"
        raise BadRequest(text) from None
    if form == JSON_PATCH:
        return lambda obj: _object(json_patch(obj, body))
    if not isinstance(body, dict):
        found = _JSON_NAMES.get(type(body), "null")
        raise BadRequest(f"error decoding patch: {_no_map(found)}")
    if form == MERGE_PATCH:
        return lambda obj: merge_patch(obj, body)
    schema = call.resource.strategy.schema
    return lambda obj: strategic_merge(obj, body, schema)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRequest("the patched value is no object")
    return value


def _patch_change(call: Call, function: Callable[[dict[str, Any]], dict[str, Any]], options: WriteQuery) -> UpdateFunc:
    def change(live: dict[str, Any] | None) -> dict[str, Any]:
        assert live is not None, "only apply creates"
        patched = function(live)
        _check_patched_kind(call, patched)
        _decode_patched(call, patched, options.field_validation)
        _check_identity(call, patched)
        call.resource.strategy.default(patched)
        return patched

    return change


def _check_patched_kind(call: Call, patched: dict[str, Any]) -> None:
    try:
        check_kind(call.resource, patched)
    except BadRequest:
        kind, version = patched.get("kind"), patched.get("apiVersion")
        text = f"Object 'Kind' is missing in '{go_json(patched)}'"
        if kind:
            text = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise invalid_error("", "", "", [invalid("patch", go_json(patched), text)]) from None


def _unreadable(call: Call, shown: Any, problem: str) -> ApiError:
    """The error of a result that does not decode: upstream lays it on a field called `patch`."""
    if call.request.headers.get("content-type", "").split(";")[0].strip().lower() != STRATEGIC_PATCH:
        return invalid_error("", "", "", [invalid("patch", shown, problem)])
    # A strategic merge is no JSON before it is decoded: another converter fails there, and the patch is shown.
    if found := _UNMARSHAL.search(problem):
        problem = _conversion_problem(found[1].replace("number", "int64"), found[2])
    return invalid_error("", "", "", [invalid("patch", go_text(parse_json(call.request.body)), problem)])


def _conversion_problem(given: str, wanted: str) -> str:
    if wanted == "string" and given == "int64":
        return "cannot convert int64 to string"
    if wanted in _SCALARS:
        return f"unrecognized type: {wanted}"
    if wanted.startswith(("map[", "[]")):
        return f"cannot restore {'map' if wanted[0] == 'm' else 'slice'} from {given}"
    return f"cannot restore struct from: {given}"


def _decode_patched(call: Call, patched: dict[str, Any], field_validation: str) -> None:
    """Prune the result. Raises Invalid."""
    whole = msgspec.json.encode(patched)  # an error shows it as it was before it was pruned
    try:
        problems = decode_problems(call.resource, patched, ())
    except DecodingFailed as error:
        raise _unreadable(call, go_json(parse_json(whole)), str(error)) from None
    if problems and field_validation == "Strict":
        raise invalid_error("", "", "", [invalid("patch", go_json(parse_json(whole)), strict_text(problems))])
    if field_validation == "Warn":
        known = set(problems)
        call.warnings[:] = [*(w for w in call.warnings if w not in known), *problems]


def _check_identity(call: Call, obj: dict[str, Any]) -> None:
    check_name(call, obj)
    check_namespace_matches(call, obj["metadata"])


def applied_config(call: Call) -> dict[str, Any]:
    """The body of a server-side apply. Raises BadRequest."""
    try:
        config = from_yaml(call.request.body)
    except YamlError as error:
        raise BadRequest(f"error encoding patch: {go_yaml_error(error)}") from None
    except ValueError as error:
        raise BadRequest(
            f"error decoding patch: error unmarshaling JSON: while decoding JSON: {_no_map(error)}"
        ) from None
    resource = call.resource
    if (config.get("apiVersion"), config.get("kind")) != (resource.api_version, resource.kind):
        group, _, version = str(config.get("apiVersion") or "").rpartition("/")
        raise BadRequest(f"invalid object type: {group}/{version}, Kind={config.get('kind') or ''}")
    if config.get("metadata") is None:
        config["metadata"] = {}
    metadata = config["metadata"]
    if not isinstance(metadata, dict):
        raise BadRequest("metadata is no object")
    if metadata.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    check_namespace_matches(call, config["metadata"])
    return config


def _no_map(error: object) -> str:
    return f"json: cannot unmarshal {error} into Go value of type map[string]interface {{}}"


def _check_repeated(call: Call, field_validation: str) -> None:
    """Keys that the body gives twice. Raises BadRequest, or warns."""
    repeated = repeated_keys(call.request.body) if field_validation != "Ignore" else []
    if repeated and field_validation == "Strict":
        lines = "".join(f"\n  {text}" for text in repeated)
        converting = f"error converting YAML to JSON: yaml: unmarshal errors:{lines}"
        raise BadRequest(f"error strict decoding patch: {converting}")
    known = set(call.warnings)
    call.warnings.extend(text for text in repeated if text not in known)


def _apply_change(world: World, call: Call, config: dict[str, Any], options: WriteQuery) -> UpdateFunc:
    def change(live: dict[str, Any] | None) -> dict[str, Any]:
        wanted = config["metadata"]
        if live is None and wanted.get("uid"):
            text = f"uid mismatch: the provided object specified uid {wanted['uid']}, and no existing object was found"
            raise conflict(call, text)
        if live is None:
            check_name(call, config)
        merged = apply(
            live,
            config,
            schema=call.resource.strategy.schema,
            manager=options.field_manager,
            api_version=call.resource.api_version,
            subresource=call.target.subresource,
            now=meta.timestamp(world.clock.now()),
            force=bool(options.force),
            reset=call.resource.strategy.reset_fields(call.target.subresource),
            schema_in=call.resource.schema_in,
        )
        if live is not None:
            # The writer looks at it: conflicts about fields go before those about versions.
            version = wanted.get("resourceVersion")
            merged["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"] if version is None else version
        _check_repeated(call, options.field_validation)
        # Upstream looks at the name last: a conflict goes before.
        check_name(call, merged)
        if call.resource.custom:
            # A field that an apply empties is null from here on, and refused unless nullable: upstream does so too.
            meta.decode_metadata(merged)
        else:
            _decode_patched(call, merged, options.field_validation)
        call.resource.strategy.default(merged)
        return canonical(merged)

    return change
