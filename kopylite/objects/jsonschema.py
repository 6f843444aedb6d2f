"""From a model in wire form to JSON Schema, with the formats of the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from kopylite.errors import RegistrationError
from kopylite.objects.modelcodec import codec_of, to_wire
from kopylite.objects.wireformats import write_bytes, write_duration, write_time

PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_DECIMAL = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?$"


def json_schema_of(cls: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of what the API server should accept for a model.

    Raises:
        RegistrationError: a field's type has no JSON form.
    """
    try:
        return _Generator(by_alias=True).generate(codec_of(cls).schema, mode="validation")
    except PydanticInvalidForJsonSchema as error:
        raise RegistrationError(f"{cls.__name__} has a field that has no JSON form: {error.message}") from error


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice"}  # noqa: RUF012 (as in the class above)

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return {**super().int_schema(schema), "format": "int64"}

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        # The server finds that an empty text is no base64.
        return {"type": "string", "anyOf": [{"format": "byte"}, {"maxLength": 0}]}

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return {"type": "string", "format": "duration"}

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return {"type": "string", "pattern": _DECIMAL}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result = super().model_schema(schema)
        # In wire form every model keeps unknown fields; the server is told so only where the user said it.
        result.pop("additionalProperties", None)
        if schema["cls"].model_config.get("extra") == "allow":
            result[PRESERVE_UNKNOWN] = True
        return result

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        result = super().typed_dict_schema(schema)
        result.pop("additionalProperties", None)
        return result

    def encode_default(self, dft: Any) -> Any:
        return _wire_value(dft)


def _wire_value(value: Any) -> Any:
    """A default in wire form."""
    if isinstance(value, BaseModel):
        return to_wire(value)
    if isinstance(value, Mapping):
        return {str(_wire_value(key)): _wire_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_wire_value(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_wire_value(inner) for inner in value), key=str)
    if isinstance(value, timedelta):
        return write_duration(value)
    if isinstance(value, datetime):
        return write_time(value)
    try:
        return to_jsonable_python(write_bytes(value))
    except PydanticSerializationError:
        return TypeAdapter(type(value)).dump_python(value, mode="json")
