"""Delete and deletecollection: preconditions, grace, finalizers, propagation.

Order and exceptions are those of apiserver's registry/rest/delete.go (grace) and registry/generic/registry/store.go
(finalizers, what is marked and what goes at once).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from kopylite.apiserver.request.options import DeleteOptions
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.slices import Slices
from kopylite.apiserver.storage.history import StoredObject
from kopylite.apiserver.storage.store import Moved
from kopylite.apiserver.world import (
    Admission,
    Call,
    World,
    object_in,
    qualified_details,
    selectable_fields,
)
from kopylite.apiserver.writes.lifecycle import IMMORTAL_NAMESPACES
from kopylite.apiserver.writes.metadata import FOREGROUND, ORPHAN, timestamp
from kopylite.apiserver.writes.writer import conflict, is_finished
from kopylite.errors import Forbidden, NotFound

DEFAULT_POD_GRACE = 30
# Kinds whose DELETE answers with the object instead of a Status (ReturnDeletedObject upstream).
_RETURN_OBJECT = frozenset(
    {"pods", "podtemplates", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims",
     "resourcequotas", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "storageclasses.storage.k8s.io",
     "volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
     "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io",
     "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io"}
)  # fmt: skip
# Kinds whose dependents stay unless the client asks for something else.
_ORPHANING = ("jobs.batch", "replicationcontrollers")
_JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)


class Deleter:
    """Deletes objects of any resource.

    Attributes:
        marks: how the beginning of a deletion shows in objects of some storages, beyond metadata.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.marks: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"namespaces": self._terminating}

    async def delete(self, call: Call, options: DeleteOptions) -> tuple[int, bytes]:
        """Delete or mark the object that the path names.

        Returns:
            The HTTP status and the body: the object if it is still there, else mostly a Status.

        Raises:
            NotFound, Conflict (a precondition), Forbidden.
        """
        resource, store = call.resource, self._world.store
        if resource.storage == "namespaces" and call.target.name in IMMORTAL_NAMESPACES:
            raise _immortal(call)
        for hook in self._world.hooks.write:
            await hook(call)
        if resource.storage == "jobs.batch" and options.policy is None and options.orphan_dependents is None:
            call.warnings.append(_JOB_WARNING)
        while True:
            record = store.get(resource.storage, call.key)
            if record is None:
                raise call.not_found()
            check_preconditions(call, record, options)
            await self._world.prepare_one(resource, record)
            live = object_in(resource, record)
            for plugin in self._world.validating:
                await plugin(Admission(call, "DELETE", None, live, options.dry_run))
            try:
                return self._delete(call, record, live, options)
            except Moved:
                continue  # it was looked at before a plug-in was awaited: look again

    def delete_now(self, call: Call, record: StoredObject, options: DeleteOptions) -> None:
        """Delete in this turn of the loop, with no hooks and no admission: for the server's own parts."""
        # In the stored version, where another one would take a webhook.
        self._delete(call, record, _stored(call.resource, record), options)

    def _delete(
        self, call: Call, record: StoredObject, live: dict[str, Any], options: DeleteOptions
    ) -> tuple[int, bytes]:
        resource, store = call.resource, self._world.store
        obj = msgspec.json.decode(msgspec.json.encode(live))
        grace = self._grace(resource.strategy.grace, obj, options)
        if resource.storage != "events":
            _set_finalizers(obj["metadata"], options, default=ORPHAN if resource.storage in _ORPHANING else "")
        obj = self._mark(call, obj, grace)
        if is_finished(obj):
            version = record.version
            if not options.dry_run:
                version = store.delete(resource.storage, call.key, record).version
            if resource.storage not in _RETURN_OBJECT:
                return 200, self._success(call, record)
            # With the marks only where there is a grace period to speak of.
            shown = obj if resource.strategy.grace else live
            shown["metadata"]["resourceVersion"] = str(version)
            return 200, msgspec.json.encode(shown)
        status = 202 if options.orphan_dependents is False else 200
        if obj == live or options.dry_run:
            return status, msgspec.json.encode(obj)
        stored, shape = obj, resource.encoding_version
        if resource.conversion is not None:  # only metadata has changed, which no conversion does
            stored, shape = {**record.decode(), "metadata": obj["metadata"]}, record.encoding_version
        written = store.update(
            resource.storage, call.key, stored, record, encoding_version=shape, fields=selectable_fields(resource, obj)
        )
        if resource.conversion is not None:
            return status, msgspec.json.encode(obj)
        return status, written.body

    def _grace(self, graceful: bool, obj: dict[str, Any], options: DeleteOptions) -> int:
        """Seconds from now until the object may go; 0 for kinds without graceful deletion."""
        if not graceful:
            return 0
        spec = obj.get("spec", {})
        wanted = options.grace_period
        if wanted is None:
            wanted = spec.get("terminationGracePeriodSeconds", DEFAULT_POD_GRACE)
        if wanted < 0:
            wanted = 1
        phase = obj.get("status", {}).get("phase")
        return 0 if not spec.get("nodeName") or phase in ("Succeeded", "Failed") else wanted

    def _mark(self, call: Call, obj: dict[str, Any], grace: int) -> dict[str, Any]:
        """Set the deletion time; a later deletion may only shorten the grace."""
        mark = self.marks.get(call.resource.storage)
        if mark is not None and "deletionTimestamp" not in obj["metadata"]:
            obj = mark(obj)
        metadata = obj["metadata"]
        now = self._world.clock.now()
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
            metadata["deletionGracePeriodSeconds"] = grace
            if call.resource.strategy.generation:
                metadata["generation"] = metadata.get("generation", 0) + 1
        elif grace < metadata.get("deletionGracePeriodSeconds", 0):
            metadata["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
            metadata["deletionGracePeriodSeconds"] = grace
        return obj

    def _terminating(self, namespace: dict[str, Any]) -> dict[str, Any]:
        """Namespaces get no grace period, but a phase."""
        namespace["metadata"]["deletionTimestamp"] = timestamp(self._world.clock.now())
        return {**namespace, "status": {**namespace.get("status", {}), "phase": "Terminating"}}

    async def delete_collection(self, call: Call, records: list[StoredObject], options: DeleteOptions) -> None:
        """Delete these one by one; those that are gone meanwhile are skipped."""
        await self._world.prepare_list(call.resource, records)
        slices = Slices()
        for record in records:
            await slices.turn()
            one = replace(call.target, name=record.name, namespace=record.namespace)
            try:
                await self.delete(Call(call.request, one, call.resource, call.warnings), options)
            except NotFound:
                continue

    def _success(self, call: Call, record: StoredObject) -> bytes:
        details = {**qualified_details(call.resource, call.target.name), "uid": record.uid}
        return msgspec.json.encode(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )


def _stored(resource: Resource, record: StoredObject) -> dict[str, Any]:
    return record.decode() if resource.conversion is not None else object_in(resource, record)


def check_preconditions(call: Call, record: StoredObject, options: DeleteOptions) -> None:
    """Raises Conflict."""
    uid, version = options.uid, options.resource_version
    if uid is not None and uid != record.uid:
        text = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({record.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(call, text, kind=call.resource.kind)
    if version is not None and version != str(record.version):
        text = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({record.version}). The object might have been modified"
        )
        raise conflict(call, text, kind=call.resource.kind)


def _set_finalizers(metadata: dict[str, Any], options: DeleteOptions, *, default: str) -> None:
    """Turn the propagation asked for (else the GC finalizer already there, else the default) into a finalizer."""
    present = metadata.get("finalizers", [])
    if options.orphan_dependents is not None:
        wanted = ORPHAN if options.orphan_dependents else ""
    elif options.policy is not None:
        wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.policy, "")
    else:
        wanted = next((f for f in present if f in (ORPHAN, FOREGROUND)), default)
    finalizers = [f for f in present if f not in (ORPHAN, FOREGROUND)] + ([wanted] if wanted else [])
    if set(finalizers) == set(present):
        return
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _immortal(call: Call) -> Forbidden:
    name = call.target.name
    return Forbidden(
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
        details=qualified_details(call.resource, name),
    )
