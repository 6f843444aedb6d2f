"""Who owns which field after a write: the bookkeeping of updates, and server-side apply. Pure.

The steps are those of apimachinery's util/managedfields/internal/: fieldmanager.go stacks them, one file each
(stripmeta.go, capmanagers.go, managedfieldsupdater.go).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kopylite.apiserver.patching.apply import managers as table
from kopylite.apiserver.patching.apply.comparison import Differences, compare, field_set, settled
from kopylite.apiserver.patching.apply.conflicts import Conflicts, conflict_error
from kopylite.apiserver.patching.apply.fieldsets import (
    BadFields,
    Fields,
    difference,
    has,
    intersection,
    paths,
    union,
    without_subtrees,
)
from kopylite.apiserver.patching.apply.managers import APPLY, UPDATE, ManagerId, Managers, Owned, manager_id
from kopylite.apiserver.patching.apply.merging import merge, problems, remove_items, with_named_fields
from kopylite.apiserver.patching.apply.topology import Topology, topology_of
from kopylite.apiserver.patching.copying import copied
from kopylite.apiserver.schema.field_errors import go_json
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.errors import ApiError, BadRequest

Object = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A private key of a built-in kind's root schema: the object in which only those fields are set that its Go
# struct always has, and that a creator therefore does not add.
EMPTY = "x-kopylite-empty"
BEFORE_FIRST_APPLY = "before-first-apply"

_TO_LAST_APPLIED = "failed to prune fields: failed to convert merged object to last applied version: "

# Nobody owns these: the server sets them, or they name the object.
_NEVER_OWNED: Fields = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:clusterName": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Keeps managedFields for one endpoint of one resource version.

    Attributes:
        schema: of the whole object, metadata included.
        api_version, kind: of the endpoint.
        subresource: "" for the main endpoint.
        reset_fields: a set: what this endpoint does not take from clients, and whose changes it ignores.
        schema_in: of a custom resource: the schema in another version, to which objects are converted by their
            apiVersion alone; None for a version that there is not. Of built-in kinds it is not asked.
    """

    schema: SchemaNode
    api_version: str
    kind: str
    subresource: str = ""
    reset_fields: Fields = field(default_factory=dict)
    schema_in: Callable[[str], SchemaNode | None] | None = None

    @property
    def _empty(self) -> Object:
        """What a new object is compared with."""
        return dict(self.schema.raw.get(EMPTY) or {})

    @property
    def _topology(self) -> Topology:
        return topology_of(self.schema)

    def update(self, live: Object | None, new: Object, manager: str, now: str) -> None:
        """Set `new`'s managedFields after a create, update or non-apply patch.

        Args:
            live: the stored object; None on create.
            new: the object as this endpoint received it (decoded and defaulted); changed in place.
            manager: name of the field manager; "" counts as "unknown".
            now: the time of the request, RFC 3339 in UTC with whole seconds.
        """
        metadata = new.setdefault("metadata", {})
        sent = metadata.pop("managedFields", None)
        kept = (live or {}).get("metadata", {}).get("managedFields") or []
        current = self._chosen(sent, kept)
        if live is not None and not current:
            return
        before = None if live is None else _without_managed_fields(live)
        try:
            current = self._settled(current, before)
            self._check_typed("new", new)
            self._checked_in(current, new)
        except ApiError:
            # As upstream: the books stay as they are where they cannot be kept.
            if kept:
                metadata["managedFields"] = kept
            return
        changes = self._changes(self._empty if before is None else before, new)
        if not changes.changed and not changes.removed and (sent is None or sent == kept):
            if kept:
                metadata["managedFields"] = kept
            return
        self._record(current, changes, manager_id(manager, UPDATE, self.api_version, self.subresource), now)
        table.cap_update_managers(current)
        if current:
            metadata["managedFields"] = table.encode(current)

    def _chosen(self, sent: Any, kept: list[Any]) -> Managers:
        """The table that a write starts from: the client's list if it sent a good one, else the stored one."""
        if self.subresource or not isinstance(sent, list):
            return table.decode(kept, trusted=True)
        if not sent or sent == [{}]:
            return {}
        if sent == kept:
            return table.decode(kept, trusted=True)
        try:
            return table.decode(sent, trusted=False)
        except BadFields:
            return table.decode(kept, trusted=True)

    def _settled(self, current: Managers, live: Object | None) -> Managers:
        """The managers as the schemas are now.

        Raises:
            ApiError: code 500: the stored object does not fit its schema, or the one of a version in which a manager
                wrote it: each manager's fields are compared in his version, so what one version lacks stops all.
        """
        if self.schema_in is None or live is None:
            return current
        self._check_typed("live", live)
        topologies = self._checked_in(current, live)
        return {
            identity: replace(owned, fields=settled(owned.fields, topologies[owned.api_version]))
            for identity, owned in current.items()
        }

    def _check_typed(self, what: str, obj: Object) -> None:
        if self.schema_in is not None and (found := problems(obj, self._topology, duplicates=True)):
            text = f"failed to create typed {what} object {self._named(obj)}: {_joined(found)}"
            raise ApiError(text, code=500, reason="")

    def _checked_in(self, current: Managers, obj: Object, step: str = "") -> dict[str, Topology]:
        """The topologies of the managers' versions, in all of which the object has to be typed. Raises ApiError."""
        topologies = {self.api_version: self._topology}
        if self.schema_in is None:
            return topologies
        for version in sorted({owned.api_version for owned in current.values()} - {self.api_version}):
            schema = self.schema_in(version)
            if schema is None:
                text = f"{step}request to convert CR to an invalid group/version: {version}"
                raise ApiError(text, code=500, reason="")
            topologies[version] = topology_of(schema)
            if found := problems(obj, topologies[version]):
                raise ApiError(step + _joined(found), code=500, reason="")
        return topologies

    def _named(self, obj: Object) -> str:
        metadata = obj.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        return f"({name}; {_version_text(self.api_version)}, Kind={self.kind})"

    def _changes(self, live: Object, new: Object) -> Differences:
        changed, removed = compare(live, new, self._topology)
        return Differences(without_subtrees(changed, self.reset_fields), without_subtrees(removed, self.reset_fields))

    def _record(self, current: Managers, changes: Differences, writer: ManagerId, now: str) -> None:
        """Take changed and removed fields from all managers, and give the changed ones to the writer."""
        for identity, owned in list(current.items()):
            rest = difference(difference(owned.fields, changes.changed), changes.removed)
            _put(current, identity, replace(owned, fields=rest))
        gained = difference(changes.changed, _NEVER_OWNED)
        if gained:
            before = current.get(writer)
            fields = gained if before is None else union(gained, before.fields)
            current[writer] = Owned(fields, self.api_version, now)

    def apply(self, live: Object | None, config: Object, manager: str, now: str, *, force: bool) -> Object:
        """Server-side apply: the object that results, not yet decoded and defaulted again.

        Args:
            live: the stored object; None if there is none.
            config: what the manager wants, decoded from the request; left alone.
            manager: name of the field manager; must not be empty.
            now: the time of the request, RFC 3339 in UTC with whole seconds.
            force: take fields over from other managers.

        Returns:
            a new object with its managedFields, which shares nothing with the arguments; equal to `live` if the
            request changes nothing.

        Raises:
            BadRequest: apiVersion or kind are not the endpoint's, or managedFields is set.
            ApiError: code 500: the configuration does not fit the schema.
            Conflict: other managers own fields that the configuration would change.
        """
        self._check(config)
        base = live if live is not None else self._empty
        kept = base.get("metadata", {}).get("managedFields") or []
        base = _without_managed_fields(base)
        current = table.decode(kept, trusted=True)
        current = self._settled(current, base if live is not None else None)
        if not current and live is not None:
            writer = manager_id(BEFORE_FIRST_APPLY, UPDATE, self.api_version, self.subresource)
            self._record(current, self._changes(self._empty, base), writer, now)
        identity = manager_id(manager, APPLY, self.api_version, self.subresource)
        try:
            result, owners = self._applied(base, config, current, identity, force)
        except Conflicts as conflicts:
            left = self._not_from_last_apply(conflicts, base) if manager == "kubectl" else conflicts
            if left:
                raise conflict_error(left) from None
            result, owners = self._applied(base, config, current, identity, True)
        if result is not base and identity in owners:
            owners[identity] = replace(owners[identity], time=now)
        if manager == "kubectl":
            result = _with_last_applied(result, config)
        metadata = dict(result.get("metadata") or {})
        if owners:
            metadata["managedFields"] = table.encode(owners)
        # The caller goes on to change the result in place.
        return copied({**result, "metadata": metadata})

    def _check(self, config: Object) -> None:
        version, kind = str(config.get("apiVersion", "")), str(config.get("kind", ""))
        if (version, kind) != (self.api_version, self.kind):
            raise BadRequest(f"invalid object type: {_version_text(version)}, Kind={kind}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise BadRequest("metadata.managedFields must be nil")
        found = problems(config, self._topology)
        if found:
            text = f"failed to create typed patch object {self._named(config)}: {_joined(found)}"
            raise ApiError(text, code=500, reason="")

    def _applied(
        self, live: Object, config: Object, current: Managers, identity: ManagerId, force: bool
    ) -> tuple[Object, Managers]:
        owners = dict(current)
        last = owners.get(identity)
        wanted = field_set(config, self._topology)
        wanted = without_subtrees(wanted, self.reset_fields)
        owners[identity] = Owned(wanted, self.api_version, last.time if last else "")
        merged = merge(live, config, self._topology)
        if last is not None and last.fields:
            self._checked_in({identity: last}, merged, _TO_LAST_APPLIED)
        if last is not None and difference(last.fields, wanted):
            merged = self._pruned(merged, owners, last.fields)
        self._checked_in(owners, merged, "failed to convert new object: ")
        changes = self._changes(live, merged)
        others = [m for m in owners if m != identity]
        conflicts = {m: c for m in others if (c := intersection(owners[m].fields, changes.changed))}
        if conflicts and not force:
            raise Conflicts([(m, path) for m in sorted(conflicts, key=ManagerId.order) for path in paths(conflicts[m])])
        for other in others:
            rest = difference(difference(owners[other].fields, conflicts.get(other, {})), changes.removed)
            _put(owners, other, replace(owners[other], fields=rest))
        _put(owners, identity, replace(owners[identity], fields=difference(wanted, _NEVER_OWNED)))
        return (live if merged == live else merged), owners

    def _pruned(self, merged: Object, owners: Managers, last: Fields) -> Object:
        """The merged object without what this manager applied last time, does not now, and nobody else owns."""
        topology = self._topology
        last = with_named_fields(last, topology)
        pruned = remove_items(merged, last, topology) or {}
        owned: Fields = {}
        for manager in owners.values():
            owned = union(owned, manager.fields)
        everything = with_named_fields(field_set(merged, topology), topology)
        left = with_named_fields(field_set(pruned, topology), topology)
        gone = difference(everything, union(left, with_named_fields(owned, topology)))
        pruned = remove_items(merged, gone, topology) or {}
        left = with_named_fields(field_set(pruned, topology), topology)
        return remove_items(merged, intersection(difference(everything, left), last), topology) or {}

    def _not_from_last_apply(self, conflicts: Conflicts, live: Object) -> Conflicts | None:
        """The conflicts that remain for `kubectl apply --server-side` after client-side applies.

        Fields that still are as the last client-side apply left them are taken over without asking.
        """
        text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        try:
            last = msgspec.json.decode(text or "")
        except msgspec.DecodeError:
            return conflicts
        if not isinstance(last, dict) or last.get("apiVersion") != self.api_version or problems(last, self._topology):
            return conflicts
        changes = compare(last, live, self._topology)
        allowed = difference(difference(field_set(last, self._topology), changes.changed), changes.removed)
        left = [(m, path) for m, path in conflicts.found if not has(allowed, path)]
        return Conflicts(left) if left else None


def _version_text(api_version: str) -> str:
    """A version in messages, where the core group has an empty name before the slash."""
    return api_version if "/" in api_version else f"/{api_version}"


def _joined(found: list[str]) -> str:
    return found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])


def _put(current: Managers, identity: ManagerId, owned: Owned) -> None:
    if owned.fields:
        current[identity] = owned
    else:
        current.pop(identity, None)


def _without_managed_fields(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _with_last_applied(result: Object, config: Object) -> Object:
    """Keep the annotation of client-side apply true, where an object has it."""
    metadata = result.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return result
    wanted = dict(config)
    if isinstance(config.get("metadata"), dict):
        wanted["metadata"] = dict(config["metadata"])
        if isinstance(config["metadata"].get("annotations"), dict):
            kept = {k: v for k, v in config["metadata"]["annotations"].items() if k != LAST_APPLIED}
            wanted["metadata"]["annotations"] = kept
            if not kept:
                del wanted["metadata"]["annotations"]
    text = go_json(wanted) + "\n"
    return {**result, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}


def keep_times(new: Object, old: Object) -> None:
    """Make a write that changes nothing but times of managedFields a no-op: put the old list back, in place.

    Args:
        new: the object about to be stored.
        old: the stored one.
    """
    ours, theirs = new.get("metadata") or {}, old.get("metadata") or {}
    listed, before = ours.get("managedFields"), theirs.get("managedFields")
    if listed == before or not isinstance(listed, list) or not isinstance(before, list):
        return
    if [_timeless(e) for e in listed] != [_timeless(e) for e in before]:
        return
    if {k: v for k, v in new.items() if k != "metadata"} != {k: v for k, v in old.items() if k != "metadata"}:
        return
    if {k: v for k, v in ours.items() if k != "managedFields"} == {
        k: v for k, v in theirs.items() if k != "managedFields"
    }:
        ours["managedFields"] = before


def _timeless(entry: Any) -> Any:
    return {k: v for k, v in entry.items() if k != "time"} if isinstance(entry, dict) else entry
