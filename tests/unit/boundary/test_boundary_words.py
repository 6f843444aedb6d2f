from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.boundary import printable, read, say, show
from kopylite.errors import Conflict


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_an_exception_is_said_whatever_its_own_methods_do() -> None:
    assert say(ValueError("no")) == "ValueError: no"
    assert say(ValueError()) == "ValueError"
    assert say(Unspeakable()) == "Unspeakable: (its __str__ raised RuntimeError)"
    assert show(Unspeakable()) == "<Unspeakable, its __repr__ raised RuntimeError>"


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), GeneratorExit(), BaseException()])
def test_a_text_that_cannot_be_made_ends_no_task_and_no_process(error: BaseException) -> None:
    class Malicious(Exception):
        def __str__(self) -> str:
            raise error

        __repr__ = __str__

    assert say(Malicious()) == f"Malicious: (its __str__ raised {type(error).__name__})"
    assert show(Malicious()) == f"<Malicious, its __repr__ raised {type(error).__name__}>"


def test_a_person_can_interrupt_a_text() -> None:
    class Slow(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

        __repr__ = __str__

    for words in (say, show):
        with pytest.raises(KeyboardInterrupt):
            words(Slow())


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


def test_a_group_says_what_is_in_it_and_not_that_it_is_one() -> None:
    inner = ExceptionGroup("unhandled errors in a TaskGroup", [KeyError("b"), Conflict("newer")])
    text = say(ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("no"), inner, OSError(), OSError("e")]))
    assert text == "ExceptionGroup of ValueError: no; KeyError: 'b'; Conflict: 409 Conflict: newer; and 2 more"


def test_a_deep_group_and_one_of_equal_members_stay_short() -> None:
    group: ExceptionGroup[Exception] = ExceptionGroup("", [ValueError("no")] * 3)
    for _ in range(5000):
        group = ExceptionGroup("", [group])
    assert say(group) == "ExceptionGroup of ValueError: no"
