"""From a model in wire form to JSON Schema, with the formats of the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, PydanticUndefined, core_schema

from kopylite.crds.patterns import perl_classes
from kopylite.errors import EncodeError, RegistrationError
from kopylite.objects.modelcodec import codec_of
from kopylite.objects.wireformats import write_bytes
from kopylite.objects.wirevalues import wire_value

# A note for whoever builds a schema of the JSON Schema: what it does not say though Python does.
NOTE = "kopylite-note"
PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_DECIMAL = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?$"


def json_schema_of(cls: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of what the API server should accept for a model.

    Raises:
        RegistrationError: a field's type has no JSON form.
    """
    if blamed := _unwritable_default(cls):
        raise RegistrationError(f"{cls.__name__}: the default of {' '.join(blamed)}")
    try:
        document = _Generator(by_alias=True).generate(codec_of(cls).schema, mode="validation")
    except PydanticInvalidForJsonSchema as error:
        raise RegistrationError(f"{cls.__name__} has a field that has no JSON form: {error.message}") from error
    except KeyError as error:
        raise RegistrationError(
            f"{cls.__name__}: a json_schema_extra has a $ref to {error}, which is nowhere"
        ) from error
    unwrapped: dict[str, Any] = _unwrapped(document)
    return unwrapped


class _Default:
    """A default that is a map or a list. Pydantic takes a key `$ref` in one for a reference, so it does not see it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _unwrapped(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _unwrapped(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_unwrapped(value) for value in node]
    return node.value if isinstance(node, _Default) else node


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice"}  # noqa: RUF012 (as in the class above)

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return {**super().int_schema(schema), "format": "int64"}

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        # The server finds that an empty text is no base64.
        return _noted(schema, {"type": "string", "anyOf": [{"format": "byte"}, {"maxLength": 0}]})

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return _noted(schema, {"type": "string", "format": "duration"})

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        return _noted(schema, super().date_schema(schema))

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        return _noted(schema, super().datetime_schema(schema))

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        return _noted(schema, super().time_schema(schema))

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return _noted(schema, {"type": "string", "pattern": _DECIMAL})

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result = super().model_schema(schema)
        # In wire form every model keeps unknown fields; the server is told so only where the user said it.
        if schema.get("root_model"):
            return result
        extras = result.pop("additionalProperties", None)
        if schema["cls"].model_config.get("extra") == "allow":
            if isinstance(extras, dict) and extras and not result.get("properties"):
                return {**result, "additionalProperties": extras}  # a map in all but name
            result[PRESERVE_UNKNOWN] = True
            if isinstance(extras, dict) and extras:
                result[NOTE] = "the server does not check the types of extra fields"
        return result

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        result = super().dict_schema(schema)
        keys = schema.get("keys_schema", {"type": "any"})
        if keys["type"] not in ("str", "any") and "patternProperties" not in result:
            result.setdefault("propertyNames", {})  # keys that are numbers, say, are any texts to a server
        return result

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        result = super().str_schema(schema)
        if found := perl_classes(result.get("pattern", "")):
            result[NOTE] = (
                f"{found} in the pattern knows only ASCII on the server, and all of Unicode in Python; say what is "
                "meant, such as [0-9], [A-Za-z0-9_] or [ \\t]"
            )
        return result

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        result = super().typed_dict_schema(schema)
        result.pop("additionalProperties", None)
        return result

    def encode_default(self, dft: Any) -> Any:
        value = _wire_value(dft)
        return _Default(value) if isinstance(value, (dict, list)) else value


# Limits that a schema can say of numbers and texts only.
_LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "max_digits", "decimal_places", "min_length", "max_length", "now_op")


def _noted(schema: Any, result: JsonSchemaValue) -> JsonSchemaValue:
    """The result, with a note of the limits that are lost on the way."""
    if lost := [limit for limit in _LIMITS if schema.get(limit) is not None]:
        result = {**result, NOTE: f"the server does not check {', '.join(lost)} of a {schema['type']}"}
    return result


def _wire_value(value: Any) -> Any:
    """A default in wire form.

    Raises:
        EncodeError: it has none, or is a secret: a CRD is no place for one.
    """
    if hasattr(value, "get_secret_value"):
        if hidden := value.get_secret_value():
            raise EncodeError("is a secret, which everybody could read in the CRD; give it no default", "object")
        return write_bytes(hidden)
    if isinstance(value, Mapping):
        return {str(_wire_value(key)): _wire_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_wire_value(inner) for inner in value]
    try:
        return wire_value(value)
    except EncodeError as error:
        if not error.problem.endswith("has no JSON form"):
            raise
        try:
            return wire_value(TypeAdapter(type(value)).dump_python(value, mode="json"))
        except (PydanticSerializationError, PydanticSchemaGenerationError):
            raise error from None


def _unwritable_default(
    cls: type[BaseModel], path: str = "", seen: frozenset[type] = frozenset()
) -> tuple[str, str] | None:
    """The first field of a model, or of the models in its fields, whose default has no wire form, and why."""
    for name, field in cls.model_fields.items():
        try:
            _wire_value(None if field.default is PydanticUndefined else field.default)
            if field.default_factory is not None and not field.default_factory_takes_validated_data:
                _wire_value(field.default_factory())  # type: ignore[call-arg]
        except EncodeError as error:
            return f"{path}{name}", error.problem
        for part in (field.annotation, *get_args(field.annotation)):
            inside = isinstance(part, type) and issubclass(part, BaseModel) and part not in seen
            if inside and (found := _unwritable_default(part, f"{path}{name}.", seen | {part})):
                return found
    return None
