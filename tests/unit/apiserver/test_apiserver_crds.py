"""The life of CRDs, as a real kube-apiserver 1.37 shows it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kopylite.apiserver.crd import definitions as crds
from kopylite.apiserver.resources.strategy import Strategy

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


class _Undecoded:
    """Stands for the built-in strategy where nothing is decoded."""


def strategy() -> crds.CrdStrategy:
    return crds.CrdStrategy(cast("Strategy", _Undecoded()))


def crd(plural: str = "widgets", kind: str = "Widget", **version: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    **version,
                }
            ],
        },
    }
    strategy().default(obj)
    strategy().prepare_create(obj)
    return obj


def conditions(obj: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(c["type"], c["status"], c["reason"]) for c in obj["status"]["conditions"]]


def test_a_new_crd_has_default_names_and_an_empty_status() -> None:
    obj = crd()
    assert obj["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert obj["status"] == {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}


def test_establishing_accepts_names_and_is_done_once() -> None:
    obj = crds.establish(crd(), [], NOW)
    assert obj["status"]["acceptedNames"] == obj["spec"]["names"]
    assert conditions(obj) == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert crds.is_established(obj)
    assert crds.establish(obj, [obj], LATER) == obj


def test_names_in_use_are_not_accepted() -> None:
    first = crds.establish(crd(), [], NOW)
    other = crd("gadgets", "Widget")
    second = crds.establish(other, [first], NOW)
    assert conditions(second) == [
        ("NamesAccepted", "False", "ListKindConflict"),
        ("Established", "False", "NotAccepted"),
    ]
    assert second["status"]["conditions"][0]["message"] == '"WidgetList" is already in use'
    assert second["status"]["acceptedNames"]["plural"] == "gadgets"
    assert not crds.is_established(second)
    freed = crds.establish(second, [], LATER)
    assert crds.is_established(freed)
    assert freed["status"]["conditions"][0]["lastTransitionTime"] == LATER


def test_short_names_conflict_together() -> None:
    first = crd()
    first["spec"]["names"]["shortNames"] = ["w", "wd"]
    first = crds.establish(first, [], NOW)
    other = crd("gadgets", "Gadget")
    other["spec"]["names"]["shortNames"] = ["w", "wd", "g"]
    second = crds.establish(other, [first], NOW)
    assert conditions(second)[0] == ("NamesAccepted", "False", "ShortNamesConflict")
    assert second["status"]["conditions"][0]["message"] == '["w" is already in use, "wd" is already in use]'


def test_other_groups_do_not_conflict() -> None:
    first = crds.establish(crd(), [], NOW)
    other = crd()
    other["spec"]["group"] = "example.org"
    other["metadata"]["name"] = "widgets.example.org"
    assert crds.is_established(crds.establish(other, [first], NOW))


def test_an_update_keeps_the_status_and_adds_the_new_storage_version() -> None:
    old = crds.establish(crd(), [], NOW)
    new = {**old, "spec": {**old["spec"]}, "status": {"storedVersions": []}}
    new["spec"]["versions"] = [{"name": "v1", "served": True}, {"name": "v2", "served": True, "storage": True}]
    strategy().prepare_update(new, old, "")
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert new["status"]["conditions"] == old["status"]["conditions"]
    assert old["status"]["storedVersions"] == ["v1"]


def test_a_status_update_keeps_the_spec() -> None:
    old = crd()
    new = {**old, "spec": {}, "status": {"storedVersions": ["v1", "v2"]}}
    strategy().prepare_update(new, old, "status")
    assert new["spec"] == old["spec"]
    assert new["status"]["storedVersions"] == ["v1", "v2"]


def test_new_warnings_only() -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "format": "odd"}}}}
    assert strategy().warnings(crd(schema=schema), None) == ['unrecognized format "odd"']
    assert strategy().warnings(crd(schema=schema), crd(schema=schema)) == []


class TestDeletion:
    def test_the_first_delete_marks_and_holds(self) -> None:
        obj = crds.begin_deletion(crds.establish(crd(), [], NOW), LATER)
        assert obj["metadata"]["deletionTimestamp"] == LATER
        assert obj["metadata"]["finalizers"] == [crds.CLEANUP_FINALIZER]
        assert conditions(obj)[-1] == ("Terminating", "True", "InstanceDeletionPending")
        assert crds.is_terminating(obj)
        assert crds.needs_cleanup(obj)

    def test_cleaning_up_ends_with_the_finalizer(self) -> None:
        obj = crds.begin_deletion(crds.establish(crd(), [], NOW), NOW)
        obj = crds.deletion_in_progress(obj, NOW)
        assert conditions(obj)[-1] == ("Terminating", "True", "InstanceDeletionInProgress")
        obj = crds.deletion_completed(obj, LATER)
        assert conditions(obj)[-1] == ("Terminating", "False", "InstanceDeletionCompleted")
        assert not crds.needs_cleanup(obj)

    def test_a_terminating_crd_serves_no_writes_but_deletes(self) -> None:
        (resource,) = crds.crd_resources(crds.begin_deletion(crds.establish(crd(), [], NOW), NOW))
        assert resource.terminating
        assert set(resource.verbs) == {"delete", "deletecollection", "get", "list", "watch"}


class TestResources:
    def resource(self, **version: Any) -> Any:
        return crds.crd_resources(crds.establish(crd(**version), [], NOW))[0]

    def test_it_serves_its_versions(self) -> None:
        obj = crds.establish(crd(), [], NOW)
        obj["spec"]["versions"] += [{"name": "v2", "served": False}, {"name": "v1beta1", "served": True}]
        assert [r.version for r in crds.crd_resources(obj)] == ["v1", "v1beta1"]

    def test_it_has_the_accepted_names(self) -> None:
        resource = self.resource()
        assert (resource.plural, resource.singular, resource.kind) == ("widgets", "widget", "Widget")
        assert resource.storage == "widgets.example.com"
        assert resource.custom
        assert resource.namespaced

    def test_its_shape_changes_with_the_schema(self) -> None:
        other = {"openAPIV3Schema": {"type": "object", "description": "x"}}
        assert self.resource().encoding_version == self.resource().encoding_version
        assert self.resource().encoding_version != self.resource(schema=other).encoding_version

    def test_subresources_are_those_declared(self) -> None:
        paths = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}
        resource = self.resource(subresources={"status": {}, "scale": paths})
        assert set(resource.subresources) == {"status", "scale"}
        assert resource.subresources["scale"].group == "autoscaling"
        assert resource.scale.spec_replicas == ("spec", "n")
        assert resource.scale.selector == ("status", "s")
        assert resource.strategy.has_status
        assert self.resource().subresources == {}

    @pytest.mark.parametrize(
        ("members", "text"),
        [
            ({}, ""),
            ({"deprecated": True}, "example.com/v1 Widget is deprecated"),
            ({"deprecated": True, "deprecationWarning": "use v2"}, "use v2"),
        ],
    )
    def test_deprecated_versions_warn(self, members: dict[str, Any], text: str) -> None:
        assert self.resource(**members).deprecation == text

    def test_columns_show_what_their_paths_lead_to(self) -> None:
        declared = [
            {"name": "Str", "type": "string", "jsonPath": ".spec.s"},
            {"name": "Int", "type": "integer", "jsonPath": ".spec.i", "priority": 1, "format": "int32"},
            {"name": "Num", "type": "number", "jsonPath": ".spec.i"},
            {"name": "Bool", "type": "boolean", "jsonPath": ".spec.b"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.c[?(@.type=="Ready")].status'},
            {"name": "Map", "type": "string", "jsonPath": ".spec.m"},
            {"name": "When", "type": "date", "jsonPath": ".status.t"},
        ]
        columns = self.resource(additionalPrinterColumns=declared).columns
        assert [c.name for c in columns] == ["Name", "Str", "Int", "Num", "Bool", "Ready", "Map", "When"]
        assert (columns[2].priority, columns[2].format) == (1, "int32")
        assert columns[1].description == "Custom resource definition column (in JSONPath format): .spec.s"
        obj = {
            "metadata": {"name": "w"},
            "spec": {"s": "x", "i": 5, "b": False, "m": {"b": 1, "a": [1]}},
            "status": {"c": [{"type": "Ready", "status": "True"}], "t": NOW},
        }
        assert [c.cell(obj) for c in columns] == ["w", "x", 5, 5.0, False, "True", '{"a":[1],"b":1}', NOW]
        empty: dict[str, Any] = {"metadata": {"name": "w"}, "spec": {"i": "text", "b": 1}}
        assert [c.cell(empty) for c in columns] == ["w", None, None, None, None, None, None, None]

    def test_without_columns_there_is_an_age(self) -> None:
        columns = self.resource().columns
        assert [(c.name, c.type) for c in columns] == [("Name", "string"), ("Age", "date")]
        assert columns[1].cell({"metadata": {"creationTimestamp": NOW}}) == NOW

    def test_selectable_fields_are_read_as_text(self) -> None:
        paths = [{"jsonPath": ".spec.s"}, {"jsonPath": ".spec.b"}, {"jsonPath": ".spec.i"}]
        fields = self.resource(selectableFields=paths).fields
        obj = {"spec": {"s": "x", "b": True, "i": 5}}
        assert {name: read(obj) for name, read in fields.items()} == {"spec.s": "x", "spec.b": "true", "spec.i": "5"}
        assert fields["spec.s"]({}) == ""
