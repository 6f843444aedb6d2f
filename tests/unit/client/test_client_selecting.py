from __future__ import annotations

from typing import Any

import pytest

from kopylite.client.selecting import field_selector_text, index_values, label_selector_text
from kopylite.errors import RegistrationError, UsageError
from kopylite.objects import Kind

CONFIG_MAP = Kind("v1", "ConfigMap")


def test_a_map_is_what_is_equal_and_a_text_is_the_servers_own_syntax() -> None:
    assert label_selector_text({"app": "web", "example.com/tier": ""}) == "app=web,example.com/tier="
    assert label_selector_text("app in (a, b)") == "app in (a, b)"
    assert label_selector_text({}) == field_selector_text({}) == ""
    assert field_selector_text({"metadata.name": "a,b=c\\d"}) == r"metadata.name=a\,b\=c\\d"


@pytest.mark.parametrize("wrong", [5, None, ["app=web"], {"app": 1}, {1: "web"}, {"app": None}, object()])
@pytest.mark.parametrize(("text", "option"), [(label_selector_text, "labels"), (field_selector_text, "fields")])
def test_what_is_no_selector_is_refused_by_the_name_of_the_option(wrong: Any, text: Any, option: str) -> None:
    with pytest.raises(UsageError, match=f"^{option} takes a text in the server's syntax, or a map of texts"):
        text(wrong)


@pytest.mark.parametrize("wrong", [{"app": "web,tier=db"}, {"app": "in (a)"}, {"a,b": "c"}, {"": "x"}, {"app": "a/b"}])
def test_a_map_of_labels_cannot_say_more_than_what_is_equal(wrong: dict[str, str]) -> None:
    with pytest.raises(RegistrationError, match="no label can be"):
        label_selector_text(wrong, "watch: labels", RegistrationError)


def test_values_of_an_index_are_spelled_as_in_json() -> None:
    wanted = {"spec.a": "x", "spec.b": 3, "spec.c": True, "spec.d": 1.5}
    assert index_values(CONFIG_MAP, wanted) == {"spec.a": "x", "spec.b": "3", "spec.c": "true", "spec.d": "1.5"}


@pytest.mark.parametrize(
    "wrong", ["spec.a", [("spec.a", "b")], {"spec.a": None}, {"spec.a": ["b"]}, {5: "b"}, {"": "b"}]
)
def test_an_index_that_could_only_find_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"^index"):
        index_values(CONFIG_MAP, wrong)
