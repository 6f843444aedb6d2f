"""ModelCodec: between the bytes of an API object and an instance of a pydantic model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast, get_origin
from weakref import WeakKeyDictionary

import msgspec
from pydantic import BaseModel, RootModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticSerializationError, SchemaSerializer, SchemaValidator

from kopylite.boundary import read
from kopylite.errors import DecodeError, EncodeError
from kopylite.objects.faults import describe, faults_of
from kopylite.objects.readback import check_reads_back, why_not
from kopylite.objects.unstructured import misfit, unreadable
from kopylite.objects.wireschema import wire_schema

ModelT = TypeVar("ModelT", bound=BaseModel)

# What pydantic's `exclude` takes: a field to leave out, or what to leave out inside it.
_Exclusion = dict[Any, Any]

_EMPTY_FOR = {
    "dict_type": dict,
    "model_type": dict,
    "model_attributes_type": dict,
    "dataclass_type": dict,
} | dict.fromkeys(("list_type", "set_type", "frozen_set_type", "tuple_type"), list)

_rules: WeakKeyDictionary[type[BaseModel], dict[str, _Rule]] = WeakKeyDictionary()
_codecs: WeakKeyDictionary[type[BaseModel], ModelCodec[Any]] = WeakKeyDictionary()


class ModelCodec(Generic[ModelT]):
    """Reads and writes instances of one model class in wire form (see `wireschema`).

    Reading what was written, or writing what was read, changes nothing that Kubernetes would notice: defaults
    that nobody set are not written, fields changed in place are, unknown fields are kept.

    Args:
        schema: the finished core schema of the class.
        keep_all: keep unknown fields also where a model forbids them.
    """

    __slots__ = ("schema", "serializer", "validator")

    def __init__(self, schema: CoreSchema, *, keep_all: bool = False) -> None:
        self.schema: CoreSchema = wire_schema(schema, keep_all=keep_all)
        self.validator, self.serializer = _compile(self.schema)

    def decode(self, raw: bytes) -> ModelT:
        """The instance for a JSON text. As on the API server, a text is no number and 1.0 no integer.

        A null where the model wants a list or map counts as an empty one, any other unwanted null as absent:
        other clients write them, and the server keeps them.

        Raises:
            DecodeError: naming the object and each field that does not fit.
        """
        try:
            return self.validator.validate_json(raw, strict=True)  # type: ignore[no-any-return]
        except Exception as error:
            problem = error
        return read(partial(self._decode_otherwise, problem), raw, self._refuse)

    def _decode_otherwise(self, problem: Exception, raw: bytes) -> ModelT:
        if isinstance(problem, ValidationError):
            return self._decode_without_nulls(raw, problem)
        raise problem

    def _refuse(self, raw: bytes, error: Exception) -> Exception:
        return error if isinstance(error, DecodeError) else unreadable(raw, error, self.validator.title)

    def _decode_without_nulls(self, raw: bytes, error: ValidationError) -> ModelT:
        document = msgspec.json.decode(raw)
        replaced = [
            _replace_null(document, fault["loc"], fault["type"]) for fault in faults_of(error) if fault["input"] is None
        ]
        try:
            if any(replaced):
                return self.validator.validate_json(msgspec.json.encode(document), strict=True)  # type: ignore[no-any-return]
        except ValidationError as second:
            error = second
        # The document is read anew, as it is stored. Not `from error`: a traceback would show pydantic's text, and
        # that shows the values.
        raise misfit(msgspec.json.decode(raw), describe(error), error.title) from None

    def encode(self, model: ModelT, *, nulls: bool = False) -> dict[str, Any]:
        """The wire form, as a dict of JSON values that is the caller's own.

        Args:
            nulls: write each None that was set, outside of lists: in a patch it takes the field out.

        Raises:
            EncodeError: naming a field that would not read back as it is.
        """
        result = self.dump(model, nulls=nulls)
        check_reads_back(model, result, self)
        return result

    def dump(self, model: ModelT, *, nulls: bool = False) -> dict[str, Any]:
        """The wire form without a look at how it would be read; for what is not sent."""
        try:
            result: dict[str, Any] = self._dump(model, nulls=nulls)
        except EncodeError:
            raise
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            raise why_not(model, error, self._dump) from None
        return result

    def _dump(self, model: ModelT, include: Any = None, *, nulls: bool = False) -> Any:
        return self.serializer.to_python(
            model,
            mode="json",
            by_alias=True,
            exclude_unset=True,
            include=include,
            exclude=_review(model, nulls) or None,
            round_trip=True,
            warnings=False,  # what does not fit is found when it is read back
        )


def _compile(schema: CoreSchema) -> tuple[SchemaValidator, SchemaSerializer]:
    """Compile a rewritten schema, and nothing else.

    Left alone, pydantic-core takes each nested class's own compiled parts, which know only the Python names. Nothing
    public turns that off; `_use_prebuilt`, by which pydantic itself rebuilds models, does, in all releases since 2.13.
    A release without it fails here at once, with a TypeError; one that ignores it fails a test of this module.
    """
    # pydantic-core keeps 16,000 short texts for the next time. Names, uids and versions come once, and what a Secret
    # holds is to stay nowhere; keys of maps come again.
    validator = SchemaValidator(schema, {"cache_strings": "keys"}, _use_prebuilt=False)
    return validator, SchemaSerializer(schema, None, _use_prebuilt=False)


def codec_of(cls: type[ModelT]) -> ModelCodec[ModelT]:
    """The codec of a model class; compiled once."""
    codec = _codecs.get(cls)
    if codec is None:
        cls.model_rebuild()
        codec = _codecs[cls] = ModelCodec(cls.__pydantic_core_schema__)
    return codec


def to_wire(value: BaseModel | Mapping[str, Any], *, nulls: bool = False) -> dict[str, Any]:
    """The wire form of a part of an object: a model (a spec, a status) or a map that is in wire form already.

    Args:
        nulls: of a model, write each None that was set; see `ModelCodec.encode`.
    """
    if isinstance(value, BaseModel):
        return codec_of(type(value)).encode(value, nulls=nulls)
    if isinstance(value, Mapping):
        return dict(value)
    raise EncodeError(f"is a {type(value).__name__}, and no model or map", "object")


class _Rule(msgspec.Struct, frozen=True):
    """What writing a field depends on.

    Attributes:
        null_is_absence: None is the default, so a null need not be written.
        constant: a Literal, such as the tag of a union: it says which variant this is, so it is never left out.
        made: the default comes from a factory and may be another one each time.
        default: makes what the field holds when nobody gave it a value.
    """

    null_is_absence: bool
    constant: bool
    made: bool
    default: Callable[[], Any]


def _rules_of(cls: type[BaseModel]) -> dict[str, _Rule]:
    rules = _rules.get(cls)
    if rules is None:
        rules = _rules[cls] = {
            name: _Rule(
                field.default is None,
                get_origin(field.annotation) is Literal,
                field.default_factory is not None,
                _default_of(field),
            )
            for name, field in cls.model_fields.items()
        }
    return rules


def _default_of(field: FieldInfo) -> Callable[[], Any]:
    if field.default_factory is None:
        return lambda: field.default
    if field.default_factory_takes_validated_data:
        return object  # it depends on other fields: equal to nothing, so what it made is written
    return cast("Callable[[], Any]", field.default_factory)


# Deeper than any object can be read at Python's own recursion limit. Python 3.13 was seen to run on without limit in a
# value that contains itself, until the memory was used up.
_MAX_DEPTH = 900


def _review(value: Any, nulls: bool = False, depth: int = 0) -> _Exclusion:
    """Prepare a value for `exclude_unset`, and say what else to leave out.

    Fields whose default was changed in place (`status.conditions.append(...)`) are noted as set. Nulls that mean
    the same as absence are left out; a null that differs from the default, or that is required, is kept.
    """
    if depth > _MAX_DEPTH:
        raise RecursionError("it nests too deep, or contains itself")
    exclusion: _Exclusion = {}
    if isinstance(value, BaseModel):
        given = value.model_fields_set
        for name, rule in _rules_of(type(value)).items():
            inner = value.__dict__.get(name)  # not getattr: it would warn of deprecated fields
            if inner is None:
                if rule.null_is_absence and name in given and not nulls:
                    exclusion[name] = True
            elif isinstance(inner, (BaseModel, list, dict, set)):
                nested = _review(inner, nulls, depth + 1)
                if name not in given and inner != rule.default():
                    given.add(name)
                if nested:
                    exclusion[name] = nested
            elif rule.constant or (rule.made and name not in given and inner != rule.default()):
                given.add(name)
        return {} if isinstance(value, RootModel) else exclusion
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(inner, (BaseModel, list, dict)) and (nested := _review(inner, depth=depth + 1)):
            exclusion[key] = nested
    return exclusion


def _replace_null(document: Any, path: tuple[int | str, ...], fault: str) -> bool:
    """Replace the unwanted null at a path; False when the path is not one of the document (a union's label)."""
    *parents, last = path or ("",)
    try:
        for step in parents:
            document = document[step]
        if document[last] is not None:
            return False
    except (KeyError, IndexError, TypeError):
        return False
    if fault in _EMPTY_FOR:
        document[last] = _EMPTY_FOR[fault]()
    elif isinstance(document, dict):
        del document[last]
    else:
        return False
    return True
