from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kopylite.client.paths import check_path, parse_path, top_reader, value_at
from kopylite.errors import UsageError
from kopylite.objects import CustomResource, Kind


class Volume(BaseModel):
    name: str


class Spec(BaseModel):
    config_map: str = ""
    volumes: list[Volume] = []
    limits: dict[str, int] = {}
    free: Any = None


class Shop(CustomResource[Spec, None], group="example.com", version="v1"):
    pass


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("spec", ("spec",)),
        ("spec.config", ("spec", "config")),
        ("metadata.annotations['example.com/team']", ("metadata", "annotations", "example.com/team")),
        ('data["a.b"].c', ("data", "a.b", "c")),
    ],
)
def test_a_path_is_read(path: str, names: tuple[str, ...]) -> None:
    assert parse_path(path) == names


@pytest.mark.parametrize(
    "wrong", ["", ".", "spec.", ".spec", "spec..a", "spec[0]", "spec['a", "a b", None, 5, ["spec"]]
)
def test_what_is_no_path_is_refused_with_one_that_is(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"'spec\.config'"):
        parse_path(wrong)


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert all(parse_path(text))


@pytest.mark.parametrize(
    "path",
    [
        *("spec.configMap", "spec.volumes.name", "spec.limits.cpu", "spec.free.what.ever", "metadata.labels.app"),
        *("metadata.ownerReferences.uid", "kind", "spec"),
    ],
)
def test_a_field_of_the_class_passes(path: str) -> None:
    check_path(Shop, path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("spec.config_map", "spec of Shop has no field 'config_map'; did you mean 'configMap'?"),
        ("spec.volumes.nane", "spec.volumes of Shop has no field 'nane'; did you mean 'name'?"),
        ("spec.configMap.name", "spec.configMap of Shop has no field 'name'; it has none"),
        ("spec.zzz", "it has configMap, free, limits, volumes"),
        ("specc.configMap", "Shop of Shop has no field 'specc'; did you mean 'spec'?"),
        ("metadata.labls.app", "did you mean 'labels'?"),
    ],
)
def test_a_field_that_the_class_does_not_have_is_named(path: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_path(Shop, path)
    assert message in str(refused.value)


def test_of_a_kind_without_a_class_only_the_syntax_is_known() -> None:
    check_path(Kind("v1", "ConfigMap"), "data.what")
    with pytest.raises(UsageError):
        check_path(Kind("v1", "ConfigMap"), "data.")


def test_lists_on_the_way_stand_for_their_items() -> None:
    value = {"volumes": [{"name": "a"}, {"name": "b"}, {}, 5]}
    assert value_at(value, ("volumes", "name")) == ["a", "b", None, None]
    assert value_at(value, ("volumes",)) == value["volumes"]
    assert value_at(value, ("absent", "name")) is None


def test_one_field_of_a_body_is_read_as_its_bytes() -> None:
    assert bytes(top_reader("spec")(b'{"kind":"A","spec":{"a":1},"status":{}}').value) == b'{"a":1}'
    assert bytes(top_reader("spec")(b"{}").value) == b""
