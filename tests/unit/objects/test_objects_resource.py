from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from kopylite.errors import RegistrationError
from kopylite.objects import CustomResource, Kind, ObjectMeta, Scale, Unstructured, adapter_of, kind_of
from kopylite.objects.resource import Declaration, plural_of


class AppSpec(BaseModel):
    image: str
    max_replicas: int = 1


class AppStatus(BaseModel):
    ready_replicas: int = 0
    messages: list[str] = []


class WebApp(CustomResource[AppSpec, AppStatus], group="example.com", version="v1", short_names=["wa"]):
    """A web application."""


def test_the_class_keywords_say_the_kind() -> None:
    assert WebApp.declaration == Declaration(
        "example.com", "v1", "WebApp", "webapps", "webapp", "WebAppList", short_names=("wa",)
    )
    assert kind_of(WebApp) == Kind("example.com/v1", "WebApp", "webapps", True)


def test_every_keyword_can_be_given() -> None:
    class Box(
        CustomResource[AppSpec, None],
        group="example.com",
        version="v1",
        kind="Crate",
        plural="crates-of",
        singular="one-crate",
        list_kind="Crates",
        scope="Cluster",
        scale=Scale(),
    ):
        pass

    assert kind_of(Box) == Kind("example.com/v1", "Crate", "crates-of", False)
    assert Box.declaration is not None
    assert (Box.declaration.singular, Box.declaration.list_kind) == ("one-crate", "Crates")


def test_a_new_object_knows_its_kind_and_has_an_empty_status() -> None:
    app = WebApp(metadata=ObjectMeta(name="a", namespace="b"), spec=AppSpec(image="x"))
    assert (app.api_version, app.kind, app.name, app.namespace) == ("example.com/v1", "WebApp", "a", "b")
    assert (app.uid, app.resource_version, app.generation) == ("", "", 0)
    assert app.status.ready_replicas == 0


def test_the_constructor_takes_wire_names_and_python_names() -> None:
    by_wire = WebApp(spec={"image": "x", "maxReplicas": 2})
    by_python = WebApp(spec={"image": "x", "max_replicas": 2})
    assert by_wire.spec == by_python.spec == AppSpec(image="x", max_replicas=2)


def test_the_users_own_classes_are_left_alone() -> None:
    assert AppSpec.model_validate({"image": "x", "maxReplicas": 2}).max_replicas == 1
    assert AppSpec(image="x").model_dump() == {"image": "x", "max_replicas": 1}


def test_each_new_object_has_a_status_of_its_own() -> None:
    first, second = WebApp(spec=AppSpec(image="x")), WebApp(spec=AppSpec(image="x"))
    first.status.messages.append("hello")
    assert second.status.messages == []


def test_the_fields_of_a_class_say_their_defaults() -> None:
    fields = WebApp.model_fields
    assert [name for name, field in fields.items() if field.is_required()] == ["spec"]
    assert fields["status"].get_default(call_default_factory=True) == AppStatus()
    assert (fields["api_version"].default, fields["kind"].default) == ("example.com/v1", "WebApp")


def test_a_spec_that_is_complete_when_empty_may_be_absent() -> None:
    class Empty(BaseModel):
        size: int = 1

    class Thing(CustomResource[Empty, None], group="example.com", version="v1"):
        pass

    assert adapter_of(Thing).decode(b'{"metadata":{"name":"a"}}').spec == Empty(size=1)
    with pytest.raises(ValidationError, match="spec"):
        WebApp()  # type: ignore[call-arg]


def test_a_status_with_required_fields_must_be_optional() -> None:
    class Strict(BaseModel):
        phase: str

    with pytest.raises(RegistrationError, match="a new object has no status"):

        class Broken(CustomResource[AppSpec, Strict], group="example.com", version="v1"):
            pass

    class Fine(CustomResource[AppSpec, Strict | None], group="example.com", version="v1"):
        pass

    assert Fine(spec=AppSpec(image="x")).status is None


def test_spec_and_status_may_be_plain_maps() -> None:
    class Loose(CustomResource[dict[str, Any], dict[str, Any]], group="example.com", version="v1"):
        pass

    loose = adapter_of(Loose).decode(b'{"metadata":{"name":"a"},"spec":{"deepKey":{"a_b":1}}}')
    assert loose.spec == {"deepKey": {"a_b": 1}}
    assert loose.status == {}


def test_group_and_version_come_together() -> None:
    with pytest.raises(RegistrationError, match="both group= and version="):

        class Half(CustomResource[AppSpec, None], group="example.com"):
            pass


def test_an_unknown_keyword_is_refused_by_name() -> None:
    with pytest.raises(RegistrationError, match="'groop'"):
        type("Typo", (CustomResource[AppSpec, None],), {"__module__": __name__}, groop="example.com", version="v1")


def test_a_subclass_takes_over_what_it_does_not_say() -> None:
    class WebAppV2(WebApp, version="v2", kind="WebApp"):
        pass

    assert kind_of(WebAppV2) == Kind("example.com/v2", "WebApp", "webapps", True)
    assert WebAppV2(spec=AppSpec(image="x")).api_version == "example.com/v2"
    assert kind_of(WebApp) == Kind("example.com/v1", "WebApp", "webapps", True)


def test_a_class_without_keywords_is_no_kind() -> None:
    class Base(CustomResource[AppSpec, None]):
        pass

    with pytest.raises(RegistrationError, match="Base is no kind yet"):
        kind_of(Base)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("MyApp", "myapps"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
        ("Batch", "batches"),
        ("Status", "statuses"),
        ("Alias", "aliases"),
        ("Redis", "redis"),
        ("Settings", "settings"),
    ],
)
def test_the_plural_is_english(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_models_that_are_completed_later_work_too() -> None:
    namespace: dict[str, Any] = {"BaseModel": BaseModel, "CustomResource": CustomResource}
    exec(
        "from __future__ import annotations\n"
        "class LateSpec(BaseModel):\n"
        "    deep_part: 'Later'\n"
        "class Late(CustomResource[LateSpec, None], group='example.com', version='v1'): pass\n"
        "class Later(BaseModel):\n"
        "    some_value: int\n",
        namespace,
    )
    namespace["LateSpec"].model_rebuild(_types_namespace=namespace)
    late = namespace["Late"]
    late.model_rebuild(_types_namespace=namespace)
    found = adapter_of(late).decode(b'{"spec":{"deepPart":{"someValue":3}}}')
    assert found.spec.deep_part.some_value == 3


def test_a_kind_without_its_models_is_told_to_name_them() -> None:
    with pytest.raises(RegistrationError, match=r"class Bare\(CustomResource\[Spec, Status\], ...\)"):

        class Bare(CustomResource, group="example.com", version="v1"):  # type: ignore[type-arg]
            pass


def test_a_typed_object_has_the_shortcuts_of_an_unstructured_one() -> None:
    wire = {
        "metadata": {
            "name": "a",
            "labels": {"x": "y"},
            "annotations": {"p": "q"},
            "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
            "deletionTimestamp": "2026-01-31T12:00:00Z",
        },
        "spec": {"image": "x"},
    }
    typed = adapter_of(WebApp).decode(json.dumps(wire).encode())
    plain = Unstructured(wire)
    for name in ("name", "namespace", "uid", "resource_version", "generation", "labels", "annotations", "finalizers"):
        assert getattr(typed, name) == getattr(plain, name)
    assert [owner.uid for owner in typed.owner_references] == [owner.uid for owner in plain.owner_references]
    assert typed.deletion_timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)
    typed.labels["new"] = "label"
    assert adapter_of(WebApp).encode(typed)["metadata"]["labels"] == {"x": "y", "new": "label"}
    assert "labels" not in adapter_of(WebApp).encode(typed)


def test_a_new_typed_object_has_empty_shortcuts() -> None:
    new = WebApp(spec=AppSpec(image="x"))
    assert (new.labels, new.annotations, new.finalizers, new.owner_references) == ({}, {}, [], [])
    assert new.deletion_timestamp is None


def test_pydantics_own_base_is_no_model_of_a_status() -> None:
    with pytest.raises(RegistrationError, match="or None where there is no status"):

        class Bare(CustomResource[AppSpec, BaseModel], group="example.com", version="v1"):
            """Of it no instance can be made."""
