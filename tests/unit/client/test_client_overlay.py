from __future__ import annotations

import copy
from typing import Any

from kopylite.client.fields import fields_of
from kopylite.client.overlay import ABSENT, NONE, Names, Overlay, managed_by, names_of
from kopylite.objects import Kind

DEPLOYMENT = Kind("apps/v1", "Deployment")
POD = fields_of(DEPLOYMENT, DEPLOYMENT).child("spec").child("template").child("spec")
Part = dict[str, Any]


def merge(stored: Part, desired: Part, before: Part | None = None, others: Names = NONE) -> Any:
    named = names_of(before, POD, {}) if before is not None else NONE
    return Overlay({}, others).merge(stored, desired, POD, named)


def test_what_is_dropped_goes_also_where_the_server_finds_a_value_itself() -> None:
    stored = {"serviceAccountName": "x", "nodeName": "n", "dnsPolicy": "ClusterFirst"}
    assert merge(stored, {}) is stored
    assert merge(stored, {}, {"serviceAccountName": "x", "dnsPolicy": "ClusterFirst"}) == {
        "nodeName": "n",
        "dnsPolicy": "ClusterFirst",
    }


def test_none_takes_a_field_out() -> None:
    stored = {"nodeSelector": {"a": "b"}, "dnsPolicy": "Default"}
    assert merge(stored, {"nodeSelector": None, "hostname": None}) == {"dnsPolicy": "Default"}
    assert merge({}, {"nodeSelector": None}) == {}


def test_a_struct_that_is_dropped_goes_as_a_whole_but_for_what_others_own() -> None:
    context = {"runAsUser": 1, "fsGroup": 2, "runAsNonRoot": True}
    stored, before = {"securityContext": context}, {"securityContext": {"runAsUser": 1}}
    assert merge(stored, {}, before) == {}
    _, others = managed_by("me", [{"manager": "x", "fieldsV1": {"f:securityContext": {"f:fsGroup": {}}}}])
    assert merge(stored, {}, before, others) == {"securityContext": {"fsGroup": 2}}


def test_of_a_map_only_the_keys_that_were_named_go() -> None:
    stored = {"nodeSelector": {"mine": "1", "theirs": "1"}}
    assert merge(stored, {"nodeSelector": {}}, {"nodeSelector": {"mine": "1"}}) == {"nodeSelector": {"theirs": "1"}}
    assert merge(stored, {}, {"nodeSelector": {"mine": "1"}}) == {"nodeSelector": {"theirs": "1"}}


def test_what_another_manager_wants_too_stays() -> None:
    stored = {"hostNetwork": True}
    assert merge(stored, {}, {"hostNetwork": True}) == {}
    assert merge(stored, {}, {"hostNetwork": True}, {"f:hostNetwork": {}}) is stored


def test_elements_keep_their_places_and_new_ones_come_behind() -> None:
    stored = {"containers": [{"name": name, "image": "1"} for name in ("a", "theirs", "b", "gone")]}
    desired = {"containers": [{"name": "b", "image": "1"}, {"name": "a", "image": "2"}, {"name": "c"}]}
    merged = merge(stored, desired, {"containers": [{"name": "gone"}]})
    assert [container["name"] for container in merged["containers"]] == ["b", "theirs", "a", "c"]


def test_a_list_with_a_key_twice_is_one_value() -> None:
    twice = [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]
    assert merge({"containers": [{"name": "b"}]}, {"containers": twice}) == {"containers": twice}


def test_a_plain_list_is_one_value_and_keeps_what_admission_has_put_in() -> None:
    injected = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    stored = {"tolerations": [{"key": "a", "operator": "Exists"}, injected]}
    assert merge(stored, {"tolerations": [{"key": "a", "operator": "Exists", "value": ""}]}) is stored
    assert merge(stored, {"tolerations": [{"key": "b"}]}) == {"tolerations": [{"key": "b"}, injected]}


def test_a_volume_that_becomes_another_keeps_nothing_of_what_it_was() -> None:
    stored = {"volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}]}
    assert merge(stored, {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}) == {
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]
    }
    assert merge(stored, {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}) is stored


def test_nothing_is_changed_in_place() -> None:
    stored: Part = {"containers": [{"name": "a", "env": [{"name": "X"}]}], "nodeSelector": {"a": "b"}}
    desired: Part = {"containers": [{"name": "a", "env": [{"name": "Y"}]}], "nodeSelector": {"c": "d"}}
    copies = copy.deepcopy((stored, desired))
    merge(stored, desired, stored)
    assert (stored, desired) == copies
    assert Overlay({}).merge(ABSENT, desired, POD) is desired
