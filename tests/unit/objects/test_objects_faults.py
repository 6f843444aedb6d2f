from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from kopylite.objects.faults import describe, faults_of


class Port(BaseModel):
    number: int


class Spec(BaseModel):
    ports: list[Port]


def error_of(*numbers: Any) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Spec.model_validate({"ports": [{"number": number} for number in numbers]})
    return caught.value


def test_a_fault_is_told_with_its_place_and_without_the_value() -> None:
    text = describe(error_of(1, "hunter2"))
    assert text.startswith("ports[1].number: Input should be a valid integer")
    assert "hunter2" not in text
    assert "\n" not in text


def test_of_many_faults_the_first_few_are_told_and_the_rest_is_counted() -> None:
    text = describe(error_of(*"abcdefgh"))
    assert [f"ports[{n}]" in text for n in range(8)] == [True] * 5 + [False] * 3
    assert text.endswith("; and 3 more")
    assert "more" not in describe(error_of(*"abcde"))


def test_faults_are_plain_data_without_links() -> None:
    class Named(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def _judged(cls, name: str) -> str:
            raise ValueError("never")

    with pytest.raises(ValidationError) as caught:
        Named.model_validate({"name": "x"})
    assert "ctx" not in faults_of(caught.value)[0], "it has an exception inside"
    [fault] = faults_of(error_of("x"))
    assert fault["loc"] == ("ports", 0, "number")
    assert not {"url", "ctx"} & set(fault)
