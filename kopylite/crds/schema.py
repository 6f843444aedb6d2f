"""From JSON Schema to the *structural* schemas of CustomResourceDefinitions.

A structural schema says for every field which type it has, in one place: no `$ref`, no unions of types, no tuple
lists. What Python says and such a schema cannot is made looser, never stricter, and a `SchemaWarning` names it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from kopylite.crds.jsonschema import NOTE, PRESERVE_UNKNOWN, json_schema_of
from kopylite.crds.patterns import re2_problem
from kopylite.crds.unions import union
from kopylite.errors import RegistrationError

Schema = dict[str, Any]

# The formats that the API server checks; it would warn about any other.
_FORMATS = frozenset({
    "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
    "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration",
    "datetime", "date-time", "int32", "int64", "float", "double",
})  # fmt: skip
# What is taken over as it is, in the order in which it is printed.
_ORDER = (
    "description", "type", "format", "nullable", "enum", "default",
    "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "minItems", "maxItems", "minProperties", "maxProperties",
    "items", "properties", "required", "additionalProperties", "allOf", "anyOf", "oneOf", "not",
)  # fmt: skip
_COPIED = frozenset(_ORDER) - {"items", "properties", "additionalProperties", "allOf", "anyOf", "oneOf"}


_LOGIC = ("allOf", "anyOf", "oneOf")


class SchemaWarning(UserWarning):
    """The API server will not accept just what the Python type does; mostly it accepts more."""


def schema_of(cls: type[BaseModel]) -> Schema:
    """The structural schema of a model.

    Raises:
        RegistrationError: a pattern or type that no schema can express.
    """
    document = json_schema_of(cls)
    builder = SchemaBuilder(cls.__name__, document.pop("$defs", {}))
    return builder.build(document)


class SchemaBuilder:
    """Builds the structural schemas of one JSON Schema document.

    Args:
        title: of the document, for messages.
        definitions: what its `$ref`s name.
    """

    def __init__(self, title: str, definitions: Mapping[str, Any]) -> None:
        self._title = title
        self._definitions = definitions
        self._open: list[str] = []  # the definitions that are being built: one that comes up again is recursive

    def build(self, node: Any, path: str = "") -> Schema:
        """The structural schema of a node of the document; `path` is for messages."""
        if not isinstance(node, Mapping):
            node = {}
        if "$ref" in node:
            return self._build_reference(node, path)
        for word in ("anyOf", "oneOf"):
            if word in node and any("type" in v or "$ref" in v or "enum" in v or "const" in v for v in node[word]):
                return self._build_union(node, word, path)
        if isinstance(node.get("type"), list):
            variants = [{**node, "type": name} for name in node["type"]]
            return self._build_union({"anyOf": variants}, "anyOf", path)
        if len(node.get("allOf", ())) == 1:
            rest = {key: value for key, value in node.items() if key != "allOf"}
            return self.build({**node["allOf"][0], **rest}, path)
        return self._build_plain(node, path)

    def warn(self, path: str, text: str) -> None:
        warnings.warn(f"{self._title}{path}: {text}", SchemaWarning, stacklevel=2)

    def _build_reference(self, node: Mapping[str, Any], path: str) -> Schema:
        name = node["$ref"].rpartition("/")[2]
        target = self._definitions[name]
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        if name in self._open:
            self.warn(path, f"{name} contains itself; the server does not check what is inside")
            recursive = {"type": target.get("type", "object"), PRESERVE_UNKNOWN: True}
            return self._finish(
                siblings,
                {**recursive, "items": {PRESERVE_UNKNOWN: True}} if recursive["type"] == "array" else recursive,
            )
        self._open.append(name)
        try:
            return self.build({**target, **siblings}, path)
        finally:
            self._open.pop()

    def _build_union(self, node: Mapping[str, Any], word: str, path: str) -> Schema:
        variants = list(self._flatten(node[word]))
        concrete = [variant for variant in variants if variant.get("type") != "null"]
        if not concrete:
            return self._finish(node, {"nullable": True, PRESERVE_UNKNOWN: True})
        built = [self.build(variant, path) for variant in concrete]
        tag = (node.get("discriminator") or {}).get("propertyName")
        schema, problem = union(built, tag)
        if problem:
            self.warn(path, problem)
        if len(concrete) < len(variants):
            schema = {**schema, "nullable": True}
        return self._finish({key: value for key, value in node.items() if key != word}, schema)

    def _flatten(self, variants: list[Any]) -> Any:
        for variant in variants:
            inner = variant
            if set(variant) == {"$ref"}:
                inner = self._definitions[variant["$ref"].rpartition("/")[2]]
            if "anyOf" in inner and "discriminator" not in inner and "type" not in inner:
                yield from self._flatten(inner["anyOf"])
            else:
                yield variant

    def _build_plain(self, node: Mapping[str, Any], path: str) -> Schema:
        schema: Schema = {key: value for key, value in node.items() if key in _COPIED}
        schema |= {word: node[word] for word in _LOGIC if word in node}
        if "const" in node:
            schema["enum"] = [node["const"]]
        if "enum" in schema:
            schema = self._typed_enum(schema, path)
        kind = schema.get("type")
        if kind == "null":
            schema = {"nullable": True, PRESERVE_UNKNOWN: True}
        elif kind == "object":
            self._add_properties(schema, node, path)
        elif kind == "array":
            self._add_items(schema, node, path)
        elif kind is None and not any("x-kubernetes-int-or-string" in part for part in (node, schema)):
            schema |= {PRESERVE_UNKNOWN: True} if "enum" in schema else {PRESERVE_UNKNOWN: True, "nullable": True}
        self._check_values(schema, path)
        if NOTE in node:
            self.warn(path, node[NOTE])
        return self._finish(node, schema)

    def _typed_enum(self, schema: Schema, path: str) -> Schema:
        values = schema["enum"]
        kinds = {_type_name(value) for value in values}
        if None in kinds:
            schema |= {"nullable": True, "enum": [value for value in values if value is not None]}
            kinds.discard(None)
        if "type" not in schema and kinds:
            if len(kinds) == 1:
                schema["type"] = kinds.pop()
            elif kinds == {"integer", "string"}:
                schema["x-kubernetes-int-or-string"] = True
            else:
                schema[PRESERVE_UNKNOWN] = True
        return schema

    def _add_properties(self, schema: Schema, node: Mapping[str, Any], path: str) -> None:
        properties = node.get("properties")
        values = node.get("additionalProperties")
        patterns = node.get("patternProperties")
        if properties:
            schema["properties"] = {
                name: _property(inner, self.build(inner, f"{path}.{name}")) for name, inner in properties.items()
            }
            return
        if patterns or "propertyNames" in node:
            self.warn(path, "the server does not check the keys")
        if patterns:
            values = next(iter(patterns.values())) if len(patterns) == 1 else {}
        if isinstance(values, Mapping) and values:
            schema["additionalProperties"] = _null_or_enum(self.build(values, f"{path}[*]"))
        elif (
            values is not False and not node.get(PRESERVE_UNKNOWN) and (values is not None or "properties" not in node)
        ):
            schema[PRESERVE_UNKNOWN] = True
        elif not node.get(PRESERVE_UNKNOWN):
            # A class without fields, and pydantic keeps what it does not know: only the server would drop it.
            self.warn(
                path,
                "the model has no fields, so the server drops whatever is written into it; declare its fields, or "
                'keep what is unknown with model_config = ConfigDict(extra="allow")',
            )

    def _add_items(self, schema: Schema, node: Mapping[str, Any], path: str) -> None:
        prefix = node.get("prefixItems")
        items = node.get("items", {})
        if prefix:
            built = [self.build(item, f"{path}[{index}]") for index, item in enumerate(prefix)]
            schema["items"], problem = union(built, None)
            if any(item != built[0] for item in built):
                self.warn(path, problem or "the server does not check which item of the tuple is where")
        else:
            schema["items"] = _null_or_enum(self.build(items, f"{path}[]"))
        marked = node.get("x-kubernetes-list-type") == "set"
        if marked or node.get("uniqueItems"):
            self._make_set(schema, path, marked=marked)

    def _make_set(self, schema: Schema, path: str, *, marked: bool) -> None:
        items = schema["items"]
        if items.get("nullable"):
            if marked:
                raise RegistrationError(
                    f"{self._title}{path}: the items of a list_set may not be null, as those of a list[Any] or a "
                    "list[T | None] are; give them one type, or leave list_set out"
                )
            self.warn(path, "the server does not check that items are different, since they may be null")
            return
        schema.setdefault("x-kubernetes-list-type", "set")
        if items.get("type") == "object":
            items.setdefault("x-kubernetes-map-type", "atomic")
        elif items.get("type") == "array":
            items.setdefault("x-kubernetes-list-type", "atomic")

    def _check_values(self, schema: Schema, path: str) -> None:
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if bound in schema and not isinstance(schema[bound], bool):
                value = schema.pop(bound)
                schema |= {limit: value, bound: True}
        if schema.get("format") not in _FORMATS:
            schema.pop("format", None)
        problem = re2_problem(schema["pattern"]) if "pattern" in schema else None
        if problem:
            raise RegistrationError(
                f"{self._title}{path}: the pattern {schema['pattern']!r} uses {problem}, "
                "which the API server's regular expressions (RE2) do not have"
            )

    def _finish(self, node: Mapping[str, Any], schema: Schema) -> Schema:
        """Add what the node says beside its type, and bring the keys into order."""
        schema = dict(schema)
        if node.get("description"):
            schema["description"] = node["description"]
        if node.get("deprecated") and not schema.get("description", "").startswith("Deprecated"):
            schema["description"] = f"Deprecated: {schema.get('description') or 'do not use.'}"
        default = node.get("default", schema.get("default"))
        schema.pop("default", None)
        schema |= {key: value for key, value in node.items() if key.startswith("x-kubernetes-")}
        # An empty list or map and an absent one mean the same, and the server need not write it down: unless it is an
        # object in which it fills in defaults.
        if default not in (None, [], {}) or (default == {} and _fills(schema)):
            schema["default"] = default
        if schema.get("x-kubernetes-int-or-string"):
            for key in ("type", "format", "anyOf"):
                schema.pop(key, None)
        ordered = {key: schema[key] for key in _ORDER if key in schema}
        return ordered | {key: schema[key] for key in sorted(schema) if key not in ordered}


_JUDGED = {"x-kubernetes-validations", "anyOf", "oneOf", "allOf", "not", "minProperties", "required"}


def _fills(schema: Schema) -> bool:
    """Whether the server fills an empty object of this schema. It judges a default before it does, so not by rules."""
    return not _JUDGED & schema.keys() and any("default" in part for part in schema.get("properties", {}).values())


def _property(node: Any, schema: Schema) -> Schema:
    """The schema of a field. Where null is only another word for absent, it is not declared: the server drops
    such nulls, which are no values then."""
    if isinstance(node, Mapping) and "default" in node and node["default"] is None:
        return {key: value for key, value in schema.items() if key != "nullable"}
    return _null_or_enum(schema)


def _null_or_enum(schema: Schema) -> Schema:
    """Null passes no `enum` of a CRD, not even one that lists it, but it passes conditions on texts and numbers."""
    if not schema.get("nullable") or "enum" not in schema:
        return schema
    texts = [re.escape(value) for value in schema["enum"] if isinstance(value, str)]
    numbers = [value for value in schema["enum"] if isinstance(value, (int, float)) and not isinstance(value, bool)]
    rest = {key: value for key, value in schema.items() if key != "enum"}
    if texts:
        rest["pattern"] = f"^({'|'.join(texts)})$"
    if numbers:
        rest["anyOf"] = [{"minimum": value, "maximum": value} for value in numbers]
    return rest


def _type_name(value: Any) -> str | None:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value))
