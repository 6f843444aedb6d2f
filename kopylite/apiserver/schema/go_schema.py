"""CRD parts as Go prints its internal types: some error messages show them whole. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.schema.field_errors import GoStruct

_STRING, _NULL, _BOOL, _SCHEMA, _SCHEMAS, _SCHEMA_MAP, _SCHEMA_OR_BOOL, _ITEMS, _RULES = range(9)
# Go's field, the JSON name and the form of its value, in the order of the struct.
SCHEMA_FIELDS: tuple[tuple[str, str, int], ...] = (
    ("ID", "id", _STRING), ("Schema", "$schema", _STRING), ("Ref", "$ref", _NULL),
    ("Description", "description", _STRING), ("Type", "type", _STRING), ("Nullable", "nullable", _BOOL),
    ("Format", "format", _STRING), ("Title", "title", _STRING), ("Default", "default", _NULL),
    ("Maximum", "maximum", _NULL), ("ExclusiveMaximum", "exclusiveMaximum", _BOOL), ("Minimum", "minimum", _NULL),
    ("ExclusiveMinimum", "exclusiveMinimum", _BOOL), ("MaxLength", "maxLength", _NULL),
    ("MinLength", "minLength", _NULL), ("Pattern", "pattern", _STRING), ("MaxItems", "maxItems", _NULL),
    ("MinItems", "minItems", _NULL), ("UniqueItems", "uniqueItems", _BOOL), ("MultipleOf", "multipleOf", _NULL),
    ("Enum", "enum", _NULL), ("MaxProperties", "maxProperties", _NULL), ("MinProperties", "minProperties", _NULL),
    ("Required", "required", _NULL), ("Items", "items", _ITEMS), ("AllOf", "allOf", _SCHEMAS),
    ("OneOf", "oneOf", _SCHEMAS), ("AnyOf", "anyOf", _SCHEMAS), ("Not", "not", _SCHEMA),
    ("Properties", "properties", _SCHEMA_MAP), ("AdditionalProperties", "additionalProperties", _SCHEMA_OR_BOOL),
    ("PatternProperties", "patternProperties", _SCHEMA_MAP), ("Dependencies", "dependencies", _NULL),
    ("AdditionalItems", "additionalItems", _SCHEMA_OR_BOOL), ("Definitions", "definitions", _SCHEMA_MAP),
    ("ExternalDocs", "externalDocs", _NULL), ("Example", "example", _NULL),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", _NULL),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", _BOOL),
    ("XIntOrString", "x-kubernetes-int-or-string", _BOOL), ("XListMapKeys", "x-kubernetes-list-map-keys", _NULL),
    ("XListType", "x-kubernetes-list-type", _NULL), ("XMapType", "x-kubernetes-map-type", _NULL),
    ("XValidations", "x-kubernetes-validations", _RULES),
)  # fmt: skip


def go_rule(rule: dict[str, Any]) -> GoStruct:
    """A validation rule as the server prints it in an error."""
    return GoStruct(
        Rule=rule.get("rule") or "",
        Message=rule.get("message") or "",
        MessageExpression=rule.get("messageExpression") or "",
        Reason=rule.get("reason"),
        FieldPath=rule.get("fieldPath") or "",
        OptionalOldSelf=rule.get("optionalOldSelf"),
    )


def go_schema(schema: dict[str, Any] | None) -> GoStruct | None:
    """A schema as the server prints it in an error."""
    if schema is None:
        return None
    return GoStruct({name: _value(schema.get(key), form) for name, key, form in SCHEMA_FIELDS})


def _value(value: Any, form: int) -> Any:
    if form == _STRING:
        return value or ""
    if form == _BOOL:
        return bool(value)
    if value is None or form == _NULL:
        return value
    if form == _SCHEMA:
        return go_schema(value)
    if form == _SCHEMAS:
        return [go_schema(inner) for inner in value]
    if form == _SCHEMA_MAP:
        return {name: go_schema(inner) for name, inner in value.items()}
    if form == _RULES:
        return [go_rule(rule) for rule in value]
    schema = value if isinstance(value, dict) else None
    if form == _ITEMS:
        return GoStruct(Schema=go_schema(schema), JSONSchemas=None)
    return GoStruct(Allows=bool(value) or schema is not None, Schema=go_schema(schema))


def go_version(version: dict[str, Any]) -> GoStruct:
    """An entry of spec.versions as the server prints it in an error."""
    schema = version.get("schema")
    subresources = version.get("subresources")
    columns = version.get("additionalPrinterColumns")
    fields = version.get("selectableFields")
    return GoStruct(
        Name=version.get("name") or "",
        Served=bool(version.get("served")),
        Storage=bool(version.get("storage")),
        Deprecated=bool(version.get("deprecated")),
        DeprecationWarning=version.get("deprecationWarning"),
        Schema=None if schema is None else GoStruct(OpenAPIV3Schema=go_schema(schema.get("openAPIV3Schema"))),
        Subresources=None if subresources is None else _subresources(subresources),
        AdditionalPrinterColumns=None if columns is None else [_column(column) for column in columns],
        SelectableFields=None if fields is None else [GoStruct(JSONPath=f.get("jsonPath") or "") for f in fields],
    )


def _subresources(subresources: dict[str, Any]) -> GoStruct:
    scale = subresources.get("scale")
    shown = None
    if scale is not None:
        shown = GoStruct(
            SpecReplicasPath=scale.get("specReplicasPath") or "",
            StatusReplicasPath=scale.get("statusReplicasPath") or "",
            LabelSelectorPath=scale.get("labelSelectorPath"),
        )
    return GoStruct(Status=subresources.get("status"), Scale=shown)


def _column(column: dict[str, Any]) -> GoStruct:
    return GoStruct(
        Name=column.get("name") or "",
        Type=column.get("type") or "",
        Format=column.get("format") or "",
        Description=column.get("description") or "",
        Priority=column.get("priority") or 0,
        JSONPath=column.get("jsonPath") or "",
    )
