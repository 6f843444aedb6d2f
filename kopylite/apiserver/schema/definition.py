"""Which schemas a CRD may have, beyond being structural: the server's checks, in its order and words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.default import copy_json
from kopylite.apiserver.schema.field_errors import FieldError, at, child
from kopylite.apiserver.schema.formats import recognised
from kopylite.apiserver.schema.go_schema import SCHEMA_FIELDS, go_schema
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.objectmeta import MetadataError, coerce_embedded, embedded_errors
from kopylite.apiserver.schema.prune import prune_value
from kopylite.apiserver.schema.ratchet import same_json
from kopylite.apiserver.schema.rule_costs import CostTotal, elements
from kopylite.apiserver.schema.rule_forms import rule_form_errors
from kopylite.apiserver.schema.rules import CelRules, rule_errors
from kopylite.apiserver.schema.structural import Schema, branches, structural_errors
from kopylite.apiserver.schema.validate import Validator

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_TYPE_META = ("metadata", "kind", "apiVersion")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_WITH_STATUS = "at the root of the schema if the status subresource is enabled"
_UNIQUE_ITEMS = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_ATOMIC = "must be atomic as item of a list with x-kubernetes-list-type=set"
_KEY_DEFAULT = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
_KEY_NULLABLE = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"


@dataclass(frozen=True, slots=True)
class _Place:
    """What the surroundings of a schema node forbid.

    Attributes:
        no_defaults: why defaults are forbidden; None: they are not.
        in_meta: inside apiVersion, kind or metadata of an object.
        uncorrelatable: path of the list or map below which oldSelf cannot be used; "" for none.
        rules: CEL rules are checked here (not under allOf and the like).
        times: how often such a value may be in an object; None: nothing bounds it.
    """

    no_defaults: str | None = None
    in_meta: bool = False
    uncorrelatable: str = ""
    rules: bool = True
    times: int | None = 1


def definition_errors(schema: Schema, path: str, *, status: bool, unchanged: bool = False) -> list[FieldError]:
    """All that forbids a root schema.

    Args:
        path: of the schema within the CRD, up to `openAPIV3Schema`.
        status: the status sub-resource is on.
        unchanged: it is stored already, so that its rules may cost what they cost.
    """
    found = list(_root_errors(schema, path, status))
    if any(node.get("$schema") for node in all_schemas(schema)):
        # Upstream reads the whole schema for this, and names neither the place nor the version.
        text = "OpenAPIV3Schema 'schema' is not supported"
        found.append(errors.invalid("spec.validation.openAPIV3Schema", "", text))
    readable = not any(node.get(key) for node in all_schemas(schema) for key in _UNSUPPORTED)
    structural = structural_errors(schema, path) if readable else []
    if readable and not structural:
        structural = list(_default_errors(schema, path, root=True))
    found += structural
    schema_errors: list[FieldError] = []
    cel_errors: list[FieldError] = []
    cost = CostTotal(unchanged=unchanged)
    walk = _Walk(schema_errors, cel_errors, cost)
    _walk(schema, path, _Place(rules=readable and not structural), walk, root=True)
    return [*found, *schema_errors, *cel_errors, *cost.errors(path)]


def format_warnings(schema: Schema) -> list[str]:
    """Formats in a schema that the server ignores, once for each use."""
    return [
        f"unrecognized format {errors.go_quote(node['format'])}"
        for node in all_schemas(schema)
        if node.get("format") and not recognised(node["format"], node.get("type") or "")
    ]


def set_warnings(schema: Schema) -> list[str]:
    """Lists of type set whose elements are no scalars."""
    return [
        f'x-kubernetes-list-type: set for items of type "{node["items"]["type"]}" is not supported by server-side '
        "apply or CEL validation rules"
        for node in all_schemas(schema)
        if node.get("x-kubernetes-list-type") == "set" and (node.get("items") or {}).get("type") in ("object", "array")
    ]


def all_schemas(schema: Schema) -> Iterator[Schema]:
    """A schema and every schema in it."""
    yield schema
    if isinstance(schema.get("items"), dict):
        yield from all_schemas(schema["items"])
    for _, inner in branches(schema):
        yield from all_schemas(inner)
    for inner in (schema.get("properties") or {}).values():
        yield from all_schemas(inner)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from all_schemas(schema["additionalProperties"])


def _root_errors(schema: Schema, path: str, status: bool) -> Iterator[FieldError]:
    if status:
        for name, key, _ in SCHEMA_FIELDS:
            if not schema.get(key):
                continue
            if name == "Type" and schema["type"] != "object":
                text = f'only "object" is allowed as the type {_WITH_STATUS}'
                yield errors.invalid(child(path, "type"), schema["type"], text)
                break
            if name not in _ALLOWED_AT_ROOT.split():
                text = f"only [{_ALLOWED_AT_ROOT}] fields are allowed {_WITH_STATUS}"
                yield errors.invalid(path, go_schema(schema), text)
                break
    if schema.get("nullable"):
        yield errors.forbidden(child(path, "nullable"), "nullable cannot be true at the root")


def _default_errors(schema: Schema, path: str, *, root: bool = False) -> Iterator[FieldError]:
    """Defaults have to be valid values, without unknown fields."""
    value = schema.get("default")
    where = child(path, "default")
    if value is not None and not root:
        node = SchemaNode(schema)
        pruned = copy_json(value)
        prune_value(pruned, node)
        if not same_json(pruned, value):
            yield errors.invalid(where, value, "must not have unknown fields")
        try:
            coerce_embedded(pruned, node, where)
        except MetadataError as error:
            yield errors.invalid(where, value, str(error))
        else:
            found = embedded_errors(value, node, where) or Validator(schema, where).validate(value)
            yield from found or CelRules(schema, root=False).validate(value, value, None, where)
    if isinstance(schema.get("items"), dict):
        yield from _default_errors(schema["items"], child(path, "items"))
    for name, inner in (schema.get("properties") or {}).items():
        yield from _default_errors(inner, at(child(path, "properties"), name))


@dataclass(frozen=True, slots=True)
class _Walk:
    """What is found on the way."""

    schema: list[FieldError]
    cel: list[FieldError]
    cost: CostTotal


def _walk(schema: Schema, path: str, place: _Place, walk: _Walk, root: bool = False) -> int:
    """Check a node and all below it. Returns the number of schema errors found here or deeper."""
    found = walk.schema
    here, place = place, replace(place, times=_times(place.times, elements(schema)))
    before = len(found)
    found.extend(_plain_errors(schema, path, place))
    additional = schema.get("additionalProperties")
    if additional is not None and schema.get("properties") and additional is not True:
        text = "additionalProperties and properties are mutual exclusive"
        found.append(errors.forbidden(child(path, "additionalProperties"), text))
    if isinstance(additional, dict):
        inner = place
        if place.in_meta:
            inner = replace(place, no_defaults="inside additionalProperties applying to object metadata")
        _walk(additional, child(path, "additionalProperties"), inner, walk)
    for name, inner_schema in (schema.get("properties") or {}).items():
        inner = _property_place(schema, name, place, root)
        _walk(inner_schema, at(child(path, "properties"), name), inner, walk)
    for step, inner_schema in branches(schema):
        _walk(inner_schema, child(path, step), replace(place, rules=False), walk)
    if isinstance(schema.get("items"), dict):
        correlatable = schema.get("x-kubernetes-list-type") == "map" or place.uncorrelatable
        inner = place if correlatable else replace(place, uncorrelatable=path)
        _walk(schema["items"], child(path, "items"), inner, walk)
    found.extend(_list_and_map_errors(schema, path))
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        found.extend(rule_form_errors(rule, schema, at(child(path, "x-kubernetes-validations"), index)))
    if len(found) == before and here.rules:
        walk.cel.extend(
            rule_errors(
                schema,
                path,
                root=root,
                uncorrelatable=here.uncorrelatable,
                total=walk.cost,
                times=here.times,
            )
        )
    return len(found) - before


def _times(outer: int | None, inner: int | None) -> int | None:
    return None if outer is None or inner is None else outer * inner


def _property_place(schema: Schema, name: str, place: _Place, root: bool) -> _Place:
    if (root or schema.get("x-kubernetes-embedded-resource")) and name in _TYPE_META:
        return replace(place, in_meta=True, no_defaults=f"in top-level {name}" if root else place.no_defaults)
    return place


def _plain_errors(schema: Schema, path: str, place: _Place) -> Iterator[FieldError]:
    declared = schema.get("type")
    if declared and declared not in _TYPES:
        yield errors.unsupported(child(path, "type"), declared, _TYPES)
    if schema.get("default") is not None and place.no_defaults is not None:
        yield errors.forbidden(child(path, "default"), f"must not be set {place.no_defaults}")
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield errors.forbidden(child(path, key), f"{key} is not supported")
    if declared == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield errors.forbidden(child(path, "type"), text)
    if isinstance(schema.get("items"), list):
        yield errors.forbidden(child(path, "items"), "items must be a schema object and not an array")
    if place.in_meta and schema.get("x-kubernetes-embedded-resource"):
        text = "must not be used inside of resource meta"
        yield errors.forbidden(child(path, "x-kubernetes-embedded-resource"), text)
    if schema.get("uniqueItems"):
        yield errors.forbidden(child(path, "uniqueItems"), _UNIQUE_ITEMS)


def _list_and_map_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    declared = schema.get("type") or ""
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = child(path, "x-kubernetes-preserve-unknown-fields")
        yield errors.invalid(where, False, "must be true or undefined")
    for key, wanted, allowed in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        value = schema.get(key)
        if value is None:
            continue
        if declared != wanted:
            text, where = f"must be {wanted} if {key} is specified", child(path, "type")
            yield errors.invalid(where, declared, text) if declared else errors.required(where, text)
        elif value == "set":
            yield from _set_errors(schema.get("items") or {}, child(path, "items"))
        if value not in allowed:
            yield errors.unsupported(child(path, key), value, allowed)
    yield from _map_list_errors(schema, path)
    yield from _key_errors(schema, path)


def _set_errors(items: Schema, path: str) -> Iterator[FieldError]:
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield errors.invalid(child(path, "x-kubernetes-list-type"), list_type, _ATOMIC)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield errors.invalid(child(path, "x-kubernetes-map-type"), list_type, _ATOMIC)


def _map_list_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    where = child(path, "x-kubernetes-list-type")
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield errors.required(where, text) if list_type is None else errors.invalid(where, list_type, text)
    if list_type != "map":
        return
    where = child(path, "x-kubernetes-list-map-keys")
    if not keys:
        yield errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items")
    if items is None:
        yield errors.required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield errors.invalid(child(child(path, "items"), "type"), items.get("type") or "", text)
        return
    seen = set()
    for key in keys:
        declared = (items.get("properties") or {}).get(key)
        if declared is None:
            yield errors.invalid(where, keys, "entries must all be names of item properties")
        elif declared.get("type") in ("array", "object"):
            inner = child(at(child(child(path, "items"), "properties"), key), "type")
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield errors.invalid(inner, items["type"], text)
        if key in seen:
            yield errors.invalid(where, keys, "must not contain duplicate entries")
        seen.add(key)


def _key_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    if list_type not in ("set", "map") or not isinstance(items, dict):
        return
    if items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield errors.forbidden(child(child(path, "items"), "nullable"), text)
    if list_type != "map":
        return
    for key in schema.get("x-kubernetes-list-map-keys") or ():
        declared = (items.get("properties") or {}).get(key)
        if declared is None:
            continue
        where = at(child(child(path, "items"), "properties"), key)
        if key not in (items.get("required") or ()) and declared.get("default") is None:
            yield errors.required(child(where, "default"), _KEY_DEFAULT)
        if declared.get("nullable"):
            yield errors.forbidden(child(where, "nullable"), _KEY_NULLABLE)
