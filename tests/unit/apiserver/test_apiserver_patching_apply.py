"""Who owns which field after updates and server-side applies; the expectations are the real server's answers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kopylite.apiserver.builtin import data
from kopylite.apiserver.patching.apply import apply, keep_times, update_managed_fields
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.errors import ApiError, BadRequest, Conflict

CONFIG_MAP = data.DEFINITIONS.node("io.k8s.api.core.v1.ConfigMap")
SERVICE = data.DEFINITIONS.node("io.k8s.api.core.v1.Service")
CUSTOM = SchemaNode({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"

Object = dict[str, Any]


def config_map(entries: dict[str, str] | None = None, **metadata: Any) -> Object:
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}
    return obj if entries is None else {**obj, "data": entries}


def do_apply(live: Object | None, config: Object, manager: str, now: str = T1, *, force: bool = False) -> Object:
    schema = SERVICE if config["kind"] == "Service" else CONFIG_MAP
    return apply(live, config, schema=schema, manager=manager, api_version="v1", subresource="", now=now, force=force)


def do_update(
    live: Object | None,
    new: Object,
    manager: str,
    now: str = T1,
    *,
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> Object:
    update_managed_fields(
        new, live, schema=CONFIG_MAP, manager=manager, api_version="v1", subresource=subresource, now=now, reset=reset
    )
    return new


def owned(obj: Object) -> dict[tuple[str, str], Any]:
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def test_a_creator_owns_what_it_wrote_and_no_identity() -> None:
    obj = do_update(None, config_map({"a": "1"}, labels={"l": "v"}, uid="u", generation=1), "me")
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": "v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            },
        }
    ]


def test_an_update_takes_fields_over_and_removal_disowns() -> None:
    live = do_update(None, config_map({"a": "1", "b": "2"}), "one")
    new = do_update(live, {**live, "data": {"a": "9"}}, "two", T2)
    assert owned(new) == {
        ("one", "Update"): {"f:data": {}},
        ("two", "Update"): {"f:data": {"f:a": {}}},
    }


def test_an_update_without_a_change_keeps_times() -> None:
    live = do_update(None, config_map({"a": "1"}), "one")
    new = do_update(live, config_map({"a": "1"}), "two", T2)
    assert new["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_nobody_is_recorded_for_an_object_without_managed_fields() -> None:
    new = do_update(config_map({"a": "1"}), config_map({"a": "2"}), "me")
    assert "managedFields" not in new["metadata"]


@pytest.mark.parametrize("cleared", [[], [{}]])
def test_managed_fields_can_be_cleared(cleared: list[Any]) -> None:
    live = do_update(None, config_map({"a": "1"}), "one")
    new = do_update(live, config_map({"a": "1"}, managedFields=cleared), "two", T2)
    assert "managedFields" not in new["metadata"]


def test_a_client_may_rewrite_managed_fields_and_bad_ones_are_ignored() -> None:
    live = do_update(None, config_map({"a": "1"}), "one")
    entry = {**live["metadata"]["managedFields"][0], "manager": "renamed"}
    renamed = do_update(live, config_map({"a": "1"}, managedFields=[entry]), "two", T2)
    assert list(owned(renamed)) == [("renamed", "Update")]
    bad = do_update(live, config_map({"a": "1"}, managedFields=[{"operation": "Foo"}]), "two", T2)
    assert bad["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_subresource_is_an_owner_of_its_own_and_reset_fields_are_not_owned() -> None:
    live = do_update(None, config_map({"a": "1"}), "me")
    new = do_update(live, config_map({"a": "2"}, labels={"x": "y"}), "me", T2, subresource="status", reset=("data",))
    entries = new["metadata"]["managedFields"]
    assert [(e["manager"], e.get("subresource")) for e in entries] == [("me", None), ("me", "status")]
    assert entries[1]["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}


def test_the_eleventh_updater_makes_the_oldest_ancient() -> None:
    obj = do_update(None, config_map({"k0": "v"}), "m0", "2026-01-01T00:00:00Z")
    for number in range(1, 12):
        entries = {**obj["data"], f"k{number}": "v"}
        now = f"2026-01-01T00:00:{number:02}Z"
        obj = do_update(obj, {**obj, "metadata": {"name": "x"}, "data": entries}, f"m{number}", now)
    managers = [e["manager"] for e in obj["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert managers[0] == "ancient-changes"
    assert owned(obj)["ancient-changes", "Update"] == {"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}}


def test_apply_creates_and_owns_exactly_the_configuration() -> None:
    obj = do_apply(None, config_map({"a": "1"}), "me")
    assert obj["data"] == {"a": "1"}
    assert owned(obj) == {("me", "Apply"): {"f:data": {"f:a": {}}}}


def test_applying_twice_changes_nothing() -> None:
    live = do_apply(None, config_map({"a": "1"}), "me", T1)
    assert do_apply(live, config_map({"a": "1"}), "me", T2) == live


def test_what_is_no_longer_applied_goes_unless_somebody_else_owns_it() -> None:
    live = do_apply(None, config_map({"mine": "1", "shared": "2"}), "me")
    live = do_apply(live, config_map({"shared": "2"}), "other")
    gone = do_apply(live, config_map({}), "me")
    assert gone["data"] == {"shared": "2"}
    assert owned(gone) == {("me", "Apply"): {"f:data": {}}, ("other", "Apply"): {"f:data": {"f:shared": {}}}}


def test_a_conflict_names_managers_and_fields_as_the_server_does() -> None:
    live = do_update(None, config_map({"a": "1", "b": "2"}), "one")
    with pytest.raises(Conflict) as caught:
        do_apply(live, config_map({"a": "9"}), "me")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one" using v1: .data.a'
    (cause,) = caught.value.causes
    assert (cause.reason, cause.message, cause.field) == (
        "FieldManagerConflict",
        'conflict with "one" using v1',
        ".data.a",
    )
    with pytest.raises(Conflict) as caught:
        do_apply(live, config_map({"a": "9", "b": "8"}), "me")
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "one" using v1:\n- .data.a\n- .data.b'
    )


def test_the_same_value_is_shared_and_force_takes_over() -> None:
    live = do_apply(None, config_map({"a": "1"}), "one")
    shared = do_apply(live, config_map({"a": "1"}), "two")
    assert set(owned(shared)) == {("one", "Apply"), ("two", "Apply")}
    taken = do_apply(shared, config_map({"a": "2"}), "two", force=True)
    assert owned(taken) == {("two", "Apply"): {"f:data": {"f:a": {}}}}


def test_an_object_without_owners_gets_one_before_its_first_apply() -> None:
    obj = do_apply(config_map({"a": "1"}), config_map({"b": "2"}), "me")
    assert owned(obj) == {
        ("me", "Apply"): {"f:data": {"f:b": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:a": {}}},
    }


def test_keyed_lists_merge_in_the_order_of_the_configuration() -> None:
    def service(*ports: Object) -> Object:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": list(ports)}}

    a, b, c = ({"port": p, "protocol": "TCP", "name": n} for p, n in ((1, "a"), (2, "b"), (3, "c")))
    live = service(a, b, c)
    update_managed_fields(live, None, schema=SERVICE, manager="c", api_version="v1", subresource="", now=T1)
    obj = do_apply(live, service({"port": 3, "name": "c"}, {"port": 1, "name": "a"}), "me")
    assert [p["name"] for p in obj["spec"]["ports"]] == ["b", "c", "a"]
    assert owned(obj)["me", "Apply"]["f:spec"]["f:ports"] == {
        'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}},
        'k:{"port":3,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}},
    }


def test_values_without_a_schema_merge_key_by_key_and_lists_as_one() -> None:
    def custom(spec: Object) -> Object:
        return {"apiVersion": "e/v1", "kind": "W", "metadata": {"name": "x"}, "spec": spec}

    options: dict[str, Any] = {"schema": CUSTOM, "api_version": "e/v1", "subresource": "", "now": T1, "force": False}
    live = apply(None, custom({"a": {"b": 1}, "l": [1]}), manager="one", **options)
    both = apply(live, custom({"a": {"c": 2}}), manager="two", **options)
    assert both["spec"] == {"a": {"b": 1, "c": 2}, "l": [1]}
    with pytest.raises(Conflict, match=r"conflict with \"one\": \.spec\.l"):
        apply(both, custom({"l": [1, 2]}), manager="two", **options)


def test_kubectl_takes_over_what_its_client_side_apply_left() -> None:
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"}}'
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = do_update(None, config_map({"a": "1"}, annotations=annotation), "kubectl-client-side-apply")
    obj = do_apply(live, config_map({"a": "2"}), "kubectl", T2)
    assert obj["data"] == {"a": "2"}
    text = obj["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert text == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"x"}}\n'
    with pytest.raises(Conflict):
        do_apply(live, config_map({"a": "2"}), "somebody-else", T2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (config_map({"a": 2}), ".data.a: expected string, got &value.valueUnstructured{Value:2}"),  # type: ignore[dict-item]
        ({**config_map(), "foo": 1}, ".foo: field not declared in schema"),
        ({**config_map(), "data": [1]}, ".data: expected map, got &{[1]}"),
    ],
)
def test_a_configuration_must_fit_the_schema(config: Object, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        do_apply(None, config, "me")
    assert caught.value.code == 500
    assert caught.value.message == f"failed to create typed patch object (/x; /v1, Kind=ConfigMap): {message}"


def test_kind_and_managed_fields_of_a_configuration_are_checked() -> None:
    options: dict[str, Any] = {"schema": CONFIG_MAP, "manager": "m", "subresource": "", "now": T1, "force": False}
    with pytest.raises(BadRequest, match="invalid object type: /v1, Kind=Secret"):
        apply(None, {"apiVersion": "v1", "kind": "Secret"}, api_version="v1", kind="ConfigMap", **options)
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        apply(None, config_map(managedFields=[]), api_version="v1", **options)


def test_only_new_times_are_no_change() -> None:
    old = do_update(None, config_map({"a": "1"}), "me", T1)
    same = do_update(None, config_map({"a": "1"}), "me", T2)
    keep_times(same, old)
    assert same == old
    other = do_update(None, config_map({"a": "1", "b": "2"}), "me", T2)
    keep_times(other, old)
    assert other["metadata"]["managedFields"][0]["time"] == T2


def test_the_result_of_an_apply_may_be_changed_in_place() -> None:
    live = do_apply(None, config_map({"a": "1"}, annotations={"x": "y"}), "me")
    before = copy.deepcopy(live)
    result = do_apply(live, config_map({"a": "1"}, annotations={"x": "y"}), "other", T2)
    result["data"]["b"] = "2"
    result["metadata"]["annotations"]["z"] = "1"
    assert live == before


def test_a_value_that_does_not_fit_its_schema_is_one_changed_field() -> None:
    listed = SchemaNode({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}})
    listed.raw["properties"]["a"]["x-kubernetes-list-type"] = "set"
    live: Object = {"metadata": {}, "a": ["x"]}
    update_managed_fields(live, None, schema=listed, manager="m", api_version="v1", subresource="", now=T1)
    new: Object = {**copy.deepcopy(live), "a": 5}
    update_managed_fields(new, live, schema=listed, manager="other", api_version="v1", subresource="", now=T1)
    fields = {entry["manager"]: entry["fieldsV1"] for entry in new["metadata"]["managedFields"]}
    assert fields["other"] == {"f:a": {}}


def test_what_kubectl_finds_as_last_applied_is_written_as_go_does() -> None:
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    live = do_update(None, config_map({"a": "1"}, annotations=annotation), "somebody")
    obj = do_apply(live, config_map({"b": "<a href='x'>&amp;</a>\u2028é"}), "kubectl", T2)
    text = obj["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert "\\u003ca href='x'\\u003e\\u0026amp;\\u003c/a\\u003e\\u2028é" in text
