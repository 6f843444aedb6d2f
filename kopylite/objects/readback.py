"""Whether a model reads back as it is from what was written of it, and if not, which field is to blame."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import BaseModel, ValidationError

from kopylite.errors import EncodeError
from kopylite.objects.faults import faults_of
from kopylite.objects.wirevalues import field_path, wire_value

if TYPE_CHECKING:
    from kopylite.objects.modelcodec import ModelCodec

FieldSteps = list[str | int]

# What a serializer's error says of the exception of our own function.
_OWN_WORDS = re.compile(r"ValueError: (.*)")


def check_reads_back(model: Any, wire: dict[str, Any], codec: ModelCodec[Any]) -> None:
    """Read what was written, and compare.

    A status that is written in part may lack required fields. Parts of a second may be cut off, as the API's own times
    do.

    Raises:
        EncodeError: naming the first field that would be another one.
    """
    name = type(model).__name__
    try:
        again = codec.validator.validate_json(msgspec.json.encode(wire), strict=True)
    except ValidationError as error:
        for fault in faults_of(error):
            if fault["type"] != "missing":
                raise EncodeError(_problem(fault), field_path(list(fault["loc"])), name) from None
        return
    except UnicodeEncodeError:
        wire_value(wire, name=name)  # says where
        raise
    if again == model:
        return
    steps = _difference(model, again)
    if steps is not None:
        raise EncodeError("would not read back as it is", field_path(steps), name)


def _problem(fault: Any) -> str:
    text = str(fault["msg"])
    return f"could not be read back: {text[:1].lower()}{text[1:]}"


def _difference(a: Any, b: Any) -> FieldSteps | None:
    """The way to the first value that was lost or changed; None: there is none."""
    if a is b or a == b:
        return None
    if isinstance(a, BaseModel) and type(a) is type(b):
        parts = {name: (a.__dict__.get(name), b.__dict__.get(name)) for name in type(a).model_fields}
        extra, extra_again = a.__pydantic_extra__ or {}, b.__pydantic_extra__ or {}
        return _first(parts | {name: (extra.get(name), extra_again.get(name)) for name in {**extra, **extra_again}})
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return _first({key: (a[key], b[key]) for key in a})
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return _first(dict(enumerate(zip(a, b, strict=True))))
    if isinstance(a, datetime) and isinstance(b, datetime) and (a.tzinfo is None) == (b.tzinfo is None):
        return None if abs(a - b) < timedelta(seconds=1) else []
    cls: Any = type(a)
    if cls is type(b) and "__eq__" not in {name for base in cls.__mro__[:-1] for name in vars(base)}:
        return None  # it has no equality of its own
    try:
        return None if wire_value(a) == b else []  # of a field of any type, what the wire has for it
    except EncodeError:
        return []


def _first(pairs: Mapping[Any, tuple[Any, Any]]) -> FieldSteps | None:
    for step, (a, b) in pairs.items():
        if (inner := _difference(a, b)) is not None:
            return [step if isinstance(step, int) else str(step), *inner]
    return None


def why_not(model: Any, error: Exception, dump: Callable[..., Any]) -> EncodeError:
    """The error for a model that cannot be written: looks for the field, one after the other."""
    name = type(model).__name__
    if isinstance(error, RecursionError):
        return EncodeError("is nested too deep, or contains itself", "object", name)
    steps: FieldSteps = []
    value: Any = model
    while (parts := _parts(value)) and not _fails(dump, model, [*steps, _NOWHERE]):
        for step, inner in parts.items():
            if (found := _fails(dump, model, [*steps, step])) is not None:
                error, value = found, inner
                steps.append(step)
                break
        else:
            break
    try:
        wire_value(value)  # it may know the way into what pydantic writes in one piece
    except EncodeError as deeper:
        inside = [deeper.field] if deeper.field != "object" else []
        return EncodeError(deeper.problem, field_path([*steps, *inside]), name)
    match = _OWN_WORDS.search(str(error))
    return EncodeError(match[1] if match else "has no JSON form", field_path(steps), name)


# A field, key and index that nothing has: where even this part cannot be written, the value is written in one piece.
_NOWHERE = 1_000_000


def _fails(dump: Callable[..., Any], model: Any, steps: list[Any]) -> Exception | None:
    """Why one part of a model cannot be written; None: it can."""
    include: Any = True
    for step in reversed(steps):
        include = {step: include}
    try:
        dump(model, include)
    except Exception as error:
        return error
    return None


def _parts(value: Any) -> dict[Any, Any]:
    if isinstance(value, BaseModel):
        return {name: value.__dict__.get(name) for name in type(value).model_fields}
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else {}
