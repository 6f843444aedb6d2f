"""What is made of foreign bytes, and what of them must not get out."""

from __future__ import annotations

import math
import traceback

import pytest

from kopylite.boundary.reading import LONGEST_WAIT, json_object, read, seconds_to_wait


def test_what_a_parser_raises_becomes_the_documented_error_and_shows_nothing_of_what_was_parsed() -> None:
    secret = b"s3" + b"cret"  # a traceback shows lines of this file

    def parse(data: bytes) -> object:
        raise ValueError(f"cannot parse {data!r}")

    with pytest.raises(KeyError) as raised:
        read(parse, secret, lambda data, error: KeyError(f"no list of {len(data)} bytes"))
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))
    assert raised.value.__cause__ is raised.value.__context__ is None


def test_what_is_meant_for_the_process_is_not_taken_for_a_misfit() -> None:
    def parse(data: bytes) -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(parse, b"", lambda data, error: ValueError())
    assert read(len, b"abc", lambda data, error: ValueError()) == 3


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"5", b"null", b'"a"', b"{", b"\xff\xfe", b"<html>", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_what_is_no_object_is_an_empty_one(text: bytes) -> None:
    assert json_object(text) == {}


def test_what_is_one_is_read() -> None:
    assert json_object(b'{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize("asked", [None, "5", True, 0, -1, math.nan, -math.inf, [], {}])
def test_what_is_no_time_is_not_waited_for(asked: object) -> None:
    assert seconds_to_wait(asked) is None


def test_a_server_that_asks_for_years_is_not_heeded() -> None:
    assert [seconds_to_wait(asked) for asked in (1, 0.5, 3600)] == [1.0, 0.5, 3600.0]
    assert {seconds_to_wait(asked) for asked in (3601, 10**18, math.inf, 10**400)} == {LONGEST_WAIT}
