from __future__ import annotations

import pytest

from kopylite.objects import LabelSelector, LabelSelectorRequirement


def requirement(operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement.model_validate({"key": "k", "operator": operator, "values": list(values)})


@pytest.mark.parametrize(
    ("wanted", "labels", "matches", "text"),
    [
        (requirement("In", "a", "b"), {"k": "a"}, True, "k in (a,b)"),
        (requirement("In", "a"), {}, False, "k in (a)"),
        (requirement("NotIn", "a"), {"k": "a"}, False, "k notin (a)"),
        (requirement("NotIn", "a"), {}, True, "k notin (a)"),
        (requirement("Exists"), {"k": ""}, True, "k"),
        (requirement("Exists"), {}, False, "k"),
        (requirement("DoesNotExist"), {"k": ""}, False, "!k"),
        (requirement("DoesNotExist"), {}, True, "!k"),
    ],
)
def test_a_requirement_matches_as_on_the_server(
    wanted: LabelSelectorRequirement, labels: dict[str, str], matches: bool, text: str
) -> None:
    assert wanted.matches(labels) == matches
    assert str(wanted) == text


def test_all_conditions_of_a_selector_must_hold() -> None:
    selector = LabelSelector(match_labels={"app": "web"}, match_expressions=[requirement("Exists")])
    assert selector.matches({"app": "web", "k": "1"})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "db", "k": "1"})
    assert str(selector) == "app=web,k"


def test_an_empty_selector_matches_everything() -> None:
    assert LabelSelector().matches({})
    assert str(LabelSelector()) == ""
