from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.controllers.ownership import Item, OwnerGraph, Ownership, ownership_of
from kopylite.apiserver.storage.history import StoredObject

UIDS = st.sampled_from(["u0", "u1", "u2", "u3"])


def record(uid: str, owners: dict[str, bool], **metadata: Any) -> StoredObject:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner, "blockOwnerDeletion": blocks}
        for owner, blocks in owners.items()
    ]
    body = json.dumps({"metadata": {"uid": uid, "ownerReferences": references, **metadata}}, separators=(",", ":"))
    return StoredObject(f"ns/{uid}", 1, uid, "v1", body.encode())


def test_an_object_without_owners_that_stays_is_not_even_decoded() -> None:
    broken = StoredObject("ns/a", 1, "u", "v1", b"{not json")
    assert ownership_of(broken) == Ownership()
    assert ownership_of(None) == Ownership()


def test_a_deletion_waits_for_what_its_finalizers_say() -> None:
    going = ownership_of(record("u", {}, deletionTimestamp="t", finalizers=["foregroundDeletion"]))
    assert (going.deletes_dependents, going.orphans_dependents) == (True, False)
    going = ownership_of(record("u", {}, deletionTimestamp="t", finalizers=["orphan"]))
    assert (going.deletes_dependents, going.orphans_dependents) == (False, True)
    staying = ownership_of(record("u", {}, finalizers=["foregroundDeletion", "orphan"]))
    assert (staying.deletes_dependents, staying.orphans_dependents) == (False, False)


@given(st.lists(st.tuples(UIDS, st.none() | st.dictionaries(UIDS, st.booleans(), max_size=3))))
def test_the_graph_holds_exactly_the_references_of_what_is_stored(
    steps: list[tuple[str, dict[str, bool] | None]],
) -> None:
    """After any creates, updates and (None) deletes."""
    graph = OwnerGraph()
    stored: dict[str, StoredObject] = {}
    for uid, owners in steps:
        item, before = Item("configmaps", f"ns/{uid}"), stored.pop(uid, None)
        if owners is not None:
            stored[uid] = record(uid, owners)
            graph.put(item, uid, ownership_of(before), ownership_of(stored[uid]))
        elif before is not None:
            graph.remove(item, uid, ownership_of(before))
    for uid in ("u0", "u1", "u2", "u3"):
        assert graph.place(uid) == (Item("configmaps", f"ns/{uid}") if uid in stored else None)
        wanted = {
            Item("configmaps", f"ns/{child}"): bool(owner.block_owner_deletion)
            for child, kept in stored.items()
            for owner in ownership_of(kept).owner_references
            if owner.uid == uid
        }
        assert graph.dependents(uid) == wanted
