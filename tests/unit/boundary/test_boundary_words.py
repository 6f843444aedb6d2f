from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.boundary import printable, read, say, show


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_an_exception_is_said_whatever_its_own_methods_do() -> None:
    assert say(ValueError("no")) == "ValueError: no"
    assert say(ValueError()) == "ValueError"
    assert say(Unspeakable()) == "Unspeakable: (its __str__ raised RuntimeError)"
    assert show(Unspeakable()) == "<Unspeakable, its __repr__ raised RuntimeError>"


def test_a_long_text_is_cut() -> None:
    assert len(say(ValueError("x" * 10_000_000))) < 3000
    assert len(show("x" * 10_000_000)) <= 200


@given(st.text(st.characters(exclude_categories=[])))
def test_a_printable_text_can_be_written_anywhere(text: str) -> None:
    result = printable(text)
    result.encode()
    assert not any(c < " " and c not in "\n\t" for c in result)
    assert "\x1b" not in result


def test_whatever_a_parser_raises_becomes_the_documented_error() -> None:
    def parse(data: bytes) -> int:
        raise RecursionError("maximum recursion depth exceeded")

    def refuse(data: bytes, error: Exception) -> LookupError:
        return LookupError(f"{len(data)} bytes: {say(error)}")

    with pytest.raises(LookupError, match=r"^'?3 bytes: RecursionError: maximum") as caught:
        read(parse, b"abc", refuse)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None  # nothing of the parser's text in a traceback
    assert read(int, b"12", refuse) == 12
