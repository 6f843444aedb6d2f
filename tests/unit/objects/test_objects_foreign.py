"""Classes in the manner of the pydantic libraries for built-in kinds, without installing one."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kopylite.errors import DecodeError, EncodeError, ObjectError, RegistrationError
from kopylite.objects import (
    Kind,
    Unstructured,
    adapter_like,
    adapter_of,
    key_of,
    kind_of,
    meta_of,
    owner_reference,
    set_controller_reference,
    wire_of,
)
from kopylite.objects.foreign import declared, set_owners_of_foreign

CONFIG = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Reference(BaseModel):
    model_config = CONFIG

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(BaseModel):
    model_config = CONFIG

    name: str | None = None
    namespace: str | None = None
    owner_references: list[Reference] | None = None


class Deployment(BaseModel):
    """Like kubex: constants for apiVersion and kind."""

    model_config = CONFIG

    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["Deployment"] = Field(default="Deployment", alias="kind")
    metadata: Metadata


class Job(BaseModel):
    """Its spec is declared below: pydantic completes the class when it is used first."""

    model_config = CONFIG

    api_version: Literal["batch/v1"] = "batch/v1"
    kind: Literal["Job"] = Field(default="Job", alias="kind")
    metadata: Metadata
    spec: JobSpec


class JobSpec(BaseModel):
    model_config = CONFIG

    back_off: int = 0


class V1ConfigMap(BaseModel):
    """Like the official client: named after the kind, unknown fields forbidden."""

    model_config = ConfigDict(extra="forbid")
    openapi_types: ClassVar[dict[str, str]] = {}

    metadata: Metadata | None = None
    data: dict[str, str] | None = None


class Required(BaseModel):
    apiVersion: Literal["example.com/v1"]
    kind: Literal["Thing"]


def test_constants_say_the_kind() -> None:
    assert kind_of(Deployment) == Kind("apps/v1", "Deployment", "deployments", True)
    assert kind_of(Required) == Kind("example.com/v1", "Thing")


def test_the_name_says_the_kind() -> None:
    assert kind_of(V1ConfigMap) == Kind("v1", "ConfigMap", "configmaps", True)


def test_unknown_fields_are_kept_even_where_the_library_forbids_them() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a": "b"},
        "later": {"x": 1},
    }
    adapter = adapter_of(V1ConfigMap)
    stored = adapter.decode(json.dumps(document).encode())
    assert adapter.encode(stored) == document
    assert stored.later == {"x": 1}  # type: ignore[attr-defined]


def test_objects_have_key_and_metadata_and_take_owners() -> None:
    deployment = adapter_of(Deployment).decode(b'{"metadata":{"name":"d","namespace":"ns","uid":"1"}}')
    owner = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "c", "namespace": "ns", "uid": "u"})
    set_controller_reference(owner, deployment)
    assert key_of(deployment) == ("ns", "d")
    assert meta_of(deployment) == {
        "name": "d",
        "namespace": "ns",
        "uid": "1",
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "c",
                "uid": "u",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


class Bare(BaseModel):
    apiVersion: str = "v1"
    kind: str = "Pod"
    metadata: dict[str, str] = {}


def test_a_class_without_a_place_for_owners_says_so() -> None:
    owner = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "c", "uid": "u"})
    with pytest.raises(ObjectError, match="no metadata for them"):
        set_controller_reference(owner, Bare(metadata={"name": "p"}))


def test_a_class_without_constants_is_refused() -> None:
    class Anything(BaseModel):
        apiVersion: str
        kind: Literal["A", "B"]

    with pytest.raises(RegistrationError, match="have no fixed values"):
        kind_of(Anything)


class Shows:
    """In the manner of a dynamic client's objects: a dict, and nothing that is known besides."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown

    def to_dict(self) -> Any:
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown


class Raw:
    """In the manner of kr8s: a dict that can be replaced, and a client that stays."""

    version, kind = "v1", "ConfigMap"

    def __init__(self, raw: dict[str, Any], api: object) -> None:
        self._raw, self.api = raw, api

    @property
    def raw(self) -> dict[str, Any]:
        return self._raw

    @raw.setter
    def raw(self, value: dict[str, Any]) -> None:
        self._raw = value


NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns", "uid": "u"}}


def test_an_object_is_what_its_dict_says() -> None:
    obj = Shows(NAMED)
    assert kind_of(obj) == Kind("v1", "ConfigMap", "configmaps", True)
    assert key_of(obj) == ("ns", "c")
    assert meta_of(obj) == NAMED["metadata"]
    assert wire_of(obj) == NAMED
    assert owner_reference(obj).uid == "u"
    assert adapter_like(obj).decode(json.dumps(NAMED).encode()) == NAMED


def test_an_answer_is_put_into_an_object_of_the_same_class_and_the_given_one_stays() -> None:
    given = Raw({"metadata": {"name": "c"}}, api=object())
    stored = adapter_like(given).decode(b'{"metadata":{"name":"c","uid":"u"}}')
    assert (type(stored), stored.api, stored.raw["metadata"]["uid"]) == (Raw, given.api, "u")
    assert given.raw == {"metadata": {"name": "c"}}


def test_owners_are_written_into_the_dict_of_an_object() -> None:
    given = Raw({"metadata": {"name": "c", "namespace": "ns"}}, api=None)
    set_controller_reference(Unstructured(NAMED), given)
    assert [entry["uid"] for entry in given.raw["metadata"]["ownerReferences"]] == ["u"]
    with pytest.raises(ObjectError, match="it has no metadata for them"):
        set_controller_reference(Unstructured(NAMED), Shows(NAMED | {"metadata": {"name": "d", "namespace": "ns"}}))


@pytest.mark.parametrize(
    ("shown", "problem"),
    [
        ({"metadata": {"name": "c"}}, "set both in it, or give its dict with both"),
        ({"apiVersion": "", "kind": None, "metadata": {"name": "c"}}, "set both in it"),
        ({"apiVersion": 1, "kind": ["ConfigMap"], "metadata": {"name": "c"}}, "set both in it"),
        ({"api_version": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "set both in it"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "has no metadata: it needs a name"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": None}, "has no metadata"),
        ([NAMED], "shows a list for its dict"),
        (None, "shows a NoneType for its dict"),
        (KeyError("spec"), "does not show its dict: KeyError"),
        (RecursionError(), "does not show its dict: RecursionError"),
    ],
)
def test_an_object_that_does_not_say_what_it_is_is_refused_with_the_way_out(shown: Any, problem: str) -> None:
    for ask in (kind_of, wire_of, adapter_like, meta_of):
        with pytest.raises(RegistrationError, match=problem) as refused:
            ask(Shows(shown))
        assert "test_objects_foreign.Shows" in str(refused.value)


def test_a_dict_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {**NAMED}
    loop["spec"] = loop
    with pytest.raises(RegistrationError, match="nested too deep, or contains itself"):
        wire_of(Shows(loop))


def test_what_cannot_be_sent_is_refused_with_its_place() -> None:
    with pytest.raises(EncodeError, match=r"spec\.weight"):
        wire_of(Shows({**NAMED, "spec": {"weight": float("nan")}}))


def test_a_class_that_is_no_kind_is_told_which_kind_it_stands_for() -> None:
    with pytest.raises(RegistrationError, match=re.escape('use Kind("v1", "ConfigMap") in its place')):
        kind_of(Raw)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("2026-01-02T12:00:00Z", "2026-01-02T12:00:00.000000Z"),
        ("2026-01-02T12:00:00.5+02:00", "2026-01-02T12:00:00.500000+02:00"),
        ("2026-01-02T12:00:00.123456789Z", "2026-01-02T12:00:00.123456Z"),
        ("soon", "soon"),
    ],
)
def test_a_micro_time_has_six_digits_in_a_lease_and_nowhere_else(given: str, sent: str) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "annotations": {"renewTime": given}},
        "spec": {"renewTime": given},
    }
    assert wire_of(Shows(lease)) == {**lease, "spec": {"renewTime": sent}}
    settings = {**NAMED, "data": {"renewTime": given}}
    assert wire_of(Shows(settings)) == settings


def test_a_class_that_is_complete_only_now_is_read_and_written() -> None:
    adapter = adapter_of(Job)
    raw = b'{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","new":1},"spec":{"backOff":3,"new":2}}'
    job = adapter.decode(raw)
    assert job.spec.back_off == 3
    assert adapter.encode(job) == json.loads(raw)


def test_a_class_that_does_not_take_the_answer_says_so_and_quotes_none_of_it() -> None:
    class Picky(Shows):
        @classmethod
        def from_dict(cls, shown: Any) -> Any:
            raise ValueError("no")

    with pytest.raises(DecodeError, match=r"Picky does not take what the server has answered: .*no"):
        adapter_like(Picky(NAMED)).decode(json.dumps(NAMED | {"data": {"password": "s3cret"}}).encode())


def test_owners_are_written_into_metadata_that_are_an_object_of_their_own() -> None:
    class Metadata:
        def __init__(self, shown: dict[str, Any]) -> None:
            self.shown = shown

        @classmethod
        def from_dict(cls, shown: dict[str, Any]) -> Metadata:
            return cls(shown)

        def to_dict(self) -> dict[str, Any]:
            return self.shown

    document: dict[str, Any] = {**NAMED, "metadata": Metadata({"name": "c", "namespace": "ns"})}
    set_owners_of_foreign(document, [{"uid": "u"}])
    assert document["metadata"].shown == {"name": "c", "namespace": "ns", "ownerReferences": [{"uid": "u"}]}


@pytest.mark.parametrize(("group", "says"), [("example.com", "example.com/v1"), ("", "v1"), (None, "v1"), (5, "v1")])
def test_a_class_says_its_group_or_has_none(group: Any, says: str) -> None:
    cls = type("Thing", (), {"group": group, "version": "v1", "kind": "Thing"})
    assert declared(cls) == (says, "Thing")
