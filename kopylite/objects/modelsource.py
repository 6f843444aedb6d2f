"""From a CustomResourceDefinition to Python source: pydantic models for somebody else's kind.

The source is a starting point to keep in your repository. Generating a CRD from it again gives one that accepts
every object that the original accepts; what pydantic has no word for stays with the field as a mark, so that the
new CRD has it too.
"""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from collections.abc import Mapping
from pprint import pformat
from typing import Any

from kopylite.errors import UsageError
from kopylite.objects.jsonschema import PRESERVE_UNKNOWN
from kopylite.objects.resource import plural_of
from kopylite.objects.sourcenames import class_name, python_name, singular
from kopylite.objects.sourcetypes import field_type, optional

Schema = Mapping[str, Any]

_WIDTH = 110
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
_APPROVAL = "api-approved.kubernetes.io"


def models_of(crd: Mapping[str, Any], version: str | None = None, *, descriptions: bool = True) -> str:
    """The source of a module with the classes of a CRD.

    Args:
        crd: the CustomResourceDefinition (apiextensions.k8s.io/v1) as a dict.
        version: which of its versions; None: the one that is stored.
        descriptions: take the descriptions over as docstrings and field descriptions.

    Raises:
        UsageError: it is no CRD, or has no such version, or no schema.
    """
    if crd.get("kind") != "CustomResourceDefinition" or crd.get("apiVersion") != "apiextensions.k8s.io/v1":
        raise UsageError(f"not an apiextensions.k8s.io/v1 CustomResourceDefinition, but a {crd.get('kind')}")
    name = crd["metadata"]["name"]
    versions = {entry["name"]: entry for entry in crd["spec"]["versions"]}
    chosen = version or next(found for found, entry in versions.items() if entry["storage"])
    if chosen not in versions:
        raise UsageError(f"{name} has no version {chosen}; it has {', '.join(versions)}")
    schema = versions[chosen].get("schema", {}).get("openAPIV3Schema")
    if not schema:
        raise UsageError(f"{name} has no schema for {chosen}")
    return _Module(descriptions=descriptions).render(crd, versions[chosen], schema)


class _Module:
    """The source of one module. Inner classes come first; equal schemas share a class."""

    def __init__(self, *, descriptions: bool) -> None:
        self._descriptions = descriptions
        self._classes: list[str] = []
        # Class name → its schema without what belongs to the field. Imported names are taken by nobody's schema.
        self._taken: dict[str, Schema] = {
            name: {} for modules in _IMPORTS for names in modules.values() for name in names
        }

    def render(self, crd: Schema, version: Schema, schema: Schema) -> str:
        kind = crd["spec"]["names"]["kind"]
        self._taken[kind] = {}
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        arguments = [self._part(kind, name, properties.get(name), name in required) for name in ("spec", "status")]
        fields = [
            self._field(name, part, name in required, (kind, name))
            for name, part in properties.items()
            if name not in ("apiVersion", "kind", "metadata", "spec", "status")
        ]
        keywords = _keywords(crd, version, schema)
        head = [f"class {kind}(", f"    CustomResource[{', '.join(arguments)}],"]
        head += [f"    {name}={value}," for name, value in keywords.items()]
        own = {key: value for key, value in schema.items() if key in ("description", PRESERVE_UNKNOWN)}
        self._classes.append("\n".join([*head, "):", *self._body(own, fields)]))
        text = "\n\n\n".join(self._classes)
        title = f'"""{kind} of {crd["spec"]["group"]}/{version["name"]}, from its CustomResourceDefinition."""'
        return f"{title}\n\nfrom __future__ import annotations\n\n{_imports(text)}\n\n\n{text}\n"

    def _part(self, kind: str, name: str, schema: Schema | None, required: bool) -> str:
        """The type argument for spec or status."""
        if schema is None:
            return "None"
        found = field_type(schema, lambda inner: self._add_class(inner, (kind, name)))
        complete = schema.get("type") == "object" and not schema.get("required")
        return str(found) if complete or (required and name == "spec") else optional(found)

    def _add_class(self, schema: Schema, path: tuple[str, ...]) -> str:
        """The name of the class for an object schema; the class is written if it is new."""
        shape = {key: value for key, value in schema.items() if key not in ("description", "default", "nullable")}
        name = ""
        # The last word of the path if it is free, else more of them. Spec and status are named after their kind.
        for start in range(0 if len(path) == 2 else len(path) - 1, -1, -1):
            name = class_name(path[start:])
            if self._taken.get(name, shape) == shape:
                break
        while self._taken.get(name, shape) != shape:
            name += "_"
        if name in self._taken:
            return name
        self._taken[name] = shape
        required = schema.get("required", ())
        fields = [
            self._field(wire_name, part, wire_name in required, (*path, wire_name))
            for wire_name, part in schema["properties"].items()
        ]
        self._classes.append("\n".join([f"class {name}(ApiModel):", *self._body(schema, fields)]))
        return name

    def _body(self, schema: Schema, fields: list[str]) -> list[str]:
        lines = []
        if self._descriptions and schema.get("description"):
            lines += [*_docstring(schema["description"]), ""]
        config = {}
        if schema.get(PRESERVE_UNKNOWN):
            config["extra"] = "'allow'"
        if extra := {key: schema[key] for key in _OBJECT_KEYS if key in schema}:
            config["json_schema_extra"] = _indented(pformat(extra, width=_WIDTH - 8, sort_dicts=False), 8)
        if config:
            options = "".join(f"        {name}={value},\n" for name, value in config.items())
            lines += [f"    model_config = ConfigDict(\n{options}    )", ""]
        return [*lines, *fields] if fields or config else [*lines, "    pass"]

    def _field(self, wire_name: str, schema: Schema, required: bool, path: tuple[str, ...]) -> str:
        path = (*path[:-1], singular(path[-1])) if schema.get("type") == "array" else path
        found = field_type(schema, lambda inner: self._add_class(inner, path))
        name, alias = python_name(wire_name)
        annotation = optional(found) if schema.get("nullable") else str(found)
        options = {}
        if schema.get("default") is not None:
            options["default"] = found.value(schema["default"])
        elif not required and not schema.get("nullable") and _may_be_empty(schema):
            options["default_factory"] = "dict" if schema["type"] == "object" else "list"
        elif not required:
            annotation, options["default"] = optional(found), "None"
        if alias:
            options["alias"] = repr(alias)
        if self._descriptions and schema.get("description"):
            options["description"] = _long_text(schema["description"])
        return f"    {name}: {annotation}{_assignment(options)}"


def _may_be_empty(schema: Schema) -> bool:
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
    if len(one_line) < _WIDTH - 40 and "\n" not in one_line:
        return one_line
    return " = Field(\n" + "".join(f"        {argument},\n" for argument in arguments) + "    )"


def _keywords(crd: Schema, version: Schema, schema: Schema) -> dict[str, str]:
    """The class keywords, as source, without those that follow from the kind."""
    spec, names = crd["spec"], crd["spec"]["names"]
    kind = names["kind"]
    derived = {"plural": plural_of(kind), "singular": kind.lower(), "listKind": f"{kind}List"}
    keywords: dict[str, Any] = {"group": spec["group"], "version": version["name"]}
    keywords |= {
        {"listKind": "list_kind"}.get(name, name): names[name]
        for name, value in derived.items()
        if names.get(name, value) != value
    }
    if spec["scope"] != "Namespaced":
        keywords["scope"] = spec["scope"]
    keywords |= {
        name: names[key]
        for key, name in (("shortNames", "short_names"), ("categories", "categories"))
        if names.get(key)
    }
    if version.get("deprecated"):
        keywords["deprecated"] = version.get("deprecationWarning") or True
    if "status" in schema.get("properties", {}) and "status" not in version.get("subresources", {}):
        keywords["status_subresource"] = False
    if version.get("selectableFields"):
        keywords["selectable_fields"] = [entry["jsonPath"] for entry in version["selectableFields"]]
    if approval := crd["metadata"].get("annotations", {}).get(_APPROVAL):
        keywords["annotations"] = {_APPROVAL: approval}
    sources = {name: repr(value) for name, value in keywords.items()}
    columns = [
        _call("PrinterColumn", {**column, "path": column["jsonPath"]}, ("name", "path", "type", "format", "priority"))
        for column in version.get("additionalPrinterColumns", ())
    ]
    if columns:
        sources["columns"] = "[\n" + "".join(f"        {column},\n" for column in columns) + "    ]"
    if scale := version.get("subresources", {}).get("scale"):
        paths = {
            "spec_replicas": scale["specReplicasPath"],
            "status_replicas": scale["statusReplicasPath"],
            "label_selector": scale.get("labelSelectorPath"),
        }
        sources["scale"] = _call("Scale", paths, tuple(paths))
    if rules := schema.get("x-kubernetes-validations"):
        sources["rules"] = "[\n" + "".join(f"        {_rule(rule)},\n" for rule in rules) + "    ]"
    return sources


def _rule(rule: Schema) -> str:
    words = {
        "messageExpression": "message_expression",
        "fieldPath": "field_path",
        "optionalOldSelf": "optional_old_self",
    }
    values = {words.get(key, key): value for key, value in rule.items()}
    return _call("Rule", values, tuple(values))


def _call(name: str, values: Mapping[str, Any], order: tuple[str, ...]) -> str:
    return f"{name}({', '.join(f'{key}={values[key]!r}' for key in order if values.get(key))})"


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


def _docstring(text: str) -> list[str]:
    safe = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [line for part in safe.splitlines() for line in (textwrap.wrap(part, _WIDTH) or [""])]
    if len(lines) == 1 and not lines[0].endswith('"'):
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """']


def _long_text(text: str) -> str:
    parts = [part for line in text.splitlines(keepends=True) for part in _chunks(line)]
    if len(parts) == 1:
        return repr(parts[0])
    return "(\n" + "".join(f"            {part!r}\n" for part in parts) + "        )"


def _chunks(line: str) -> list[str]:
    """A line cut after blanks, so that the pieces add up to it again."""
    pieces: list[str] = [""]
    for word in re.findall(r"\S*\s*", line):
        if pieces[-1] and len(pieces[-1]) + len(word) > _WIDTH - 20:
            pieces.append("")
        pieces[-1] += word
    return [piece for piece in pieces if piece]


def _indented(text: str, columns: int) -> str:
    return text.replace("\n", "\n" + " " * columns)
