"""From a CustomResourceDefinition to Python source: pydantic models for somebody else's kind.

The source is a starting point to keep in your repository. Generating a CRD from it again gives one that accepts
every object that the original accepts; what pydantic has no word for stays with the field as a mark, so that the
new CRD has it too.
"""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Mapping, Sequence
from typing import Any

from kopylite.codegen.annotations import FieldType, field_type, optional
from kopylite.codegen.crdinput import CrdInput, CrdVersion, read_crd
from kopylite.codegen.names import class_name, kind_class_name, python_name, singular
from kopylite.codegen.text import WIDTH, docstring, literal, long_text, quoted
from kopylite.crds.jsonschema import PRESERVE_UNKNOWN
from kopylite.errors import UsageError
from kopylite.objects.resource import CustomResource, plural_of

Schema = Mapping[str, Any]

# Where an imported name may come from, in the order of the imports.
_IMPORTS: list[dict[str, tuple[str, ...]]] = [
    {"datetime": ("date", "datetime"), "typing": ("Annotated", "Any", "Literal")},
    {
        "kopylite.objects": (
            "ApiModel", "CustomResource", "Int32", "IntOrString", "Mark", "PrinterColumn", "Quantity", "Rule",
            "Scale", "embedded_resource", "list_atomic", "list_map", "list_set",
        ),
        "pydantic": ("ConfigDict", "Field"),
    },
]  # fmt: skip
# What a schema says of the object as a whole, beside its fields.
_OBJECT_KEYS = (
    "x-kubernetes-map-type", "x-kubernetes-validations", "x-kubernetes-embedded-resource",
    "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not",
)  # fmt: skip
# What a schema says of the field that has it, and not of the object.
_OF_THE_FIELD = frozenset({"description", "default", "nullable"})
# Fields of every kind, that its class does not declare as others.
_OWN_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
# What an object has beside its fields, such as `labels`.
_OWN_NAMES = frozenset(dir(CustomResource))
_APPROVAL = "api-approved.kubernetes.io"


def models_of(
    crds: Mapping[str, Any] | Sequence[Mapping[str, Any]], version: str | None = None, *, descriptions: bool = True
) -> str:
    """The source of one module with the classes of a CRD, or of several.

    Nothing but classes, fields and literals comes out, whatever the CRDs hold.

    Args:
        crds: a CustomResourceDefinition (apiextensions.k8s.io/v1) as a dict, or a list of some.
        version: which of their versions; None: the one that is stored.
        descriptions: take the descriptions over as docstrings and field descriptions.

    Raises:
        UsageError: one is no CRD, has names that no API server would accept, is nested too deep, or has no such
            version or no schema.
    """
    found = [read_crd(crd) for crd in ([crds] if isinstance(crds, Mapping) else crds)]
    chosen = [(crd, _chosen(crd, version)) for crd in found]
    return _Module([crd.kind for crd in found], descriptions=descriptions).render(chosen)


def _chosen(crd: CrdInput, version: str | None) -> CrdVersion:
    name = version or next((entry.name for entry in crd.versions.values() if entry.storage), "")
    if name not in crd.versions:
        wanted = f"version {name}" if name else "version that is stored"
        raise UsageError(f"{crd.name} has no {wanted}; it has {', '.join(crd.versions)}")
    if not crd.versions[name].schema:
        raise UsageError(f"{crd.name} has no schema for {name}")
    return crd.versions[name]


class _Module:
    """The source of one module. Inner classes come first; equal schemas share a class.

    Args:
        kinds: their classes get these names where they can.
    """

    def __init__(self, kinds: Sequence[str], *, descriptions: bool) -> None:
        self._descriptions = descriptions
        self._classes: list[str] = []
        # Class name → its schema, as JSON, without what belongs to the field. Names that are imported, and those of
        # the kinds, are taken by nobody's schema.
        self._taken: dict[str, str] = {name: "" for modules in _IMPORTS for names in modules.values() for name in names}
        self._counts: dict[str, int] = {}
        self._numbers: dict[tuple[str, str], str] = {}
        self._kinds = [self._reserve(kind_class_name(kind)) for kind in kinds]

    def render(self, crds: Sequence[tuple[CrdInput, CrdVersion]]) -> str:
        for name, (crd, version) in zip(self._kinds, crds, strict=True):
            self._add_kind(name, crd, version)
        text = "\n\n\n".join(self._classes)
        titles = [f"{crd.kind} of {crd.group}/{version.name}" for crd, version in crds]
        origin = "its CustomResourceDefinition" if len(titles) == 1 else "their CustomResourceDefinitions"
        title = f"{titles[0]}, from {origin}." if len(titles) == 1 else "\n".join([f"From {origin}:", "", *titles])
        head = "\n".join(line.removeprefix("    ") for line in docstring(title))
        return f"{head}\n\nfrom __future__ import annotations\n\n{_imports(text)}\n\n\n{text}\n"

    def _add_kind(self, name: str, crd: CrdInput, version: CrdVersion) -> None:
        schema = version.schema
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        arguments = [self._part(name, part, properties.get(part), part in required) for part in ("spec", "status")]
        others = {key: part for key, part in properties.items() if key not in _OWN_FIELDS}
        fields = self._fields(others, required, (name,), _OWN_NAMES)
        head = [f"class {name}(", f"    CustomResource[{', '.join(arguments)}],"]
        head += [f"    {key}={value}," for key, value in _keywords(name, crd, version).items()]
        own = {key: value for key, value in schema.items() if key in ("description", PRESERVE_UNKNOWN)}
        self._classes.append("\n".join([*head, "):", *self._body(own, fields)]))

    def _part(self, kind: str, name: str, schema: Schema | None, required: bool) -> str:
        """The type argument for spec or status."""
        if schema is None:
            return "None"
        found = field_type(schema, lambda inner: self._add_class(inner, (kind, name)))
        complete = schema.get("type") == "object" and not schema.get("required")
        return str(found) if complete or (required and name == "spec") else optional(found)

    def _add_class(self, schema: Schema, path: tuple[str, ...]) -> str:
        """The name of the class for an object schema; the class is written if it is new."""
        shape = json.dumps({key: value for key, value in schema.items() if key not in _OF_THE_FIELD})
        name = ""
        # The last word of the path if it is free, else more of them. Spec and status are named after their kind.
        for start in range(0 if len(path) == 2 else len(path) - 1, -1, -1):
            name = class_name(path[start:])
            if self._taken.get(name, shape) == shape:
                break
        else:
            name = self._numbered(name, shape)
        if name in self._taken:
            return name
        self._taken[name] = shape
        fields = self._fields(schema["properties"], schema.get("required", ()), path)
        self._classes.append("\n".join([f"class {name}(ApiModel):", *self._body(schema, fields)]))
        return name

    def _reserve(self, name: str) -> str:
        chosen = name if name not in self._taken else self._numbered(name, "")
        self._taken[chosen] = ""
        return chosen

    def _numbered(self, name: str, shape: str) -> str:
        """The name with the next number that is free, or that stands for this very shape."""
        if shape and (name, shape) in self._numbers:
            return self._numbers[name, shape]
        chosen = name
        while chosen in self._taken:
            self._counts[name] = self._counts.get(name, 1) + 1
            chosen = f"{name}{self._counts[name]}"
        self._numbers[name, shape] = chosen
        return chosen

    def _body(self, schema: Schema, fields: list[str]) -> list[str]:
        lines = []
        if self._descriptions and schema.get("description", "").strip():
            lines += [*docstring(schema["description"]), ""]
        config = {}
        if schema.get(PRESERVE_UNKNOWN):
            config["extra"] = quoted("allow")
        if extra := {key: schema[key] for key in _OBJECT_KEYS if key in schema}:
            config["json_schema_extra"] = literal(extra, 8)
        if config:
            options = "".join(f"        {name}={value},\n" for name, value in config.items())
            lines += [f"    model_config = ConfigDict(\n{options}    )", ""]
        return [*lines, *fields] if fields or config else [*lines, "    pass"]

    def _fields(
        self, properties: Schema, required: Sequence[str], path: tuple[str, ...], taken: frozenset[str] = frozenset()
    ) -> list[str]:
        needed, names, lines = set(required), set(taken), []
        for wire_name, part in properties.items():
            name, alias = python_name(wire_name)
            # Two wire names that differ by what no Python name has; or another field's wire name: it is read by both.
            while name in names or (name in properties and name != wire_name):
                name, alias = f"{name}_", wire_name
            names.add(name)
            lines.append(self._field(name, alias, part, wire_name in needed, (*path, wire_name)))
        return lines

    def _field(self, name: str, alias: str | None, schema: Schema, required: bool, path: tuple[str, ...]) -> str:
        path = (*path[:-1], singular(path[-1])) if schema.get("type") == "array" else path
        found = field_type(schema, lambda inner: self._add_class(inner, path))
        annotation = optional(found) if schema.get("nullable") else str(found)
        options = {}
        if schema.get("default") is not None:
            options["default"] = found.value(schema["default"])
        elif not required and not schema.get("nullable") and _may_be_empty(schema, found):
            options["default_factory"] = "dict" if schema["type"] == "object" else "list"
        elif not required:
            annotation, options["default"] = optional(found), "None"
        if alias is not None:
            options["alias"] = quoted(alias)
        if self._descriptions and schema.get("description"):
            options["description"] = long_text(schema["description"])
        return f"    {name}: {annotation}{_assignment(options)}"


def _may_be_empty(schema: Schema, found: FieldType) -> bool:
    """Whether an absent value can be an empty list or map in Python."""
    if schema.get("type") == "array":
        return not schema.get("minItems")
    return schema.get("type") == "object" and not schema.get("properties") and not schema.get("minProperties")


def _assignment(options: Mapping[str, str]) -> str:
    if not options:
        return ""
    if set(options) == {"default"}:
        return f" = {options['default']}"
    arguments = [f"{name}={value}" for name, value in options.items()]
    one_line = f" = Field({', '.join(arguments)})"
    if len(one_line) < WIDTH - 40 and "\n" not in one_line:
        return one_line
    return " = Field(\n" + "".join(f"        {argument},\n" for argument in arguments) + "    )"


def _keywords(name: str, crd: CrdInput, version: CrdVersion) -> dict[str, str]:
    """The class keywords, as source, without those that follow from the name of the class."""
    kind = crd.kind
    derived = {"kind": name, "plural": plural_of(kind), "singular": kind.lower(), "listKind": f"{kind}List"}
    keywords: dict[str, Any] = {"group": crd.group, "version": version.name, "foreign": True}
    keywords |= {
        {"listKind": "list_kind"}.get(key, key): crd.names[key]
        for key, value in derived.items()
        if crd.names.get(key, value) != value
    }
    if crd.scope != "Namespaced":
        keywords["scope"] = crd.scope
    if crd.short_names:
        keywords["short_names"] = crd.short_names
    if crd.categories:
        keywords["categories"] = crd.categories
    if not version.served:
        keywords["served"] = False
    if version.deprecated:
        keywords["deprecated"] = version.deprecated
    if ("status" in version.schema.get("properties", {})) != version.has_status:
        keywords["status_subresource"] = version.has_status
    if version.selectable_fields:
        keywords["selectable_fields"] = version.selectable_fields
    if crd.approval:
        keywords["annotations"] = {_APPROVAL: crd.approval}
    sources = {key: literal(value) for key, value in keywords.items()}
    columns = [_call("PrinterColumn", column, _COLUMN_FIELDS) for column in version.columns]
    if columns:
        sources["columns"] = "[\n" + "".join(f"        {column},\n" for column in columns) + "    ]"
    if version.scale:
        paths = {_SCALE_FIELDS[key]: path for key, path in version.scale.items()}
        sources["scale"] = _call("Scale", paths, tuple(_SCALE_FIELDS.values()))
    if rules := version.schema.get("x-kubernetes-validations"):
        sources["rules"] = "[\n" + "".join(f"        {_rule(rule)},\n" for rule in rules) + "    ]"
    return sources


_COLUMN_FIELDS = ("name", "path", "type", "format", "description", "priority")
_SCALE_FIELDS = {
    "specReplicasPath": "spec_replicas",
    "statusReplicasPath": "status_replicas",
    "labelSelectorPath": "label_selector",
}
_RULE_FIELDS = {
    "rule": "rule",
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}


def _rule(rule: Schema) -> str:
    values = {_RULE_FIELDS[key]: value for key, value in rule.items()}
    return _call("Rule", values, tuple(_RULE_FIELDS.values()))


def _call(name: str, values: Mapping[str, Any], order: tuple[str, ...]) -> str:
    given = [(key, values[key]) for key in order if values.get(key) or values.get(key) is False]
    return f"{name}({', '.join(f'{key}={literal(value)}' for key, value in given)})"


def _imports(text: str) -> str:
    """The import block for what the code, not its texts, mentions."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    words = {token.string for token in tokens if token.type == tokenize.NAME}
    blocks = []
    for modules in _IMPORTS:
        used = {module: [name for name in names if name in words] for module, names in modules.items()}
        if lines := [f"from {module} import {', '.join(names)}" for module, names in used.items() if names]:
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
