from __future__ import annotations

import pytest

from kopylite.cache import parse_label_selector
from kopylite.errors import UsageError


@pytest.mark.parametrize(
    ("selector", "matching", "others"),
    [
        ("", [{}, {"a": "b"}], []),
        ("a=b", [{"a": "b"}], [{}, {"a": "c"}]),
        ("a==b", [{"a": "b"}], [{"a": "c"}]),
        ("a=", [{"a": ""}], [{}, {"a": "x"}]),
        ("a!=b", [{}, {"a": "c"}], [{"a": "b"}]),
        ("a", [{"a": ""}, {"a": "x"}], [{}]),
        ("!a", [{}], [{"a": ""}]),
        ("a in (x, y)", [{"a": "x"}, {"a": "y"}], [{}, {"a": "z"}]),
        ("a notin (x,y)", [{}, {"a": "z"}], [{"a": "x"}]),
        ("a in ()", [{"a": ""}], [{"a": "x"}]),
        ("a > 5", [{"a": "6"}], [{}, {"a": "5"}, {"a": "many"}]),
        ("a<5", [{"a": "-1"}], [{"a": "5"}]),
        ("app.kubernetes.io/name=web,tier in (a),!old", [{"app.kubernetes.io/name": "web", "tier": "a"}],
         [{"app.kubernetes.io/name": "web"}, {"app.kubernetes.io/name": "web", "tier": "a", "old": ""}]),
    ],
)  # fmt: skip
def test_a_selector_means_what_the_server_means_by_it(
    selector: str, matching: list[dict[str, str]], others: list[dict[str, str]]
) -> None:
    parsed = parse_label_selector(selector)
    assert all(parsed.matches(labels) for labels in matching)
    assert not any(parsed.matches(labels) for labels in others)


def test_no_labels_are_like_empty_labels() -> None:
    assert parse_label_selector("!a").matches(None)


@pytest.mark.parametrize("selector", ["a=b,", ",a", "a in x", "a b", "=b", "a in (x", "a>b", "-a", "!", "a=b=c"])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(UsageError, match="label selector"):
        parse_label_selector(selector)
