"""NamespaceController: empties namespaces that are being deleted, then lets them go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from kopylite.apiserver.controllers.actor import Actor, path_of
from kopylite.apiserver.controllers.ownership import ownership_of
from kopylite.apiserver.controllers.worklist import WorkList
from kopylite.apiserver.core import Core
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.history import DELETED, StoredChange, StoredObject
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.errors import NotFound

NAME = "namespace-controller"
STORAGE = "namespaces"
FINALIZER = "kubernetes"
_BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}


class Remaining(NamedTuple):
    """What is left of one kind in a namespace."""

    resource: Resource
    records: list[StoredObject]


class NamespaceController:
    """Deletes everything in a terminating namespace, pods before all else, and honours finalizers."""

    def __init__(self, core: Core) -> None:
        self._store = core.world.store
        self._registry = core.world.registry
        self._clock = core.world.clock
        self._actor = Actor(core, NAME)
        self._work: WorkList[str] = WorkList("namespace controller", self._attempt)
        self._terminating: set[str] = set()

    def begin(self) -> None:
        for record in list(self._store.collection(STORAGE).records.values()):
            self._note(record)

    async def run(self) -> None:
        await self._work.run()

    def observe(self, storage: str, change: StoredChange) -> None:
        if storage == STORAGE:
            if change.type == DELETED:
                self._terminating.discard(change.record.key)
            else:
                self._note(change.record)
        elif self._terminating and change.record.namespace in self._terminating:
            self._work.add(change.record.namespace)

    def _note(self, record: StoredObject) -> None:
        if ownership_of(record).deletion_timestamp is not None:
            self._terminating.add(record.key)
            self._work.add(record.key)

    async def _attempt(self, name: str) -> None:
        """Take the next step for one namespace. Raises ApiError: it is tried again."""
        try:
            await self._delete_content(name)
            record = self._store.get(STORAGE, name)
            namespace = record.decode() if record else {}
            if FINALIZER not in namespace.get("spec", {}).get("finalizers", ()):
                return
            remaining = list(self._content(name))
            if remaining:
                await self._tell(namespace, remaining)
            else:
                await self._finalize(namespace)
        except NotFound:
            return  # it went meanwhile

    async def _delete_content(self, name: str) -> None:
        """Pods go first: they may still need what else is in the namespace."""
        content = list(self._content(name))
        pods = [kind for kind in content if kind.resource.storage == "pods"]
        for resource, records in pods or content:
            going = all(ownership_of(record).deletion_timestamp is not None for record in records)
            if not going and "deletecollection" in resource.verbs:
                await self._actor.send("DELETE", path_of(resource, name), _BACKGROUND)
            elif not going:
                for record in records:
                    await self._actor.delete(resource, record, _BACKGROUND)
        if pods and not any(kind.resource.storage == "pods" for kind in self._content(name)):
            await self._delete_content(name)

    def _content(self, name: str) -> Iterator[Remaining]:
        """What is there of each kind, in the order of the kinds' names."""
        for storage, resource in sorted(self._registry.storages().items()):
            if resource.namespaced:
                records = list(self._store.collection(storage).scan(f"{name}/", "", self._store.version))
                if records:
                    yield Remaining(resource, records)

    async def _finalize(self, namespace: dict[str, Any]) -> None:
        spec = namespace["spec"]
        spec["finalizers"] = [finalizer for finalizer in spec["finalizers"] if finalizer != FINALIZER]
        await self._actor.send("PUT", f"/api/v1/namespaces/{namespace['metadata']['name']}/finalize", namespace)

    async def _tell(self, namespace: dict[str, Any], remaining: list[Remaining]) -> None:
        """Show in the namespace's conditions what it waits for."""
        known = {c["type"]: c for c in namespace.get("status", {}).get("conditions", ())}
        conditions = []
        for condition in deletion_conditions(remaining):
            before = known.pop(condition["type"], {})
            changed = before.get("status") != condition["status"]
            since = timestamp(self._clock.now()) if changed else before["lastTransitionTime"]
            conditions.append({**condition, "lastTransitionTime": since})
        conditions += known.values()
        if conditions != namespace.get("status", {}).get("conditions"):
            path = f"/api/v1/namespaces/{namespace['metadata']['name']}/status"
            namespace.setdefault("status", {})["conditions"] = conditions
            await self._actor.send("PUT", path, namespace)


def deletion_conditions(remaining: list[Remaining]) -> list[dict[str, str]]:
    """The five conditions of a namespace that cannot go yet, with upstream's texts, without times."""
    kinds = [f"{r.resource.plural}.{r.resource.group} has {len(r.records)} resource instances" for r in remaining]
    holders = Counter(name for r in remaining for record in r.records for name in ownership_of(record).finalizers)
    finalizers = [f"{name} in {count} resource instances" for name, count in sorted(holders.items())]
    content = f"Some resources are remaining: {', '.join(kinds)}"
    blocked = f"Some content in the namespace has finalizers remaining: {', '.join(finalizers)}"
    done = "All content-preserving finalizers finished"
    return [
        _condition("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _condition(
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        _condition("NamespaceContentRemaining", "SomeResourcesRemain", content, "True"),
        _condition("NamespaceFinalizersRemaining", "SomeFinalizersRemain", blocked, "True")
        if finalizers
        else _condition("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", done),
    ]


def _condition(kind: str, reason: str, message: str, status: str = "False") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}
