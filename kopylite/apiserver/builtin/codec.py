"""Reading JSON as Go's typed decoder does, and writing it as Go's encoder does, by schema. Pure.

One TypeCodec for each schema, compiled at first use: it drops unknown fields and empty values, adds the
fields that a Go struct always writes, brings quantities, times and byte strings into their canonical form,
and applies the defaults of its type.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from kopylite.apiserver.builtin import data
from kopylite.apiserver.builtin.gates import GATED
from kopylite.apiserver.builtin.scalars import SPECIAL, Decoder, Reading, anything, byte_string, mismatch

Object = dict[str, Any]
Default = Callable[[Object], None]

_EMPTY: tuple[Any, ...] = (None, "", 0, False, [], {})
_ABSENT = object()
_RANGES = {"int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}


class TypeCodec:
    """The codec of one struct type.

    Attributes:
        zero: the fields that are always written, with their zero values, nested.
        has_defaults: is there anything to default in this type or below it?
    """

    def __init__(self, name: str, codecs: Codecs) -> None:
        schema = data.SCHEMAS[name]
        self.name = name
        self.kind = name.rpartition(".")[2]
        self._codecs = codecs
        self._schema = schema
        self._always: Mapping[str, Any] = schema.get(data.ALWAYS) or {}
        self._omit = frozenset(schema.get(data.OMIT) or ())
        self._go: Mapping[str, str] = schema.get(data.GO_TYPES) or {}
        self._decoders: dict[str, Decoder] | None = None
        short = name.removeprefix("io.k8s.").removeprefix("api.")
        self._own_default = codecs.defaults.get(short)
        self._gated = GATED.get(short, ())
        self._plain_defaults = {
            field: prop["default"]
            for field, prop in (schema.get("properties") or {}).items()
            if prop.get("default") not in _EMPTY
        }
        self._defaulting: list[tuple[str, str, TypeCodec]] | None = None

    @property
    def zero(self) -> Object:
        zero: Object = {}
        for field, value in self._always.items():
            inner = self._struct_of(field)
            zero[field] = inner.zero if value == {} and inner is not None else value
        return zero

    def _struct_of(self, field: str) -> TypeCodec | None:
        return self._codecs.struct(self._codecs.reference(self._schema["properties"][field]))

    def decode(self, obj: Object, path: str, reading: Reading) -> Object:
        """Bring an object into form, in place; returns it."""
        decoders = self._decoders
        if decoders is None:
            decoders = self._decoders = self._compile()
        always, omit = self._always, self._omit
        for field in list(obj):
            decoder = decoders.get(field)
            where = f"{path}.{field}" if path else field
            if decoder is None:
                reading.unknown.append(where)
                del obj[field]
                continue
            value = obj[field]
            if value is not None:
                value = decoder(value, where, reading)
            if field in always:
                obj[field] = self._zero_of(field) if value is None else value
            elif value is None or (field in omit and value in _EMPTY):
                del obj[field]
            else:
                obj[field] = value
        for field in always:
            if field not in obj:
                obj[field] = self._zero_of(field)
        for field in self._gated:
            obj.pop(field, None)
        return obj

    def forget_empty_lists(self, obj: Object) -> None:
        """Storage does not tell an empty list from none: those always written become null, in place.

        Looks at the object and its spec, where all lists are that can stay empty.
        """
        for field, value in self._always.items():
            if value is None and obj.get(field) == []:
                obj[field] = None
        inner = self._struct_of("spec") if "spec" in (self._schema.get("properties") or {}) else None
        if inner is not None and isinstance(obj.get("spec"), dict):
            inner.forget_empty_lists(obj["spec"])

    def _zero_of(self, field: str) -> Any:
        value = self._always[field]
        if value != {}:
            return value
        inner = self._struct_of(field)
        return {} if inner is None else inner.zero

    def _compile(self) -> dict[str, Decoder]:
        properties = self._schema.get("properties") or {}
        return {field: self._decoder(prop, self._go.get(field, "")) for field, prop in properties.items()}

    def _decoder(self, prop: Mapping[str, Any], go_type: str) -> Decoder:
        ref = self._codecs.reference(prop)
        if ref.endswith(".IntOrString"):
            return self._int_or_string_decoder()
        if ref:
            return SPECIAL.get(ref) or self._struct_decoder(ref, go_type)
        kind = prop.get("type")
        if kind == "array":
            return self._list_decoder(prop, go_type)
        if kind == "object" and "additionalProperties" in prop:
            return self._map_decoder(prop, go_type)
        if kind == "string" and prop.get("format") == "byte":
            return byte_string
        return self._scalar_decoder(str(kind), go_type)

    def _scalar_decoder(self, kind: str, go_type: str) -> Decoder:
        struct = self.kind
        lowest, highest = _RANGES.get(go_type.lstrip("*"), _RANGES["int64"])

        def text(value: Any, path: str, reading: Reading) -> Any:
            if type(value) is not str:
                raise mismatch(value, struct, path, go_type or "string")
            return value

        def integer(value: Any, path: str, reading: Reading) -> Any:
            if type(value) is not int or not lowest <= value <= highest:
                raise mismatch(value, struct, path, go_type or "int64")
            return value

        def boolean(value: Any, path: str, reading: Reading) -> Any:
            if type(value) is not bool:
                raise mismatch(value, struct, path, go_type or "bool")
            return value

        def number(value: Any, path: str, reading: Reading) -> Any:
            if type(value) not in (int, float):
                raise mismatch(value, struct, path, go_type or "float64")
            return value

        known: dict[str, Decoder] = {"string": text, "integer": integer, "boolean": boolean, "number": number}
        return known.get(kind, anything)

    def _int_or_string_decoder(self) -> Decoder:
        struct = self.kind

        def decode(value: Any, path: str, reading: Reading) -> Any:
            if type(value) not in (int, str) or (type(value) is int and not -(2**31) <= value < 2**31):
                raise mismatch(value, struct, path, "int32")
            return value

        return decode

    def _struct_decoder(self, ref: str, go_type: str) -> Decoder:
        codec = self._codecs.struct(ref)
        struct = self.kind
        if codec is None:
            return anything

        def decode(value: Any, path: str, reading: Reading) -> Any:
            if type(value) is not dict:
                raise mismatch(value, struct, path, go_type)
            return codec.decode(value, path, reading)

        return decode

    def _list_decoder(self, prop: Mapping[str, Any], go_type: str) -> Decoder:
        element = self._decoder(prop["items"], go_type.removeprefix("[]"))
        zero = self._element_zero(prop["items"])
        struct = self.kind

        def decode(value: Any, path: str, reading: Reading) -> Any:
            if type(value) is not list:
                raise mismatch(value, struct, path, go_type)
            for index, inner in enumerate(value):
                value[index] = zero() if inner is None else element(inner, f"{path}[{index}]", reading)
            return value

        return decode

    def _map_decoder(self, prop: Mapping[str, Any], go_type: str) -> Decoder:
        values = prop["additionalProperties"]
        _, _, value_type = go_type.partition("]")
        element = self._decoder(values, value_type) if isinstance(values, dict) else anything
        zero = self._element_zero(values) if isinstance(values, dict) else (lambda: None)
        struct = self.kind

        def decode(value: Any, path: str, reading: Reading) -> Any:
            if type(value) is not dict:
                raise mismatch(value, struct, path, go_type)
            # Go names the map, not the key, in its errors: only structs below need the whole path.
            for key, inner in value.items():
                value[key] = zero() if inner is None else element(inner, path, reading)
            return value

        return decode

    def _element_zero(self, prop: Mapping[str, Any]) -> Callable[[], Any]:
        ref = self._codecs.reference(prop)
        codec = self._codecs.struct(ref) if ref else None
        if codec is not None:
            return lambda: codec.zero
        if ref.endswith(".Quantity"):
            return lambda: "0"
        value = {"string": "", "integer": 0, "number": 0, "boolean": False}.get(str(prop.get("type")))
        return lambda: value

    def default(self, obj: Object) -> None:
        """Apply the defaults of this type, then of those below it, in place."""
        if self._own_default is not None:
            self._own_default(obj)
        for field, value in self._plain_defaults.items():
            # A zero was given: such a field is a pointer. An empty string is none.
            if obj.get(field) in (None, ""):
                obj[field] = copy.copy(value)
        if self._defaulting is None:
            self._defaulting = self._nested_defaults()
        for field, shape, codec in self._defaulting:
            value = obj.get(field)
            if value is None:
                continue
            if shape == "":
                codec.default(value)
            elif shape == "list":
                for element in value:
                    codec.default(element)
            else:
                for element in value.values():
                    codec.default(element)

    def _nested_defaults(self) -> list[tuple[str, str, TypeCodec]]:
        found = []
        for field, prop in (self._schema.get("properties") or {}).items():
            shape, inner = "", prop
            if prop.get("type") == "array":
                shape, inner = "list", prop["items"]
            elif prop.get("type") == "object" and isinstance(prop.get("additionalProperties"), dict):
                shape, inner = "map", prop["additionalProperties"]
            codec = self._codecs.struct(self._codecs.reference(inner))
            if codec is not None and codec.has_defaults(frozenset({self.name})):
                found.append((field, shape, codec))
        return found

    def has_defaults(self, above: frozenset[str] = frozenset()) -> bool:
        if self._own_default is not None or self._plain_defaults:
            return True
        if self.name in above:
            return False
        above |= {self.name}
        for prop in (self._schema.get("properties") or {}).values():
            values = prop.get("additionalProperties")
            for inner in (prop, prop.get("items"), values if isinstance(values, dict) else None):
                codec = self._codecs.struct(self._codecs.reference(inner)) if inner else None
                if codec is not None and codec.has_defaults(above):
                    return True
        return False


class Codecs:
    """The codecs of all types; one for each name.

    Args:
        defaults: the defaulting functions by type, named like `core.v1.PodSpec`.
    """

    def __init__(self, defaults: Mapping[str, Default]) -> None:
        self.defaults = defaults
        self._structs: dict[str, TypeCodec | None] = {}

    def __getitem__(self, name: str) -> TypeCodec:
        codec = self.struct(name)
        if codec is None:
            raise KeyError(name)
        return codec

    def struct(self, name: str) -> TypeCodec | None:
        """The codec of a struct type; None for a name that stands for something else, or for none."""
        if not name:
            return None
        codec = self._structs.get(name, _ABSENT)
        if codec is _ABSENT:
            is_struct = "properties" in data.SCHEMAS[name]
            codec = self._structs[name] = TypeCodec(name, self) if is_struct else None
        return codec  # type: ignore[return-value]

    @staticmethod
    def reference(prop: Mapping[str, Any] | None) -> str:
        if not prop:
            return ""
        ref = prop.get("$ref") or (prop.get("allOf") or [{}])[0].get("$ref") or ""
        return str(ref).rpartition("/")[2]
