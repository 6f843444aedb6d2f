from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from kopylite.errors import DecodeError, RegistrationError
from kopylite.objects import (
    CustomResource,
    Kind,
    ObjectKey,
    ObjectMeta,
    Unstructured,
    adapter_like,
    adapter_of,
    key_of,
    kind_of,
    meta_of,
    wire_of,
)
from kopylite.objects.reading import bytes_of, read_from


class AppSpec(BaseModel):
    max_replicas: int = 1


class App(CustomResource[AppSpec, None], group="example.com", version="v1"):
    pass


CONFIG_MAP = Kind("v1", "ConfigMap")
RAW = (
    b'{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"a","namespace":"b","x":1},'
    b'"spec":{"maxReplicas":2}}'
)


def test_the_room_does_not_import_the_kubernetes_client() -> None:
    code = "import sys, kopylite.objects; sys.exit('kubernetes_asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_there_is_one_adapter_a_kind() -> None:
    assert adapter_of(App) is adapter_of(App)
    assert adapter_of(CONFIG_MAP) is adapter_of(Kind("v1", "ConfigMap"))


def test_a_kind_is_completed_offline_where_it_can_be() -> None:
    assert adapter_of(CONFIG_MAP).kind == Kind("v1", "ConfigMap", "configmaps", True)
    assert kind_of(CONFIG_MAP) == kind_of(Unstructured(apiVersion="v1", kind="ConfigMap"))


def test_a_kind_reads_unstructured_and_each_read_is_a_copy() -> None:
    adapter = adapter_of(CONFIG_MAP)
    first, second = adapter.decode(b'{"data":{"a":"b"}}'), adapter.decode(b'{"data":{"a":"b"}}')
    first["data"]["a"] = "c"
    assert isinstance(second, Unstructured)
    assert second["data"] == {"a": "b"}


def test_encoding_fills_in_apiversion_and_kind() -> None:
    assert adapter_of(CONFIG_MAP).encode(Unstructured(data={})) == {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
    assert adapter_of(App).encode(App(spec=AppSpec())) == {"apiVersion": "example.com/v1", "kind": "App", "spec": {}}


def test_a_class_reads_instances_and_writes_them_back() -> None:
    app = adapter_of(App).decode(RAW)
    assert app.spec.max_replicas == 2
    assert wire_of(app) == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a", "namespace": "b", "x": 1},
        "spec": {"maxReplicas": 2},
    }


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"null"])
def test_broken_text_is_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="ConfigMap"):
        adapter_of(CONFIG_MAP).decode(raw)


def test_objects_of_every_form_have_a_key_a_kind_and_metadata() -> None:
    typed = adapter_of(App).decode(RAW)
    plain = adapter_of(Kind("example.com/v1", "App")).decode(RAW)
    for obj in (typed, plain):
        assert key_of(obj) == ObjectKey("b", "a")
        assert kind_of(obj).group_kind == ("example.com", "App")
        assert meta_of(obj) == {"name": "a", "namespace": "b", "x": 1}
    assert key_of(Unstructured(metadata={"name": "n"})) == ObjectKey("", "n")
    assert key_of(App(metadata=ObjectMeta(name="n"), spec=AppSpec())) == ObjectKey("", "n")


@pytest.mark.parametrize("thing", [str, int, object, BaseModel, dict])
def test_a_class_that_says_no_kind_is_refused(thing: Any) -> None:
    with pytest.raises(RegistrationError, match="is no kind"):
        adapter_of(thing)


@pytest.mark.parametrize("thing", ["apps/v1/Deployment", None, 7, {}, AppSpec()])
def test_what_is_no_kind_is_refused(thing: Any) -> None:
    with pytest.raises(RegistrationError, match="is no kind"):
        adapter_of(thing)


def test_an_object_without_a_kind_is_refused() -> None:
    with pytest.raises(RegistrationError, match="needs apiVersion and kind"):
        kind_of(Unstructured(kind="ConfigMap"))


class Shown:
    """An object of another library: a dict that can be replaced."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.shown = raw

    @property
    def raw(self) -> dict[str, Any]:
        return self.shown

    @raw.setter
    def raw(self, value: dict[str, Any]) -> None:
        self.shown = value


@pytest.mark.parametrize(
    "adapter", [adapter_of(App), adapter_of(Kind("example.com/v1", "App")), adapter_like(Shown(json.loads(RAW)))]
)
def test_an_object_of_any_form_knows_the_bytes_that_it_was_read_from(adapter: Any) -> None:
    obj = adapter.decode(RAW)
    assert bytes_of(obj) == RAW
    later = b'{"metadata":{"name":"a"}}'
    read_from(obj, lambda: later)
    assert [bytes_of(obj), bytes_of(obj)] == [later, later]
    assert bytes_of(App(spec=AppSpec())) is None
