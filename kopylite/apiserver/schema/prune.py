"""Pruning: drop what the schema does not know, and say where it was. Pure; changes its argument in place."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.schema.node import SchemaNode

TYPE_META = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: dict[str, Any], schema: SchemaNode) -> list[str]:
    """Remove unknown fields of a whole object; its apiVersion, kind and metadata stay as they are.

    Returns:
        The paths of the removed fields, sorted: `spec.a`, `spec.list[0].b`.
    """
    unknown: list[str] = []
    _prune_map(obj, schema, "", unknown, root=True)
    return sorted(unknown)


def prune_value(value: Any, schema: SchemaNode) -> None:
    """Remove unknown fields below any value, which is a whole object only if its schema says so."""
    _prune(value, schema, "", [])


def drop_nulls(value: Any, schema: SchemaNode | None) -> None:
    """Remove nulls from maps where the schema is known, not nullable and has no default. List elements stay."""
    if isinstance(value, dict):
        for key in list(value):
            inner = schema.field(key) if schema is not None else None
            if value[key] is None and inner is not None and not inner.nullable and not inner.has_default:
                del value[key]
            elif isinstance(value[key], (dict, list)):
                drop_nulls(value[key], inner)
    elif isinstance(value, list):
        items = schema.items if schema is not None else None
        for element in value:
            drop_nulls(element, items)


def _prune(value: Any, schema: SchemaNode | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_map(value, schema, path, unknown)
    elif isinstance(value, list):
        if schema is not None and schema.preserve_unknown:
            _prune_preserved_list(value, schema, path, unknown)
            return
        items = schema.items if schema is not None else None
        for index, element in enumerate(value):
            if isinstance(element, (dict, list)):
                _prune(element, items, f"{path}[{index}]", unknown)


def _prune_map(
    value: dict[str, Any], schema: SchemaNode | None, path: str, unknown: list[str], root: bool = False
) -> None:
    whole = root or (schema is not None and schema.embedded)
    keep = schema is not None and schema.preserve_unknown
    properties = schema.properties if schema is not None else {}
    for key in list(value):
        if whole and key in TYPE_META:
            continue
        inner = properties.get(key)
        if inner is None:
            if schema is not None and schema.additional_allowed:
                inner = schema.additional
            elif keep:
                continue
            else:
                unknown.append(f"{path}.{key}" if path else key)
                del value[key]
                continue
        if isinstance(value[key], (dict, list)):
            _prune(value[key], inner, f"{path}.{key}" if path else key, unknown)


def _prune_preserved_list(value: list[Any], schema: SchemaNode, path: str, unknown: list[str]) -> None:
    """Under preserve-unknown-fields, elements are pruned only where their schema declares fields."""
    items = schema.items
    if items is None:
        return
    for index, element in enumerate(value):
        inner_path = f"{path}[{index}]"
        if isinstance(element, list):
            _prune_preserved_list(element, items, inner_path, unknown)
        elif isinstance(element, dict):
            for key, inner_value in element.items():
                inner = items.field(key)
                if inner is not None and not (items.embedded and key in TYPE_META):
                    _prune(inner_value, inner, f"{inner_path}.{key}", unknown)
