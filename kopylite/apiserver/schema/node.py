"""A typed view of one OpenAPI v3 schema: what the pipelines ask of it, by name. Pure, read only, lazy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

_REF = "#/components/schemas/"


class Definitions:
    """The named schemas that `$ref`s point to, and one shared node for each.

    Recursive schemas are fine: a node's children are built when they are asked for.

    Args:
        schemas: raw schemas by name, as under `components.schemas` of an OpenAPI v3 document.
    """

    __slots__ = ("_nodes", "_schemas")

    def __init__(self, schemas: Mapping[str, dict[str, Any]]) -> None:
        self._schemas = schemas
        self._nodes: dict[str, SchemaNode] = {}

    def node(self, name: str) -> SchemaNode:
        """The node of a named schema; KeyError if there is none."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = SchemaNode(self._schemas[name], self)
        return node

    def names(self) -> Iterator[str]:
        return iter(self._schemas)


class SchemaNode:
    """One schema with its Kubernetes extensions.

    A `$ref`, alone or as the only member of `allOf` beside a default or description (the form in which the
    API server publishes built-in kinds), is followed; what stands beside it wins over the target.

    Attributes:
        raw: the schema itself, references of this level resolved. Never change it.
    """

    def __init__(self, raw: Mapping[str, Any], definitions: Definitions | None = None) -> None:
        self._definitions = definitions
        self.raw: Mapping[str, Any] = self._resolve(raw)

    def __repr__(self) -> str:
        return f"SchemaNode({self.type or 'any'})"

    def _resolve(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        ref = raw.get("$ref")
        all_of = raw.get("allOf")
        if ref is None and isinstance(all_of, list) and len(all_of) == 1:
            ref = all_of[0].get("$ref")
        if ref is None or self._definitions is None:
            return raw
        beside = {k: v for k, v in raw.items() if k not in ("$ref", "allOf")}
        target = self._definitions.node(ref.removeprefix(_REF)).raw
        return {**target, **beside} if beside else target

    def _child(self, raw: Any) -> SchemaNode:
        if self._definitions is not None and isinstance(raw, Mapping) and raw.keys() == {"$ref"}:
            return self._definitions.node(raw["$ref"].removeprefix(_REF))
        return SchemaNode(raw, self._definitions)

    @cached_property
    def type(self) -> str:
        """ "object", "array", "string", "integer", "number", "boolean", or "" when any type is allowed."""
        return str(self.raw.get("type") or "")

    @cached_property
    def format(self) -> str:
        return str(self.raw.get("format") or "")

    @cached_property
    def properties(self) -> Mapping[str, SchemaNode]:
        """The declared fields; empty when there are none."""
        return {name: self._child(raw) for name, raw in (self.raw.get("properties") or {}).items()}

    @cached_property
    def items(self) -> SchemaNode | None:
        """The schema of list elements."""
        raw = self.raw.get("items")
        return None if raw is None else self._child(raw)

    @cached_property
    def additional(self) -> SchemaNode | None:
        """The schema of the values of undeclared keys; None when undeclared keys have none (or are unknown)."""
        raw = self.raw.get("additionalProperties")
        return self._child(raw) if isinstance(raw, Mapping) else None

    @cached_property
    def additional_allowed(self) -> bool:
        """Are undeclared keys allowed, by `additionalProperties: true` or a schema for them?"""
        raw = self.raw.get("additionalProperties")
        return raw is True or isinstance(raw, Mapping)

    def field(self, name: str) -> SchemaNode | None:
        """The schema of one key of an object: its property, else the one of undeclared keys, else None."""
        return self.properties.get(name) or self.additional

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(self.raw.get("required") or ())

    @cached_property
    def preserve_unknown(self) -> bool:
        """Keep undeclared fields here (`x-kubernetes-preserve-unknown-fields`)?"""
        return bool(self.raw.get("x-kubernetes-preserve-unknown-fields"))

    @cached_property
    def embedded(self) -> bool:
        """Is the value a whole Kubernetes object (`x-kubernetes-embedded-resource`)?"""
        return bool(self.raw.get("x-kubernetes-embedded-resource"))

    @cached_property
    def int_or_string(self) -> bool:
        """True for CRDs' `x-kubernetes-int-or-string` and for the built-ins' `format: int-or-string`."""
        return bool(self.raw.get("x-kubernetes-int-or-string")) or self.format == "int-or-string"

    @cached_property
    def nullable(self) -> bool:
        return bool(self.raw.get("nullable"))

    @property
    def has_default(self) -> bool:
        return self.raw.get("default") is not None

    @property
    def default(self) -> Any:
        """The default value, shared: copy before use. None when there is none."""
        return self.raw.get("default")

    @cached_property
    def has_embedded(self) -> bool:
        """Is there an embedded resource here or below? Not for recursive schemas."""
        return self.embedded or any(inner.has_embedded for inner in self._children())

    @cached_property
    def has_unique(self) -> bool:
        """Is there a list of type set or map here or below? Not for recursive schemas."""
        return self.list_type in ("set", "map") or any(inner.has_unique for inner in self._children())

    def _children(self) -> Iterator[SchemaNode]:
        yield from self.properties.values()
        if self.items is not None:
            yield self.items
        if self.additional is not None:
            yield self.additional

    @cached_property
    def list_type(self) -> str:
        """ "atomic" (also when undeclared), "set" or "map"."""
        return str(self.raw.get("x-kubernetes-list-type") or "atomic")

    @cached_property
    def list_map_keys(self) -> tuple[str, ...]:
        """The fields that identify an element of a list of type map."""
        return tuple(self.raw.get("x-kubernetes-list-map-keys") or ())

    @cached_property
    def map_type(self) -> str:
        """ "granular" (also when undeclared) or "atomic"."""
        return str(self.raw.get("x-kubernetes-map-type") or "granular")

    @cached_property
    def patch_strategies(self) -> tuple[str, ...]:
        """Strategic merge of this field: of "merge", "replace", "retainKeys"; empty means replace."""
        return tuple(s for s in str(self.raw.get("x-kubernetes-patch-strategy") or "").split(",") if s)

    @cached_property
    def patch_merge_key(self) -> str:
        """The field that identifies an element in a strategic merge; "" if elements are merged by value."""
        return str(self.raw.get("x-kubernetes-patch-merge-key") or "")
