from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.part import ShardPart
from kopylite.objects import GroupKind, OwnerReference, Shard
from tests.unit.cache.things import thing

OWNER = GroupKind("example.com", "Owner")
shards = st.integers(1, 5).flatmap(lambda of: st.tuples(st.integers(0, of - 1), st.just(of))).map(lambda it: Shard(*it))
uids = st.uuids().map(str)


def owned_by(
    uid: str, kind: str = "Owner", api_version: str = "example.com/v1", controller: bool | None = True
) -> OwnerReference:
    return OwnerReference(api_version, kind, "o", uid, controller)


@given(uids, st.integers(1, 5))
def test_each_object_is_in_exactly_one_part_whoever_owns_it(uid: str, of: int) -> None:
    parts = [ShardPart(Shard(index, of)) for index in range(of)]
    assert sum(part.holds(thing(uid=uid)) for part in parts) == 1
    assert [part.holds(thing(uid=uid, owners=(owned_by("x"),))) for part in parts] == [
        part.holds(thing(uid=uid)) for part in parts
    ]


@given(shards, uids, uids)
def test_an_owned_object_is_where_its_controller_is_whatever_its_own_uid(shard: Shard, owner: str, uid: str) -> None:
    part = ShardPart(shard, OWNER)
    assert part.holds(thing(uid=uid, owners=(owned_by(owner),))) is shard.holds(owner)


@pytest.mark.parametrize(
    ("owners", "any_owner", "held"),
    [
        ((), True, False),
        ((owned_by("u", kind="Other"),), True, False),
        ((owned_by("u", api_version="v1"),), True, False),
        ((owned_by("u", api_version="example.com/v2"),), False, True),
        ((owned_by("u", controller=None),), False, False),
        ((owned_by("u", controller=None),), True, True),
        ((owned_by("u", controller=False),), True, True),
        ((owned_by("u", controller=False), owned_by("v")), False, True),
    ],
)
def test_which_references_count(owners: tuple[OwnerReference, ...], any_owner: bool, held: bool) -> None:
    whole = Shard(0, 1)
    assert ShardPart(whole, OWNER, any_owner).holds(thing(owners=owners)) is held


def test_only_what_is_divided_by_its_own_uid_can_be_asked_of_the_server() -> None:
    shard = Shard(1, 3)
    assert ShardPart(shard).selector == shard.selector != ""
    assert ShardPart(shard, OWNER).selector == ""


def test_a_part_says_for_people_whose_uid_decides() -> None:
    shard = Shard(1, 3)
    assert str(ShardPart(shard)) == f"shard {shard}"
    assert str(ShardPart(shard, OWNER)) == f"owned by Owner of shard {shard}"
