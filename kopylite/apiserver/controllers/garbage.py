"""GarbageCollector: deletes what has no owner left, and carries out foreground deletion and orphaning."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.controllers.actor import Actor
from kopylite.apiserver.controllers.ownership import Item, Owner, OwnerGraph, Ownership, ownership_of
from kopylite.apiserver.controllers.worklist import WorkList
from kopylite.apiserver.core import Core
from kopylite.apiserver.crd.serving import STORAGE as CRDS
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.history import DELETED, StoredChange, StoredObject
from kopylite.apiserver.writes.metadata import FOREGROUND, ORPHAN, timestamp
from kopylite.errors import NotFound

NAME = "generic-garbage-collector"
# A uid is never given twice, so an owner that is gone is gone for ever. Enough for the dependents of whatever was
# deleted lately; for those forgotten here, the absence is found out anew.
_KNOWN_GONE = 10_000
# Upstream collects no Events.
_IGNORED = "events"


class _Unresolved(Exception):
    """An owner's kind is not served (now): nobody can say whether the owner exists."""


class _Invalid(Exception):
    """A cluster-scoped object names a namespaced owner, which cannot be looked up."""


class GarbageCollector:
    """Follows the owner references of a store.

    An owner counts as present when an object of its apiVersion, kind and name, in the dependent's namespace (or
    cluster-wide), has its uid.
    """

    def __init__(self, core: Core) -> None:
        self._store = core.world.store
        self._registry = core.world.registry
        self._clock = core.world.clock
        self._actor = Actor(core, NAME)
        self._graph = OwnerGraph()
        self._work: WorkList[Item] = WorkList("garbage collector", self._attempt)
        # With their namespaces: no dependent elsewhere learns from these that its owner is gone. And with the
        # apiVersion: when the kind has gone too, who names another one cannot be told so.
        self._gone: dict[tuple[str, str], str] = {}
        self._unresolved: set[Item] = set()
        self._reported: set[tuple[str, str]] = set()

    def begin(self) -> None:
        for storage, records in self._store.contents().items():
            for record in records:
                self._changed(Item(storage, record.key), record, None)

    async def run(self) -> None:
        await self._work.run()

    def observe(self, storage: str, change: StoredChange) -> None:
        item = Item(storage, change.record.key)
        if change.type == DELETED:
            self._deleted(item, change.record)
        else:
            self._changed(item, change.record, change.previous)
        if storage == CRDS and self._unresolved:
            unresolved, self._unresolved = self._unresolved, set()
            for waiting in unresolved:
                self._work.add(waiting)

    def _changed(self, item: Item, record: StoredObject, previous: StoredObject | None) -> None:
        if item.storage == _IGNORED:
            return
        before, after = ownership_of(previous), ownership_of(record)
        self._graph.put(item, record.uid, before, after)
        if after.owner_references != before.owner_references:
            if after.owner_references:
                self._work.add(item)
            for owner in _no_longer_blocked(before, after):
                self._look_at(owner)
        if after.deletes_dependents and not before.deletes_dependents:
            for dependent in self._graph.dependents(record.uid):
                self._work.add(dependent)
            self._work.add(item)
        elif after.orphans_dependents and not before.orphans_dependents:
            self._work.add(item)

    def _deleted(self, item: Item, record: StoredObject) -> None:
        last = ownership_of(record)
        self._graph.remove(item, record.uid, last)
        self._reported = {pair for pair in self._reported if pair[0] != record.uid} if self._reported else set()
        dependents = self._graph.dependents(record.uid)
        if dependents:
            self._gone[record.uid, record.namespace] = self._known_as(item, record)
            if len(self._gone) > _KNOWN_GONE:
                del self._gone[next(iter(self._gone))]
        for dependent in dependents:
            self._work.add(dependent)
        for owner in last.owner_references:
            self._look_at(owner.uid)

    def _known_as(self, item: Item, record: StoredObject) -> str:
        """The apiVersion in which upstream follows an object: the preferred one of those that have its kind."""
        resource = self._actor.resource(item.storage)
        if resource is None:
            return str(record.decode()["apiVersion"])
        versions = [f"{resource.group}/{one}".lstrip("/") for one in self._registry.versions(resource.group)]
        return next((one for one in versions if self._registry.find_kind(one, resource.kind)), resource.api_version)

    def _look_at(self, uid: str) -> None:
        place = self._graph.place(uid)
        if place is not None:
            self._work.add(place)

    async def _attempt(self, item: Item) -> None:
        """Take the next step for one object. Raises ApiError: it is tried again."""
        record = self._store.get(*item)
        resource = self._actor.resource(item.storage)
        if record is None or resource is None:
            return
        own = ownership_of(record)
        try:
            if own.orphans_dependents:
                await self._orphan(resource, record, own)
            elif own.deletes_dependents:
                await self._wait_for_dependents(resource, record, own)
            elif own.owner_references and own.deletion_timestamp is None:
                await self._check_owners(item, resource, record, own)
        except NotFound:
            return  # it went meanwhile

    async def _check_owners(self, item: Item, resource: Resource, record: StoredObject, own: Ownership) -> None:
        """Delete an object whose owners are all gone or going; else drop the references to those."""
        solid: list[str] = []
        waiting: list[str] = []
        absent: list[str] = []
        try:
            for reference in own.owner_references:
                owner = await self._find(record, resource, reference)
                going = owner is not None and ownership_of(owner).deletes_dependents
                (absent if owner is None else waiting if going else solid).append(reference.uid)
        except _Unresolved:
            self._unresolved.add(item)
            return
        except _Invalid:
            return
        if solid:
            if absent or waiting:
                await self._patch_owners(resource, record, without={*absent, *waiting})
            return
        policy = (
            "Orphan" if ORPHAN in own.finalizers else "Foreground" if FOREGROUND in own.finalizers else "Background"
        )
        dependents = self._graph.dependents(record.uid)
        if waiting and dependents:
            policy = "Foreground"
            if any(ownership_of(self._store.get(*dependent)).deletes_dependents for dependent in dependents):
                # A circle: one that its owners wait for, and that waits for one of them, stops blocking them.
                await self._patch_owners(resource, record, block=False)
                record = self._store.get(*item) or record
        preconditions = {"uid": record.uid, "resourceVersion": str(record.version)}
        await self._actor.delete(resource, record, {"propagationPolicy": policy, "preconditions": preconditions})

    async def _find(self, record: StoredObject, resource: Resource, reference: Owner) -> StoredObject | None:
        """The present owner; None: it is gone, or never was.

        Raises:
            _Unresolved, _Invalid.
        """
        kind = self._registry.find_kind(reference.api_version, reference.kind)
        gone = self._gone.get((reference.uid, record.namespace)) or self._gone.get((reference.uid, ""))
        if gone and (kind is not None or reference.api_version == gone):
            return None
        if kind is None:
            raise _Unresolved
        place = self._graph.place(reference.uid)
        if place is not None and kind.namespaced and place.key.rpartition("/")[0] != record.namespace:
            await self._report(record, resource, reference)
        if kind.namespaced and not resource.namespaced:
            raise _Invalid
        owner = self._store.get(
            kind.storage, f"{record.namespace}/{reference.name}" if kind.namespaced else reference.name
        )
        return owner if owner is not None and owner.uid == reference.uid else None

    async def _wait_for_dependents(self, resource: Resource, record: StoredObject, own: Ownership) -> None:
        """Let an object that is deleted in the foreground go when nothing blocks that any more."""
        blocking = [item for item, blocks in self._graph.dependents(record.uid).items() if blocks]
        if not blocking:
            await self._remove_finalizer(resource, record, own, FOREGROUND)
            return
        for item in blocking:
            if not ownership_of(self._store.get(*item)).deletes_dependents:
                self._work.add(item)

    async def _orphan(self, resource: Resource, record: StoredObject, own: Ownership) -> None:
        """Take an object out of the references of its dependents, then let it go."""
        for item in list(self._graph.dependents(record.uid)):
            dependent, kind = self._store.get(*item), self._actor.resource(item.storage)
            if dependent is not None and kind is not None:
                try:
                    await self._patch_owners(kind, dependent, without={record.uid})
                except NotFound:
                    continue
        await self._remove_finalizer(resource, record, own, ORPHAN)

    async def _patch_owners(
        self,
        resource: Resource,
        record: StoredObject,
        *,
        without: frozenset[str] | set[str] = frozenset(),
        block: bool = True,
    ) -> None:
        """Drop owner references, or (`block=False`) let all of them block nothing."""
        references: list[dict[str, Any]] = record.decode()["metadata"].get("ownerReferences", [])
        kept = [reference for reference in references if reference["uid"] not in without]
        if not block:
            kept = [{**reference, "blockOwnerDeletion": False} for reference in kept]
        await self._patch(resource, record, {"ownerReferences": kept or None})

    async def _remove_finalizer(self, resource: Resource, record: StoredObject, own: Ownership, name: str) -> None:
        await self._patch(resource, record, {"finalizers": [f for f in own.finalizers if f != name] or None})

    async def _patch(self, resource: Resource, record: StoredObject, metadata: dict[str, Any]) -> None:
        """Patch this very version of the object."""
        seen = {"resourceVersion": str(record.version), "uid": record.uid}
        await self._actor.patch(resource, record, {"metadata": {**metadata, **seen}})

    async def _report(self, record: StoredObject, resource: Resource, reference: Owner) -> None:
        """Say once, as an Event, that an owner is in another namespace: so it counts as gone."""
        if (record.uid, reference.uid) in self._reported:
            return
        self._reported.add((record.uid, reference.uid))
        namespace, moment = record.namespace or "default", self._clock.now()
        now = timestamp(moment)
        owner = (
            f"[{reference.api_version}/{reference.kind}, namespace: {record.namespace}, name: {reference.name}, "
            f"uid: {reference.uid}]"
        )
        regarding = {"apiVersion": resource.api_version, "kind": resource.kind, "name": record.name, "uid": record.uid}
        event = {
            "metadata": {"name": f"{record.name}.{int(moment.timestamp() * 1e9):x}", "namespace": namespace},
            "involvedObject": regarding | ({"namespace": record.namespace} if record.namespace else {}),
            "type": "Warning",
            "reason": "OwnerRefInvalidNamespace",
            "message": f'ownerRef {owner} does not exist in namespace "{record.namespace}"',
            "source": {"component": "garbage-collector-controller"},
            "reportingComponent": "garbage-collector-controller",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._actor.send("POST", f"/api/v1/namespaces/{namespace}/events", event)


def _no_longer_blocked(before: Ownership, after: Ownership) -> set[str]:
    """The uids of the owners whose deletion an object blocked until now."""
    still = {owner.uid for owner in after.owner_references if owner.block_owner_deletion}
    return {owner.uid for owner in before.owner_references if owner.block_owner_deletion} - still
