"""An object that is old, or was not read, cannot tell what a change of it changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kopylite.client.changes import Edit
from kopylite.client.fields import Field
from kopylite.client.overlay import elements_by_key
from kopylite.client.recent import RecentWrites
from kopylite.errors import Conflict
from kopylite.objects import Kind, ObjectKey, adapter_like, key_of
from kopylite.objects.reading import bytes_of


async def look_again(
    obj: Any, change: Edit, recent: RecentWrites, read: Callable[[Kind, ObjectKey], Awaitable[bytes | None]]
) -> tuple[Any, Edit]:
    """What is to be changed, and how, when a change changes nothing of an object, or the object was not read.

    An object that nothing newer is known of is taken at its word. For one that is older than a cache or than an own
    write, and for one that was built by hand, the newest state decides.

    Raises:
        Conflict: the object was made anew since it was read, or a list that is to be replaced is not as it was read.
    """
    adapter, key = adapter_like(obj), key_of(obj)
    was_read = bytes_of(obj) is not None
    metadata = change.stored.get("metadata") or {}
    version, uid = metadata.get("resourceVersion") or "", metadata.get("uid") or ""
    if was_read and not recent.knows_newer(adapter.kind, key, version):
        return obj, change
    body = await read(adapter.kind, key)
    if body is None:
        return obj, change
    newest = adapter.decode(body)
    if change.again is None:
        return newest, change
    now = change.again(newest)
    its = now.stored["metadata"]
    if uid not in ("", its.get("uid")):
        raise Conflict(f"{adapter.kind} {key} was deleted and made anew since it was read; run again")
    if version and version != its.get("resourceVersion"):
        # What an object that was not read has in a list is not what was read.
        path = _moved_list(change.stored if was_read else {}, now.stored, now.merged, now.field)
        if path:
            raise Conflict(f"{adapter.kind} {key}: the list {path[1:]} was changed since it was read; run again")
    return newest, now


def _moved_list(read: Any, newest: Any, merged: Any, field: Field, path: str = "") -> str:
    """The path of a list that is to be replaced and is not as it was read; "": there is none.

    In a list with keys, others' elements may stay: then it is not replaced.
    """
    if merged is newest:
        return ""
    if isinstance(newest, list):
        old, new = (elements_by_key(part if isinstance(part, list) else [], field) for part in (newest, merged))
        keeps_all = old is not None and new is not None and old.keys() <= new.keys()
        return "" if keeps_all or newest == read else path
    if isinstance(newest, dict) and isinstance(merged, dict):
        before = read if isinstance(read, dict) else {}
        found = (
            _moved_list(before.get(name), part, merged.get(name), field.child(name), f"{path}.{name}")
            for name, part in newest.items()
        )
        return next(filter(None, found), "")
    return ""
