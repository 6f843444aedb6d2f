"""Field: what the API server knows of a field beside its name, as far as two values of it are to be compared or merged.

Of built-in kinds the facts are in the package's table (scripts/extract_fields.py makes it), of a CustomResource class
in its schema; the schema of another kind may be asked of the server (`client/schemas.py`). Of what has none, nothing is
known but its metadata and, by convention, `status.conditions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from importlib import resources
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from kopylite.errors import RegistrationError
from kopylite.objects.kinds import Kind
from kopylite.objects.quantity import Quantity
from kopylite.objects.resource import CustomResource

T = TypeVar("T")

_Facts = Mapping[str, Any]


class Field:
    """One field, or the elements of a list, or the values of a map. Immutable.

    Attributes:
        keys: the fields that tell the elements of a list apart; () when its elements are themselves the keys (a
            set); None: the list is one value, or no list.
        zero: the server drops this field's zero value: "", 0, false, {} or [] mean that the field is not there.
        assigned: the server finds a value when it is given none.
        retain: when a part of this struct changes, what is not named anew has to go (a union).
    """

    def __init__(self, facts: _Facts) -> None:
        self._facts = facts
        keys = facts.get("keys")
        self.keys: tuple[str, ...] | None = None if keys is None else tuple(keys)
        self.zero = bool(facts.get("zero"))
        self.retain = bool(facts.get("retain"))
        self.assigned = bool(facts.get("assigned"))
        self._defaults: Sequence[Any] = facts.get("defaults", ())
        self._like: str | None = facts.get("like")
        self._has_fields = "of" in facts
        self._children: dict[str, Field] = {}

    @cached_property
    def each(self) -> Field:
        """The elements of a list, the values of a map."""
        facts = self._facts.get("each")
        return Field(facts) if facts else UNKNOWN

    def child(self, name: str) -> Field:
        """A field of this struct, or a value of this map."""
        found = self._children.get(name)
        return self._child(name) if found is None else found

    def _child(self, name: str) -> Field:
        if not self._has_fields:
            return self.each
        facts = _fields(self._facts["of"]).get(name)
        field = self._children[name] = Field(facts) if facts else UNKNOWN
        return field

    def is_default(self, value: Any, beside: Mapping[str, Any]) -> bool:
        """Whether the server gives the field this very value when nobody sets it.

        Args:
            beside: the struct that it is a field of.
        """
        if value in self._defaults or (self.zero and value in ("", 0)):
            return True
        return self._like is not None and beside.get(self._like) == value

    def key_of(self, element: Any) -> Any:
        """What tells an element of a keyed list from the others; None: it has no key."""
        if not self.keys:
            return element if isinstance(element, str | int | float) else None
        if not isinstance(element, dict):
            return None
        if len(self.keys) == 1 and (only := element.get(self.keys[0])):  # as most are
            return (str(only),)
        parts = [element.get(name) or self.each.child(name).only_default for name in self.keys]
        return None if parts[0] is None else tuple(map(str, parts))

    @property
    def is_struct(self) -> bool:
        """A struct of a built-in kind: what is in it belongs together."""
        return isinstance(self._facts.get("of"), str)

    @property
    def only_default(self) -> Any:
        """The default of a field that has just one; else None."""
        return self._defaults[0] if len(self._defaults) == 1 else None

    def same(self, stored: Any, desired: Any) -> bool:
        """Whether the server takes two scalars for one: type by type, but for quantities and times."""
        if type(stored) is type(desired):
            if stored == desired:
                return True
        elif stored is None:
            return self.zero and desired in ("", 0)
        if "quantity" in self._facts:
            return _same(Quantity, stored, desired)
        if "time" in self._facts and isinstance(stored, str) and isinstance(desired, str):
            return _same(_second if self._facts["time"] == 0 else datetime.fromisoformat, stored, desired)
        # An empty value is no value, and then the server takes its own.
        own = self.assigned or stored in self._defaults
        return self.zero and desired in ("", 0) and own


def _same(read: Any, stored: Any, desired: Any) -> bool:
    try:
        return bool(read(stored) == read(desired))
    except (ValueError, TypeError, ArithmeticError):
        return False


def _second(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(microsecond=0)


UNKNOWN = Field({})

# Labels and annotations that the API server itself gives to the objects of some kinds.
SERVERS_OWN = frozenset({"kubernetes.io/metadata.name", "deprecated.daemonset.template.generation"})

_METADATA = {"of": "meta.v1.ObjectMeta"}
_CONDITIONS = {"in": "list", "keys": ["type"]}
_CUSTOM = Field({"of": {"metadata": _METADATA, "status": {"of": {"conditions": _CONDITIONS}}}})

_by_class: WeakKeyDictionary[type, Field] = WeakKeyDictionary()


def fields_of(kind: Kind | type[Any], resolved: Kind) -> Field:
    """The fields of the objects of a kind.

    Args:
        kind: the kind-like; a CustomResource class brings its schema along.
        resolved: the Kind that it names.
    """
    if isinstance(kind, type) and issubclass(kind, CustomResource):
        known = _by_class.get(kind)
        return known or _by_class.setdefault(kind, _of_class(kind))
    return _of_builtin(resolved.api_version, resolved.kind)


@cache
def _of_builtin(api_version: str, kind: str) -> Field:
    name = _table().kinds.get(f"{api_version} {kind}")
    return Field({"of": name}) if name else _CUSTOM


class _Table(msgspec.Struct):
    """Facts by the name of the struct, as text until somebody asks: an operator writes few of 600 structs."""

    kinds: dict[str, str]
    types: dict[str, msgspec.Raw]


@cache
def _table() -> _Table:
    text = resources.files(__package__).joinpath("builtin_fields.json").read_bytes()
    return msgspec.json.decode(text, type=_Table)


def _fields(of: str | _Facts) -> _Facts:
    """The fields of a struct that is named, or told in place."""
    return _named_fields(of) if isinstance(of, str) else of


@cache
def _named_fields(name: str) -> _Facts:
    text = _table().types.get(name)
    found: _Facts = msgspec.json.decode(text) if text else {}
    return found


def is_described(kind: Kind | type[Any], resolved: Kind) -> bool:
    """Whether `fields_of` knows the kind's own fields, from the table or a class."""
    is_class = isinstance(kind, type) and issubclass(kind, CustomResource)
    return is_class or f"{resolved.api_version} {resolved.kind}" in _table().kinds


def field_of_schema(schema: Mapping[str, Any]) -> Field:
    """The fields of a custom resource with this structural schema."""
    facts = _of_schema(schema).get("of", {})
    status = dict(facts.get("status", {}).get("of", {}))
    status.setdefault("conditions", _CONDITIONS)
    return Field({"of": {**facts, "metadata": _METADATA, "status": {"of": status}}})


def _of_class(cls: type[CustomResource[Any, Any]]) -> Field:
    from kopylite.crds.schema import SchemaWarning, schema_of

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # they are for whoever makes a CRD
            schema = schema_of(cls)
    except RegistrationError:  # no CRD can be made of the class; its objects can be written all the same
        return _CUSTOM
    return field_of_schema(schema)


def _of_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if schema.get("default") is not None:
        facts["defaults"] = [schema["default"]]
    if properties := schema.get("properties"):
        facts["of"] = {name: inner for name, part in properties.items() if (inner := _of_schema(part))}
    if isinstance(schema.get("additionalProperties"), dict):
        facts |= {"in": "map", "each": _of_schema(schema["additionalProperties"])}
    if isinstance(schema.get("items"), dict):
        facts |= {"in": "list", "each": _of_schema(schema["items"])}
        if schema.get("x-kubernetes-list-type") in ("map", "set"):
            facts["keys"] = schema.get("x-kubernetes-list-map-keys", [])
    return facts
