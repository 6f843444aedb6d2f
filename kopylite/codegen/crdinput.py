"""A CustomResourceDefinition of somebody else: checked, and no more of it read than is known.

What comes out has names that the API server would accept, and schemas of known keys with values of the right type, of
bounded depth. Whatever is made of it can rely on that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from kopylite.errors import UsageError

Schema = dict[str, Any]

# Levels of a schema, or of a value in it. The deepest CRDs of the field have 30.
MAX_DEPTH = 100
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_DOMAIN = 253
_TYPES = ("object", "array", "string", "integer", "number", "boolean")
_APPROVAL = "api-approved.kubernetes.io"


@dataclass(frozen=True, slots=True)
class CrdVersion:
    """One version of a CRD; `schema` is that of the whole object."""

    name: str
    served: bool
    storage: bool
    schema: Schema
    deprecated: bool | str
    has_status: bool
    scale: dict[str, str] | None
    columns: list[dict[str, Any]]
    selectable_fields: list[str]


@dataclass(frozen=True, slots=True)
class CrdInput:
    """What is read of a CRD. `names` has kind, plural, singular and listKind, as far as they are given."""

    name: str
    group: str
    scope: str
    names: dict[str, str]
    short_names: list[str]
    categories: list[str]
    approval: str
    versions: dict[str, CrdVersion] = field(repr=False)

    @property
    def kind(self) -> str:
        return self.names["kind"]


def read_crd(document: Any) -> CrdInput:
    """Check a CRD and take over what is known.

    Raises:
        UsageError: naming the CRD, the field and the rule.
    """
    if not isinstance(document, Mapping) or document.get("kind") != "CustomResourceDefinition":
        found = document.get("kind") if isinstance(document, Mapping) else type(document).__name__
        raise UsageError(f"not an apiextensions.k8s.io/v1 CustomResourceDefinition, but a {_shown(found)}")
    if document.get("apiVersion") != "apiextensions.k8s.io/v1":
        raise UsageError(
            f"not an apiextensions.k8s.io/v1 CustomResourceDefinition, but one of {_shown(document.get('apiVersion'))}"
        )
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return _Reader(name if isinstance(name, str) and _DOMAIN.fullmatch(name) else "the CRD").read(document)


def _shown(value: Any) -> str:
    return repr(value[:100]) if isinstance(value, str) else type(value).__name__


class _Reader:
    """Reads one CRD; `name` is for its errors."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fail(self, path: str, rule: str) -> NoReturn:
        raise UsageError(f"{self._name}: {path} {rule}")

    def read(self, document: Mapping[str, Any]) -> CrdInput:
        spec = self._map(document, "spec", "")
        names = self._map(spec, "names", "spec.")
        group = self._text(spec, "group", "spec.")
        if not _DOMAIN.fullmatch(group) or len(group) > _MAX_DOMAIN:
            self.fail("spec.group", f"must be a DNS name such as example.com, not {_shown(group)}")
        found = {
            key: self._label(self._text(names, key, "spec.names."), f"spec.names.{key}", capitals=key.endswith("ind"))
            for key in ("kind", "plural", "singular", "listKind")
            if key in ("kind", "plural") or names.get(key)
        }
        versions = {}
        for index, entry in enumerate(self._list(spec, "versions", "spec.")):
            version = self._version(entry, f"spec.versions[{index}]")
            versions[version.name] = version
        annotations = self._map(document, "metadata", "").get("annotations")
        approval = annotations.get(_APPROVAL) if isinstance(annotations, Mapping) else None
        return CrdInput(
            name=f"{found['plural']}.{group}",
            group=group,
            scope=self._one_of(spec, "scope", "spec.", ("Namespaced", "Cluster")),
            names=found,
            short_names=self._labels(names, "shortNames"),
            categories=self._labels(names, "categories"),
            approval=approval if isinstance(approval, str) else "",
            versions=versions,
        )

    def _version(self, entry: Any, path: str) -> CrdVersion:
        if not isinstance(entry, Mapping):
            self.fail(path, "must be a map")
        warning = entry.get("deprecationWarning")
        subresources = self._map(entry, "subresources", f"{path}.", missing_ok=True)
        scale = subresources.get("scale")
        schema = self._map(entry, "schema", f"{path}.", missing_ok=True).get("openAPIV3Schema")
        return CrdVersion(
            name=self._label(self._text(entry, "name", f"{path}."), f"{path}.name"),
            served=entry.get("served") is not False,
            storage=entry.get("storage") is True,
            schema=self._schema(schema, f"{path}.schema", 0) if schema else {},
            deprecated=bool(entry.get("deprecated")) and (warning if isinstance(warning, str) and warning else True),
            has_status=subresources.get("status") is not None,
            scale=self._scale(scale, f"{path}.subresources.scale.") if isinstance(scale, Mapping) else None,
            columns=[
                self._column(c, f"{path}.additionalPrinterColumns.")
                for c in self._items(entry, "additionalPrinterColumns", f"{path}.")
            ],
            selectable_fields=[
                self._text(f, "jsonPath", f"{path}.")
                for f in self._items(entry, "selectableFields", f"{path}.")
                if isinstance(f, dict)
            ],
        )

    def _scale(self, scale: Mapping[str, Any], path: str) -> dict[str, str]:
        keys = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        return {key: self._text(scale, key, path) for key in keys if key != "labelSelectorPath" or scale.get(key)}

    def _column(self, column: Any, path: str) -> dict[str, Any]:
        if not isinstance(column, Mapping):
            self.fail(path, "must be a map")
        kinds = ("string", "integer", "number", "boolean", "date")
        found: dict[str, Any] = {
            "name": self._text(column, "name", path),
            "path": self._text(column, "jsonPath", path),
            "type": self._one_of(column, "type", path, kinds),
        }
        found |= {key: column[key] for key in ("format", "description") if isinstance(column.get(key), str)}
        if isinstance(column.get("priority"), int):
            found["priority"] = int(column["priority"])
        return found

    def _map(self, parent: Any, key: str, path: str, *, missing_ok: bool = False) -> Mapping[str, Any]:
        value = parent.get(key)
        if value is None and missing_ok:
            return {}
        if not isinstance(value, Mapping):
            self.fail(f"{path}{key}", "must be a map")
        return value

    def _list(self, parent: Mapping[str, Any], key: str, path: str) -> list[Any]:
        value = parent.get(key)
        if not isinstance(value, list) or not value:
            self.fail(f"{path}{key}", "must be a list that is not empty")
        return value

    def _items(self, parent: Mapping[str, Any], key: str, path: str) -> list[Any]:
        return self._list(parent, key, path) if parent.get(key) else []

    def _text(self, parent: Mapping[str, Any], key: str, path: str) -> str:
        value = parent.get(key)
        if not isinstance(value, str) or not value:
            self.fail(f"{path}{key}", f"must be a text, not {_shown(value)}")
        return value

    def _one_of(self, parent: Mapping[str, Any], key: str, path: str, allowed: tuple[str, ...]) -> str:
        value = self._text(parent, key, path)
        if value not in allowed:
            self.fail(f"{path}{key}", f"must be one of {', '.join(allowed)}, not {_shown(value)}")
        return value

    def _label(self, value: str, path: str, *, capitals: bool = False) -> str:
        if not value.isascii() or not _LABEL.fullmatch(value.lower() if capitals else value):
            self.fail(path, f"must be a DNS label (letters, digits and -), not {_shown(value)}")
        return value

    def _labels(self, names: Mapping[str, Any], key: str) -> list[str]:
        values = names.get(key) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self.fail(f"spec.names.{key}", "must be a list of texts")
        return [self._label(value, f"spec.names.{key}") for value in values]

    def _schema(self, node: Any, path: str, depth: int) -> Schema:
        """The known keys of a schema; one with another type of value than it should have is an error."""
        if depth > MAX_DEPTH:
            self.fail(path[:200], f"is nested deeper than {MAX_DEPTH} levels")
        if not isinstance(node, Mapping):
            self.fail(path, "must be a schema, which is a map")
        result: Schema = {}
        for key, value in node.items():
            if value is None and key != "default":
                continue
            if key in _CHECKS:
                types, what = _CHECKS[key]
                if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                    self.fail(f"{path}.{key}", f"must be {what}")
                result[key] = value
            elif key in _SCHEMAS:
                result[key] = getattr(self, _SCHEMAS[key])(value, f"{path}.{key}", depth)
        if "type" in result and result["type"] not in _TYPES:
            self.fail(f"{path}.type", f"must be one of {', '.join(_TYPES)}")
        return result

    def _schema_or_bool(self, value: Any, path: str, depth: int) -> Any:
        return value if isinstance(value, bool) else self._schema(value, path, depth + 1)

    def _one_schema(self, value: Any, path: str, depth: int) -> Schema:
        return self._schema(value, path, depth + 1)

    def _schemas(self, value: Any, path: str, depth: int) -> list[Schema]:
        if not isinstance(value, list):
            self.fail(path, "must be a list of schemas")
        return [self._schema(part, f"{path}[{index}]", depth + 1) for index, part in enumerate(value)]

    def _properties(self, value: Any, path: str, depth: int) -> dict[str, Schema]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            self.fail(path, "must be a map of schemas")
        return {name: self._schema(part, f"{path}.{name}", depth + 1) for name, part in value.items()}

    def _texts(self, value: Any, path: str, depth: int) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(path, "must be a list of texts")
        return list(value)

    def _values(self, value: Any, path: str, depth: int) -> list[Any]:
        if not isinstance(value, list) or not value:
            self.fail(path, "must be a list of values that is not empty")
        return [self._json(item, path, depth) for item in value]

    def _json(self, value: Any, path: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            self.fail(path[:200], f"is nested deeper than {MAX_DEPTH} levels")
        if value is None or isinstance(value, (str, bool)):
            return value
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**63 else float(value)
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, list):
            return [self._json(item, path, depth + 1) for item in value]
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {key: self._json(item, path, depth + 1) for key, item in value.items()}
        self.fail(path, "must be a value of JSON")

    def _rules(self, value: Any, path: str, depth: int) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(rule, Mapping) for rule in value):
            self.fail(path, "must be a list of rules")
        rules = []
        for rule in value:
            found: dict[str, Any] = {key: rule[key] for key in _RULE_TEXTS if isinstance(rule.get(key), str)}
            if not found.get("rule"):
                self.fail(path, "must have a rule in each entry")
            if isinstance(rule.get("optionalOldSelf"), bool):
                found["optionalOldSelf"] = rule["optionalOldSelf"]
            rules.append(found)
        return rules


_RULE_TEXTS = ("rule", "message", "messageExpression", "reason", "fieldPath")
_STR, _BOOL, _INT = ((str,), "a text"), ((bool,), "true or false"), ((int,), "a whole number")
# The keys of a schema whose values are scalars, with the types that they may have.
_CHECKS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(
        ("description", "type", "format", "pattern", "x-kubernetes-list-type", "x-kubernetes-map-type"), _STR
    ),
    **dict.fromkeys(("nullable", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"), _BOOL),
    **dict.fromkeys(
        ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"), _BOOL
    ),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), ((int, float), "a number")),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _INT),
}
# The keys whose values are more than that, and how they are read.
_SCHEMAS: dict[str, str] = {
    "items": "_one_schema", "not": "_one_schema", "additionalProperties": "_schema_or_bool",
    "allOf": "_schemas", "anyOf": "_schemas", "oneOf": "_schemas", "properties": "_properties",
    "required": "_texts", "x-kubernetes-list-map-keys": "_texts", "enum": "_values", "default": "_json",
    "x-kubernetes-validations": "_rules",
}  # fmt: skip
