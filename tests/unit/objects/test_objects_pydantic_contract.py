"""What kopylite relies on in pydantic beyond its documented API. A release that fails here is not supported yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import SchemaSerializer, SchemaValidator

from kopylite.objects.modelcodec import codec_of


class Inner(BaseModel):
    long_name: int


class Outer(BaseModel):
    inner_part: Inner


def test_a_nested_class_is_compiled_anew_though_it_has_been_compiled() -> None:
    assert Inner(long_name=1).model_dump() == {"long_name": 1}, "it is compiled, and knows its Python names only"
    outer = codec_of(Outer).decode(b'{"innerPart": {"longName": 1}}')
    message = "pydantic-core ignores _use_prebuilt: see _compile in kopylite/objects/modelcodec.py"
    assert outer.inner_part.long_name == 1, message
    assert codec_of(Outer).encode(outer) == {"innerPart": {"longName": 1}}, message


@pytest.mark.parametrize("compile_schema", [SchemaValidator, SchemaSerializer])
def test_it_is_this_argument_that_does_it(compile_schema: Callable[..., Any]) -> None:
    compile_schema(codec_of(Outer).schema, None, _use_prebuilt=False)
    with pytest.raises(TypeError):
        compile_schema(codec_of(Outer).schema, None, _no_such_argument=False)


def test_a_class_is_told_when_it_is_complete() -> None:
    told = []

    class Hooked(BaseModel):
        later: Later

        @classmethod
        def __pydantic_on_complete__(cls) -> None:
            told.append(cls.__pydantic_complete__)

    assert told == []

    class Later(BaseModel):
        pass

    Hooked.model_rebuild()
    assert told == [True]
