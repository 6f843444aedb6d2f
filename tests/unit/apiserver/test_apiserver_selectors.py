from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.request.selectors import parse_field_selector, parse_label_selector
from kopylite.errors import BadRequest

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]))


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("a=x", {"a": "x"}, {"a": "y"}),
        ("a==x", {"a": "x"}, {}),
        ("a!=x", {}, {"a": "x"}),
        ("a in (x, y)", {"a": "y"}, {"a": "z"}),
        ("a notin (x)", {}, {"a": "x"}),
        ("a notin (x,)", {"a": "y"}, {"a": ""}),
        ("a", {"a": ""}, {"b": "x"}),
        ("!a", {"b": "x"}, {"a": "x"}),
        ("a=", {"a": ""}, {"a": "x"}),
        ("a>1", {"a": "2"}, {"a": "1"}),
        ("a<2", {"a": "1"}, {"a": "x"}),
        ("a=x,b", {"a": "x", "b": ""}, {"a": "x"}),
        ("x.io/a=b", {"x.io/a": "b"}, {}),
        ("in in (notin)", {"in": "notin"}, {}),
    ],
)
def test_a_label_selector_matches_as_in_kubernetes(text: str, matching: dict[str, str], other: dict[str, str]) -> None:
    selector = parse_label_selector(text)
    assert selector.matches(matching)
    assert not selector.matches(other)


@given(LABELS, st.sampled_from("abc"), st.sets(st.sampled_from(["x", "y"]), min_size=1))
def test_notin_is_the_opposite_of_in_and_unequal_of_equal(labels: dict[str, str], key: str, values: set[str]) -> None:
    listed = ",".join(sorted(values))
    assert parse_label_selector(f"{key} in ({listed})").matches(labels) != parse_label_selector(
        f"{key} notin ({listed})"
    ).matches(labels)
    assert parse_label_selector(f"{key}=x").matches(labels) != parse_label_selector(f"{key}!=x").matches(labels)
    assert parse_label_selector(key).matches(labels) != parse_label_selector(f"!{key}").matches(labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=!!", "unable to parse requirement: found '!', expected: identifier"),
        ("a foo b", "unable to parse requirement: found 'foo', expected: in, notin, =, ==, !=, gt, lt"),
        ("/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
        ("a>x", "unable to parse requirement: values[0]: Invalid value"),
        ("a=-", "unable to parse requirement: values[0][a]: Invalid value"),
    ],
)
def test_a_broken_label_selector_fails_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_label_selector(text)
    assert refused.value.message.startswith(message)


def test_field_selectors_unescape_their_values() -> None:
    selector = parse_field_selector(r"a.b=x\,y\\z,c!=d")
    assert selector.matches({"a.b": r"x,y\z", "c": "e"})
    assert not selector.matches({"a.b": r"x,y\z", "c": "d"})


@pytest.mark.parametrize("text", ["abc", "a=b=c"])
def test_a_broken_field_selector_is_a_bad_request(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_field_selector(text)


@given(st.text(max_size=12))
def test_any_text_parses_or_is_a_bad_request(text: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            parse(text).matches({"a": "b"})
        except BadRequest:
            continue
