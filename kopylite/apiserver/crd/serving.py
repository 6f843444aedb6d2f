"""CrdServing: watches the stored CRDs and keeps the registry in step, within the turn of the write itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kopylite.apiserver.crd.definitions import (
    begin_deletion,
    crd_resources,
    deletion_completed,
    deletion_in_progress,
    establish,
    is_established,
    is_terminating,
    needs_cleanup,
)
from kopylite.apiserver.deletion.deleter import Deleter
from kopylite.apiserver.depth import deep_stack
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.request.options import DeleteOptions
from kopylite.apiserver.request.request import HttpRequest, Target
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.history import DELETED, StoredChange, StoredObject
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.apiserver.writes.writer import is_finished

# How many objects of a CRD that goes are deleted in one turn of the event loop.
_PORTION = 200
STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


class CrdServing:
    """Establishes CRDs, serves what they define, and cleans up after those that are deleted.

    A real server does the same in controllers, within a second or so; here a client that has its answer can
    use the new resource at once.
    """

    def __init__(self, world: World, deleter: Deleter) -> None:
        self._world = world
        self._deleter = deleter
        # The resources of each CRD, by its name; and the storages of those that are being cleaned up.
        self._served: dict[str, list[Resource]] = {}
        # What each CRD said when its resources were made: its spec, and whether it was going.
        self._told: dict[str, tuple[dict[str, Any], bool]] = {}
        self._cleaning: dict[str, str] = {}
        deleter.marks[STORAGE] = lambda obj: begin_deletion(obj, self._now())
        world.store.observers.append(self._observe)
        for record in list(self._records()):
            self._changed(record)

    def _now(self) -> str:
        return timestamp(self._world.clock.now())

    def _records(self) -> list[StoredObject]:
        return list(self._world.store.collection(STORAGE).records.values())

    def _of_group(self, group: str) -> Iterator[dict[str, Any]]:
        return (record.decode() for record in self._records() if _group_of(record) == group)

    def _observe(self, storage: str, change: StoredChange) -> None:
        if storage == STORAGE:
            if change.type == DELETED:
                self._stop_serving(change.record.name)
                self._reconsider(change.record)
            else:
                self._changed(change.record)
        elif change.type == DELETED and storage in self._cleaning:
            self._complete_cleanup(storage)

    def _changed(self, record: StoredObject) -> None:
        crd = record.decode()
        if needs_cleanup(crd):
            self._serve(record.name, crd)
            self._clean_up(record, crd)
            return
        settled = establish(crd, self._of_group(crd["spec"]["group"]), self._now())
        if settled != crd:
            self._own_status(settled, crd)
            # Comes back here as a change of its own.
            self._world.store.update(
                STORAGE, record.key, settled, record, encoding_version=record.encoding_version, fields=record.fields
            )
        elif is_established(crd):
            self._serve(record.name, crd)

    def _reconsider(self, gone: StoredObject) -> None:
        """Others of the group may have waited for the names of the one that is gone."""
        for crd in list(self._of_group(_group_of(gone))):
            record = self._world.store.get(STORAGE, crd["metadata"]["name"])
            if record is not None and not is_established(crd):
                self._changed(record)

    def _own_status(self, crd: dict[str, Any], before: dict[str, Any]) -> None:
        """The server itself is the manager of what it writes into a CRD's status."""
        group, version, plural = "apiextensions.k8s.io", "v1", "customresourcedefinitions"
        resource = self._world.registry.find(group, version, plural)
        if resource is not None:
            update_managed_fields(
                crd,
                before,
                schema=resource.strategy.schema,
                manager="kube-apiserver",
                api_version=resource.api_version,
                subresource="status",
                now=self._now(),
            )

    def _serve(self, name: str, crd: dict[str, Any]) -> None:
        before = self._served.get(name, [])
        told = crd["spec"], is_terminating(crd)
        if before and self._told.get(name) == told:
            return
        self._told[name] = told
        after = crd_resources(crd) if is_established(crd) else []
        for resource in after:
            self._world.registry.add(resource)
        versions = {resource.version for resource in after}
        for resource in before:
            if resource.version not in versions:
                self._world.registry.remove(resource.group, resource.version, resource.plural)
        self._served[name] = after
        if before:
            # A new schema is a new handler: the watches of the old one end, the objects stay.
            self._world.store.close_collection(before[0].storage, keep=True)

    def _stop_serving(self, name: str) -> None:
        self._told.pop(name, None)
        for resource in self._served.pop(name, []):
            self._world.registry.remove(resource.group, resource.version, resource.plural)
            self._world.store.close_collection(resource.storage, keep=False)

    def _clean_up(self, record: StoredObject, crd: dict[str, Any]) -> None:
        """Begin to delete the objects of a CRD, once."""
        storage = crd["metadata"]["name"]
        if storage in self._cleaning:
            return
        self._cleaning[storage] = record.key
        going = deletion_in_progress(crd, self._now())
        self._world.store.update(
            STORAGE, record.key, going, record, encoding_version=record.encoding_version, fields=record.fields
        )
        resource = next(iter(self._served.get(record.name, [])), None)
        if resource is not None:
            self._delete_instances(storage, resource, list(self._world.store.collection(storage).records))
        self._complete_cleanup(storage)

    def _delete_instances(self, storage: str, resource: Resource, keys: list[str]) -> None:
        """Delete these objects in portions: the first now, the next one after the event loop had its turn."""
        collection = self._world.store.collection(storage)
        with deep_stack():
            for key in keys[:_PORTION]:
                record = collection.records.get(key)
                if record is not None and not collection.closed:
                    self._deleter.delete_now(_deletion(resource, record), record, DeleteOptions())
        if len(keys) > _PORTION and not collection.closed:
            asyncio.get_running_loop().call_soon(self._delete_instances, storage, resource, keys[_PORTION:])

    def _complete_cleanup(self, storage: str) -> None:
        """Let the CRD go when nothing is left of it."""
        store = self._world.store
        key = self._cleaning.get(storage)
        if key is None or store.collection(storage).records:
            return
        del self._cleaning[storage]
        record = store.get(STORAGE, key)
        if record is None:
            return
        done = deletion_completed(record.decode(), self._now())
        if is_finished(done):
            store.delete(STORAGE, key, record)
        else:
            store.update(STORAGE, key, done, record, encoding_version=record.encoding_version, fields=record.fields)


def _group_of(crd: StoredObject) -> str:
    """Its name says it."""
    return crd.name.partition(".")[2]


def _deletion(resource: Resource, record: StoredObject) -> Call:
    """A DELETE of one object, as the server's own controller would send it."""
    target = Target("delete", "", resource.group, resource.version, resource.plural)
    target = replace(target, namespace=record.namespace, name=record.name)
    return Call(HttpRequest("DELETE", ""), target, resource)
