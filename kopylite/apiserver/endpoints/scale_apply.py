"""Server-side apply of a Scale: the owners of the replicas are shown as owners of a Scale's, and turned back."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.builtin import data
from kopylite.apiserver.builtin.strategies import CODECS
from kopylite.apiserver.patching.apply import apply
from kopylite.apiserver.patching.apply.field_manager import EMPTY
from kopylite.apiserver.patching.copying import copied
from kopylite.apiserver.schema.node import SchemaNode

Object = dict[str, Any]

SCALE_TYPE = "io.k8s.api.autoscaling.v1.Scale"
_API_VERSION = "autoscaling/v1"
_REPLICAS: Object = {"f:spec": {"f:replicas": {}}}
_IDENTITY = ("manager", "operation", "subresource")


def apply_scale(
    scale: Object, config: Object, live: Object, path: tuple[str, ...], *, manager: str, now: str, force: bool
) -> tuple[Object, list[Object]]:
    """The Scale that results, and the managedFields of its parent.

    Args:
        scale: as it is, without owners.
        config: what the manager wants of it; checked.
        live: the parent.
        path: of the replicas in the parent.

    Raises:
        Conflict: other managers own the replicas.
        ApiError: the configuration does not fit a Scale.
    """
    entries = live["metadata"].get("managedFields") or []
    fields = tuple(f"f:{name}" for name in path)
    shown = [{**e, "apiVersion": _API_VERSION, "fieldsV1": _REPLICAS} for e in entries if _at(e["fieldsV1"], fields)]
    current = {**scale, "metadata": {**scale["metadata"], "managedFields": shown}}
    schema = SchemaNode({**data.SCHEMAS[SCALE_TYPE], EMPTY: CODECS[SCALE_TYPE].zero}, data.DEFINITIONS)
    result = apply(
        current,
        config,
        schema=schema,
        manager=manager,
        api_version=_API_VERSION,
        subresource="scale",
        now=now,
        force=force,
    )
    owners = [e for e in result["metadata"].get("managedFields") or [] if _at(e["fieldsV1"], ("f:spec", "f:replicas"))]
    return result, _parent_entries(entries, owners, fields, live["apiVersion"])


def _parent_entries(entries: list[Object], owners: list[Object], path: tuple[str, ...], version: str) -> list[Object]:
    """The parent's entries, where the replicas belong to `owners`, entries of a Scale. Upstream loses their times."""
    owning = {_identity(entry) for entry in owners}
    kept: list[Object] = []
    for entry in entries:
        if _at(entry["fieldsV1"], path) and _identity(entry) not in owning:
            rest = _without(entry["fieldsV1"], path)
            kept += [{**entry, "fieldsV1": rest}] if rest else []
        else:
            kept.append(copied(entry))
    known = {_identity(entry) for entry in entries if _at(entry["fieldsV1"], path)}
    for owner in owners:
        if _identity(owner) not in known:
            fields: Object = {}
            for name in reversed(path):
                fields = {name: fields}
            new = {key: value for key, value in owner.items() if key != "time"}
            kept.append({**new, "apiVersion": version, "fieldsV1": fields})
    return sorted(kept, key=lambda e: (e["operation"], e.get("time", ""), e["manager"]))


def _identity(entry: Object) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in _IDENTITY)


def _at(fields: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(fields, dict) or name not in fields:
            return False
        fields = fields[name]
    return True


def _without(fields: Object, path: tuple[str, ...]) -> Object:
    """A copy that lacks the path, and the parents that it leaves empty."""
    first, rest = path[0], path[1:]
    found = {name: value for name, value in fields.items() if name != first}
    inner = _without(fields[first], rest) if rest else {}
    return {**found, first: inner} if inner else found
