"""Has a schema validation rules? Pure."""

from __future__ import annotations

from kopylite.apiserver.schema.node import SchemaNode

RULES = "x-kubernetes-validations"


def has_rules(node: SchemaNode) -> bool:
    if node.raw.get(RULES):
        return True
    inner = (node.items, node.additional, *node.properties.values())
    return any(has_rules(child_node) for child_node in inner if child_node is not None)
