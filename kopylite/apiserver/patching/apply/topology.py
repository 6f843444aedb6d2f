"""What a schema says about merging: which lists and maps are one leaf, and what tells list elements apart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from kopylite.apiserver.patching.apply.fieldsets import key_element, value_element
from kopylite.apiserver.schema.node import SchemaNode


class NoElement(ValueError):
    """A list element that cannot be told from others: its keys are missing, or it is no scalar of a set."""


class Topology:
    """How values of one schema are merged; children are built when they are asked for.

    Attributes:
        scalar: may the value be a scalar; the schema's type ("string", "integer", ...) or "any".
        is_map, is_list: may the value be one?
        atomic_map, atomic_list: is it one leaf then?
        keys: names of the key fields of a list of type map; empty for a set.
    """

    def __init__(self, node: SchemaNode, *, preserve: bool = False) -> None:
        self._node = node
        self._preserve = preserve or node.preserve_unknown
        one_value = bool(node.raw.get("x-kopylite-untyped"))
        untyped = not node.type or one_value
        self.scalar = "any" if untyped else "" if node.type in ("object", "array") else node.type
        if node.int_or_string or node.format == "quantity" or _is_quantity(node):
            untyped, self.scalar = False, "any"
        self.is_map = untyped or node.type == "object"
        self.is_list = untyped or node.type == "array"
        self.atomic_map = one_value or node.map_type == "atomic"
        self.atomic_list = node.list_type not in ("map", "set")
        self.keys = tuple(sorted(node.list_map_keys))

    @cached_property
    def fields(self) -> Mapping[str, Topology]:
        return {name: topology_of(child, preserve=self._preserve) for name, child in self._node.properties.items()}

    @cached_property
    def other_fields(self) -> Topology | None:
        """Of the values of undeclared keys; None when there may be none."""
        if self._node.additional is not None:
            return topology_of(self._node.additional, preserve=self._preserve)
        declared = self._node.raw.get("additionalProperties")
        if declared is True or (declared is None and (self._preserve or not self._node.properties)):
            return ANYTHING
        return None

    def field(self, name: str) -> Topology | None:
        return self.fields.get(name) or self.other_fields

    @cached_property
    def element(self) -> Topology:
        """Of the elements of a list."""
        return ANYTHING if self._node.items is None else topology_of(self._node.items, preserve=self._preserve)

    @cached_property
    def _key_defaults(self) -> dict[str, Any]:
        items = self._node.items
        fields = {} if items is None else items.properties
        return {k: fields[k].default for k in self.keys if k in fields and fields[k].has_default}

    def element_of(self, value: Any) -> str:
        """The path element of one element of a list that is no leaf.

        Raises:
            NoElement: it has none.
        """
        if not self.keys:
            if value is None or isinstance(value, (dict, list)):
                raise NoElement(_no_scalar(value))
            return value_element(value)
        if not isinstance(value, dict):
            what = "a null element" if value is None else "non-map elements"
            raise NoElement(f"associative list with keys may not have {what}")
        keys = [(k, value[k] if k in value else self._key_defaults.get(k)) for k in self.keys]
        present = [(k, v) for k, v in keys if v is not None]
        if not present:
            names = " ".join(f'"{k}"' for k in self._node.list_map_keys)
            raise NoElement(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_element(present)


def _no_scalar(value: Any) -> str:
    if isinstance(value, list):
        return "not supported: associative list with lists as elements"
    what = "that's an explicit null" if value is None else "that's a map type"
    return f"associative list without keys has an element {what}"


def _is_quantity(node: SchemaNode) -> bool:
    # resource.Quantity is published as oneOf [string, number].
    kinds = node.raw.get("oneOf")
    return isinstance(kinds, list) and {k.get("type") for k in kinds if isinstance(k, dict)} == {"string", "number"}


_known: WeakKeyDictionary[SchemaNode, dict[bool, Topology]] = WeakKeyDictionary()


def topology_of(node: SchemaNode, *, preserve: bool = False) -> Topology:
    """The topology of a schema, shared by all who ask for the same node.

    Args:
        preserve: an ancestor keeps unknown fields.
    """
    variants = _known.setdefault(node, {})
    topology = variants.get(preserve)
    if topology is None:
        topology = variants[preserve] = Topology(node, preserve=preserve)
    return topology


# Values without a schema: maps are merged key by key, lists are leaves.
ANYTHING = Topology(SchemaNode({"x-kubernetes-preserve-unknown-fields": True}))
