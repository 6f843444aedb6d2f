"""Others: who else writes to the operator's objects: notes, elements of lists, finalizers; what is theirs must stay."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kopylite.apiserver.request.request import HttpRequest, Target, parse_target
from kopylite.errors import ApiError, KopyliteError
from kopylite.objects import Kind, Unstructured, key_of, kind_of
from kopylite.sweep.guests import has_guest, with_guest, without_guest
from kopylite.sweep.scene import Scene, named
from kopylite.sweep.states import DATA_KEY, HOLD, NOTE, is_controlled
from kopylite.sweep.trace import OPERATOR
from kopylite.sweep.world import SweepWorld


class Others:
    """Second writers, in one run.

    Attributes:
        scene: through whose client they write; set before the first step.
        lost: what they left and is gone.
    """

    scene: Scene

    def __init__(self, world: SweepWorld) -> None:
        self.world = world
        self.lost: list[str] = []
        self._notes: list[tuple[Kind, Any, str, str]] = []
        self._guests: list[tuple[Unstructured, str]] = []
        self._holds: list[tuple[Kind, Any, str]] = []

    async def delete_child(self, key: str) -> bool:
        """Delete an object, "resource namespace/name". Whether it was there, and nobody holds it."""
        storage, _, name = key.partition(" ")
        plural, _, group = storage.partition(".")
        resource = next((r for r in self.world.server.world.registry if (r.plural, r.group) == (plural, group)), None)
        record = self.world.server.world.store.collection(storage).records.get(name)
        if resource is None or record is None or record.decode()["metadata"].get("finalizers"):
            return False
        kind = Kind(resource.api_version, resource.kind, resource.plural, resource.namespaced)
        with suppress(ApiError):
            await self.scene.client.delete(kind, record.name, namespace=record.namespace)
        return True

    async def _stored(self, request: HttpRequest) -> Unstructured | None:
        """The object that is about to be written."""
        target = parse_target(request)
        resource = self.world.server.world.registry.find(target.group, target.version, target.resource)
        if resource is None:
            return None
        kind = Kind(resource.api_version, resource.kind, resource.plural, resource.namespaced)
        return await self.scene.client.live.find(kind, target.name, namespace=target.namespace)

    async def add_guest(self, request: HttpRequest, path: str) -> None:
        """Another writer adds an element to a list in the object that is about to be written."""
        stored = await self._stored(request)
        changed = with_guest(stored, path) if stored is not None else None
        if stored is None or changed is None:
            return
        with suppress(ApiError):
            await self.scene.client.update(Unstructured(changed))
            self._guests.append((stored, path))

    async def see_guests_off(self) -> bool:
        """What another writer added has to be there as long as the object is; then it takes it away. Whether it had."""
        for stored, path in self._guests:
            kind = kind_of(stored)
            now = await self.scene.client.live.find(kind, stored.name, namespace=stored.namespace)
            if now is None or now.uid != stored.uid:
                continue
            if not has_guest(now, path):
                field = path[1:].replace("/", ".")
                self.lost.append(f"what somebody else added to {field} of {kind.kind} {key_of(stored)}")
            await self.scene.client.update(Unstructured(without_guest(now, path)))
        had = bool(self._guests)
        self._guests.clear()
        return had

    def _is_operators(self, target: Target) -> bool:
        """Whether the operator made the object: it decides about all of it."""
        storage = f"{target.resource}.{target.group}" if target.group else target.resource
        key = f"{storage} {target.namespace}/{target.name}".replace(" /", " ")
        made = [e.actor for e in self.world.trace.changes() if e.key == key and e.change == "ADDED"]
        return made[-1:] == [OPERATOR]

    async def leave_note(self, request: HttpRequest) -> None:
        """Another writer changes something else in the object that is about to be written."""
        stored, target = await self._stored(request), parse_target(request)
        if stored is None:
            return
        kind = kind_of(stored)
        controlled = is_controlled(stored)
        patch: dict[str, Any] = {"metadata": {"annotations": {NOTE: "somebody's"}}}
        # What it has not made, and where more than one key is, it shares. A value as there is reads as the others do.
        values = [*(stored.get("data") or {}).values()]
        if kind.kind in ("ConfigMap", "Secret") and len(values) > 1 and not self._is_operators(target):
            patch["data"] = {DATA_KEY: values[0]}
        await self.scene.client.patch(kind, target.name, patch, type="merge", namespace=target.namespace)
        if not controlled:
            self._notes.append((kind, target, stored.uid, "data" if "data" in patch else ""))

    async def hold(self) -> None:
        for manifest in list(self.scene.manifests.values()):
            kind, key = named(manifest)
            try:
                stored = await self.scene.client.live.get(kind, key.name, namespace=key.namespace)
                finalizers = [*stored.metadata.get("finalizers", []), HOLD]
                patch = {"metadata": {"finalizers": finalizers, "resourceVersion": stored.resource_version}}
                await self.scene.client.patch(kind, key.name, patch, namespace=key.namespace, type="merge")
            except ApiError:
                continue
            self._holds.append((kind, key, stored.uid))

    async def let_go(self) -> bool:
        """Take the finalizers of somebody else away, which have to be there still. Whether there were any."""
        for kind, key, uid in self._holds:
            stored = await self.scene.client.live.find(kind, key.name, namespace=key.namespace)
            if stored is None or stored.uid != uid or HOLD not in stored.metadata.get("finalizers", []):
                self.lost.append(f"the finalizer of somebody else on {kind.kind} {key}")
                continue
            finalizers = [each for each in stored.metadata["finalizers"] if each != HOLD]
            patch = {"metadata": {"finalizers": finalizers, "resourceVersion": stored.resource_version}}
            await self.scene.client.patch(kind, key.name, patch, namespace=key.namespace, type="merge")
        had = bool(self._holds)
        self._holds.clear()
        return had

    async def check_notes(self) -> None:
        """What somebody else wrote has to be there as long as the object is."""
        for kind, target, uid, data in self._notes:
            try:
                stored = await self.scene.client.live.find(kind, target.name, namespace=target.namespace)
            except KopyliteError:
                continue
            if stored is None or stored.uid != uid:
                continue
            if NOTE not in (stored.metadata.get("annotations") or {}):
                self.lost.append(f"the annotation of somebody else on {kind.kind} {target.name}")
            elif data and DATA_KEY not in (stored.get("data") or {}):
                self.lost.append(f"the data of somebody else in {kind.kind} {target.name}")
        self._notes.clear()
