from __future__ import annotations

import pytest

from kopylite.objects import GroupKind, Kind, ObjectKey, OwnerReference, compare_versions


@pytest.mark.parametrize(
    ("a", "b", "sign"),
    [
        ("9", "10", -1),
        ("10", "9", 1),
        ("7", "7", 0),
        ("18446744073709551616", "18446744073709551615", 1),
        ("", "1", -1),
        ("0", "1", -1),
        ("nonsense", "1", -1),
        ("007", "1", -1),
        ("٣", "1", -1),
        ("", "x", 0),
    ],
)
def test_versions_compare_as_numbers_and_a_malformed_one_is_older_than_any(a: str, b: str, sign: int) -> None:
    assert compare_versions(a, b) == sign
    assert compare_versions(b, a) == -sign


def test_a_key_reads_like_in_kubectl() -> None:
    assert str(ObjectKey("ns", "a")) == "ns/a"
    assert str(ObjectKey("", "a")) == "a"


def test_a_kind_has_group_and_version() -> None:
    deployment, pod = Kind("apps/v1", "Deployment"), Kind("v1", "Pod")
    assert (deployment.group, deployment.version, str(deployment)) == ("apps", "v1", "Deployment.apps/v1")
    assert (pod.group, pod.version, pod.group_kind) == ("", "v1", GroupKind("", "Pod"))
    assert (str(deployment.group_kind), str(pod.group_kind)) == ("Deployment.apps", "Pod")


def test_an_owner_reference_is_written_without_what_it_does_not_say() -> None:
    assert OwnerReference("apps/v1", "Deployment", "d", "u").to_dict() == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "d",
        "uid": "u",
    }
    assert OwnerReference("apps/v1", "Deployment", "d", "u").group == "apps"
