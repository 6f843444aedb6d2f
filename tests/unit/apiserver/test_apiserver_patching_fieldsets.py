"""FieldsV1 as a set: its algebra, its order, its texts."""

from __future__ import annotations

import pytest

from kopylite.apiserver.patching.apply import fieldsets as sets

A, B = sets.of_paths("spec.a", "spec.b"), sets.of_paths("spec.b", "status")


def test_union_intersection_and_difference() -> None:
    assert sets.union(A, B) == sets.of_paths("spec.a", "spec.b", "status")
    assert sets.intersection(A, B) == sets.of_paths("spec.b")
    assert sets.difference(A, B) == sets.of_paths("spec.a")


def test_a_parent_taken_away_leaves_its_children() -> None:
    both: sets.Fields = {"f:spec": {".": {}, "f:a": {}}}
    assert sets.difference(both, {"f:spec": {}}) == {"f:spec": {"f:a": {}}}
    assert sets.difference(both, {"f:spec": {"f:a": {}}}) == {"f:spec": {}}
    assert sets.without_subtrees(both, {"f:spec": {}}) == {}


def test_membership_survives_a_union_with_a_leaf() -> None:
    assert sets.union({"f:a": {}}, {"f:a": {"f:b": {}}}) == {"f:a": {".": {}, "f:b": {}}}


def test_has_and_paths_agree() -> None:
    fields: sets.Fields = {"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}
    listed = list(sets.paths(fields))
    assert listed == [("f:a",), ("f:a", "f:b"), ("f:c", "f:d")]
    assert all(sets.has(fields, path) for path in listed)
    assert not sets.has(fields, ("f:c",))
    assert not sets.has(fields, ("f:a", "f:b", "f:x"))


def test_a_path_reads_like_the_servers() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":443,"protocol":"TCP"}', "f:name")
    assert sets.path_text(path) == '.spec.ports[port=443,protocol="TCP"].name'
    assert sets.path_text(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'


def test_list_elements_are_ordered_by_value_not_by_text() -> None:
    fields: sets.Fields = {sets.key_element([("port", p)]): {} for p in (443, 80, 9)}
    assert list(sets.ordered(fields)) == ['k:{"port":9}', 'k:{"port":80}', 'k:{"port":443}']


def test_a_clients_fields_are_brought_into_normal_form() -> None:
    document: sets.Fields = {"f:spec": {'k:{"b":1,"a":2}': {".": {}}, "x:unknown": {}}}
    assert sets.parse(document) == {"f:spec": {'k:{"a":2,"b":1}': {}}}


@pytest.mark.parametrize("document", [[], {"spec": {}}, {"f:a": 1}, {"k:{": {}}, {"k:1": {}}])
def test_what_is_no_fields_document_is_refused(document: object) -> None:
    with pytest.raises(sets.BadFields):
        sets.parse(document)


def test_keys_are_written_as_gos_json() -> None:
    assert sets.key_element([("name", "a<b")]) == 'k:{"name":"a\\u003cb"}'
    assert sets.value_element("é") == 'v:"é"'
