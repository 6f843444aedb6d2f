from __future__ import annotations

from typing import Any

import pytest
from kubernetes_asyncio.client import V1ConfigMap, V1ObjectMeta
from pydantic import BaseModel

from kopylite.errors import AlreadyOwned, ObjectError
from kopylite.objects import (
    CustomResource,
    ObjectMeta,
    OwnerReference,
    Unstructured,
    controller_of,
    has_controller_reference,
    has_owner_reference,
    meta_of,
    owner_reference,
    read_owner_references,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)


class Spec(BaseModel):
    size: int = 1


class Owner(CustomResource[Spec, None], group="example.com", version="v1"):
    pass


def owner(name: str = "o", uid: str = "u1", namespace: str = "ns") -> Owner:
    return Owner(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid), spec=Spec())


def config_map(**metadata: Any) -> Unstructured:
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "c", "namespace": "ns", **metadata})


FORMS = [
    lambda: config_map(),
    lambda: Owner(metadata=ObjectMeta(name="c", namespace="ns"), spec=Spec()),
    lambda: V1ConfigMap(metadata=V1ObjectMeta(name="c", namespace="ns")),
]


@pytest.mark.parametrize("make", FORMS)
def test_an_object_of_any_form_gets_a_controller_and_loses_it(make: Any) -> None:
    obj = make()
    set_controller_reference(owner(), obj)
    expected = OwnerReference("example.com/v1", "Owner", "o", "u1", controller=True, block_owner_deletion=True)
    assert read_owner_references(meta_of(obj)) == [expected]
    assert controller_of(obj) == expected
    assert has_owner_reference(owner(), obj)
    assert remove_owner_reference(owner(), obj)
    assert not has_controller_reference(obj)
    assert not remove_owner_reference(owner(), obj)


def test_setting_it_again_changes_nothing() -> None:
    obj = config_map()
    set_controller_reference(owner(), obj)
    before = dict(obj.metadata)
    set_controller_reference(owner(), obj)
    assert obj.metadata == before


def test_an_object_without_metadata_gets_some() -> None:
    obj = Unstructured(apiVersion="v1", kind="Namespace")
    set_owner_reference(owner(namespace=""), obj)
    assert has_owner_reference(owner(), obj)


def test_a_second_controller_is_refused_and_the_first_stays() -> None:
    obj = config_map()
    set_controller_reference(owner("first", "u1"), obj)
    with pytest.raises(AlreadyOwned, match=r"ConfigMap ns/c is controlled by Owner first \(uid u1\)"):
        set_controller_reference(owner("second", "u2"), obj)
    assert [ref.name for ref in obj.owner_references] == ["first"]


def test_a_second_plain_owner_is_welcome() -> None:
    obj = config_map()
    set_controller_reference(owner("first", "u1"), obj)
    set_owner_reference(owner("second", "u2"), obj)
    assert [(ref.name, ref.controller) for ref in obj.owner_references] == [("first", True), ("second", None)]


def test_a_recreated_owner_does_not_take_over_by_its_name() -> None:
    obj = config_map()
    set_controller_reference(owner(uid="old"), obj)
    with pytest.raises(AlreadyOwned, match="the owner was made anew") as raised:
        set_controller_reference(owner(uid="new"), obj)
    assert raised.value.earlier
    assert not has_owner_reference(owner(uid="new"), obj)
    assert not remove_owner_reference(owner(uid="new"), obj)


def test_a_recreated_owner_can_adopt() -> None:
    obj = config_map()
    set_controller_reference(owner(uid="old"), obj)
    set_controller_reference(owner(uid="new"), obj, adopt=True)
    assert [ref.uid for ref in obj.owner_references] == ["new"]
    with pytest.raises(AlreadyOwned):
        set_controller_reference(owner("stranger", "u9"), obj, adopt=True)


def test_a_plain_owner_becomes_the_controller() -> None:
    obj = config_map()
    set_owner_reference(owner(), obj)
    set_controller_reference(owner(), obj)
    assert [(ref.uid, ref.controller) for ref in obj.owner_references] == [("u1", True)]


def test_foreign_and_broken_references_are_left_as_they_are() -> None:
    broken: list[Any] = ["nonsense", {"uid": 7}]
    obj = config_map(ownerReferences=list(broken))
    set_owner_reference(owner(), obj)
    assert obj.metadata["ownerReferences"][:2] == broken
    remove_owner_reference(owner(), obj)
    assert obj.metadata["ownerReferences"] == broken


def test_an_owner_of_another_namespace_is_refused() -> None:
    with pytest.raises(ObjectError, match="in the namespace of what it owns"):
        set_owner_reference(owner(namespace="other"), config_map())


def test_a_namespaced_owner_of_a_cluster_scoped_object_is_refused() -> None:
    node = Unstructured(apiVersion="v1", kind="Node", metadata={"name": "n"})
    with pytest.raises(ObjectError, match="cannot own a cluster-scoped object"):
        set_controller_reference(owner(), node)


def test_a_cluster_scoped_owner_may_own_anything() -> None:
    obj = config_map()
    set_controller_reference(owner(namespace=""), obj)
    assert has_controller_reference(obj)


def test_an_owner_that_was_never_created_is_refused() -> None:
    with pytest.raises(ObjectError, match="it has no uid"):
        owner_reference(owner(uid=""))
