"""The managedFields list as a table of field managers, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kopylite.apiserver.patching.apply.fieldsets import BadFields, Fields, ordered, parse, union
from kopylite.apiserver.schema.field_errors import go_quote

APPLY = "Apply"
UPDATE = "Update"

# The server keeps this many Update entries; older ones are merged into one per version.
MAX_UPDATE_MANAGERS = 10
ANCIENT_CHANGES = "ancient-changes"


class ManagerId(msgspec.Struct, frozen=True, order=True, omit_defaults=True, rename="camel"):
    """What tells two entries apart. Appliers have no version: an applier may change it and stays the same."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""

    def text(self) -> str:
        """How a conflict names the manager."""
        name = go_quote(self.manager)
        if self.subresource:
            name = f"{name} with subresource {go_quote(self.subresource)}"
        return f"{name} using {self.api_version}" if self.operation == UPDATE else name

    def order(self) -> str:
        """The text by which the server sorts managers where it sorts identifiers."""
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of one manager.

    Attributes:
        fields: in normal form.
        api_version: the version in which the fields are named.
        time: when the manager last changed its set; "" if unknown.
    """

    fields: Fields
    api_version: str
    time: str = ""


Managers = dict[ManagerId, Owned]


def manager_id(manager: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    """The identity of an entry; a manager without a name is "unknown"."""
    version = api_version if operation == UPDATE else ""
    return ManagerId(manager or "unknown", operation, version, subresource)


def decode(entries: Iterable[dict[str, Any]], *, trusted: bool) -> Managers:
    """The managers of a managedFields list.

    Args:
        trusted: the entries are the server's own: their fields are in normal form already.

    Raises:
        BadFields: an entry is malformed.
    """
    managers: Managers = {}
    for index, entry in enumerate(entries):
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise BadFields("operation must be `Apply` or `Update`")
        version = entry.get("apiVersion") or ""
        if not version:
            raise BadFields("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise BadFields(f"missing or invalid fieldsType in managed fields entry {index}")
        identity = ManagerId(
            entry.get("manager") or "",
            operation,
            version if operation == UPDATE else "",
            entry.get("subresource") or "",
        )
        fields = entry.get("fieldsV1") or {}
        managers[identity] = Owned(fields if trusted else parse(fields), version, entry.get("time") or "")
    return managers


def encode(managers: Managers) -> list[dict[str, Any]]:
    """The managedFields list, sorted as the server sorts it: appliers first, then by time, name, version."""
    entries = sorted(managers.items(), key=lambda item: _order(*item))
    return [_entry(identity, owned) for identity, owned in entries]


def _order(identity: ManagerId, owned: Owned) -> tuple[str, str, str, str, str]:
    # RFC 3339 times of whole seconds in UTC sort as texts.
    return identity.operation, owned.time, identity.manager, owned.api_version, identity.subresource


def _entry(identity: ManagerId, owned: Owned) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if identity.manager:
        entry["manager"] = identity.manager
    entry["operation"] = identity.operation
    entry["apiVersion"] = owned.api_version
    if owned.time:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = ordered(owned.fields)
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


def cap_update_managers(managers: Managers) -> None:
    """Merge the oldest Update entries, in place, until at most ten are left; one of each version stays."""
    updaters = [m for m in managers if m.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return
    updaters.sort(key=lambda m: (managers[m].time, m.order()))
    first: dict[str, ManagerId] = {}
    for identity in updaters:
        if surplus <= 0:
            return
        owned = managers[identity]
        if owned.api_version not in first:
            first[owned.api_version] = identity
            continue
        bucket = ManagerId(ANCIENT_CHANGES, UPDATE, owned.api_version)
        if bucket not in managers:
            managers[bucket] = managers.pop(first[owned.api_version])
        merged = union(owned.fields, managers[bucket].fields)
        del managers[identity]
        managers[bucket] = replace(owned, fields=merged)
        surplus -= 1
