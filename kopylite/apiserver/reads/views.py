"""View: stored objects in the form that a client asked for: plain, Table, or metadata only; JSON, YAML or protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kopylite.apiserver.aside import aside
from kopylite.apiserver.builtin.column_texts import column_texts
from kopylite.apiserver.printers.tables import TableView, partial_metadata
from kopylite.apiserver.request.negotiation import JSON, Media
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.history import StoredChange, StoredObject
from kopylite.apiserver.world import World, body_in, object_in, shown_in
from kopylite.errors import NotAcceptable

# Passing a body on takes this much less time than looking at it.
_PASSED_ON = 64


class View:
    """One resource in one form. Plain JSON is passed on as it is stored, without decoding."""

    def __init__(self, world: World, resource: Resource, media: Media) -> None:
        self._resource = resource
        self._media = media
        self._head = msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
        self._table: TableView | None = None
        if media.view == "Table":
            now, texts = world.clock.now(), column_texts("" if resource.custom else resource.storage)
            self._table = TableView(resource, media.view_version, media.include_object, now, texts)
        self._api_version = f"meta.k8s.io/{media.view_version}"
        self._columns_sent = False

    def object(self, body: bytes) -> bytes:
        """One object, given as JSON in the version of the resource. Raises NotAcceptable."""
        if not self._media.view:
            return self._media.finish(body)
        obj = msgspec.json.decode(body)
        if self._table:
            return self._media.encode(self._table.single(obj))
        if self._media.view != "PartialObjectMetadata":
            go_type = go_list_type(self._resource).removesuffix("List")
            raise NotAcceptable(
                f"you requested {self._media.view}, but the requested object is not a list (*{go_type})"
            )
        return self._media.encode(partial_metadata(obj, self._api_version))

    async def list(self, records: Sequence[StoredObject], list_metadata: dict[str, Any]) -> bytes:
        """A list document. Raises NotAcceptable."""
        if self._media.view == "PartialObjectMetadata":
            text = "you requested PartialObjectMetadata, but the requested object is a list"
            raise NotAcceptable(f"{text} (*{go_list_type(self._resource)})")
        if self._resource.conversion is not None:
            records = [shown_in(self._resource, record) for record in records]  # they are at hand in this turn only
        return await aside(lambda: self._list(records, list_metadata), sum(map(self.weight, records)))

    def weight(self, record: StoredObject) -> int:
        """How much work it is to show a record, in bytes of an object that is looked at."""
        passed_on = self._plain and record.encoding_version == self._resource.encoding_version
        return len(record.body) // _PASSED_ON if passed_on else len(record.body)

    @property
    def _plain(self) -> bool:
        """Whether records are passed on as they are stored."""
        return not self._media.view and self._media.type == JSON

    def _list(self, records: Sequence[StoredObject], list_metadata: dict[str, Any]) -> bytes:
        if self._plain:
            return self._media.finish(self._plain_list(records, list_metadata))
        head = {"kind": self._media.view, "apiVersion": self._api_version, "metadata": list_metadata}
        objects = (object_in(self._resource, record) for record in records)
        if self._table:
            head |= {**self._table.columns(), "rows": []}
            return self._media.encode_list(head, "rows", map(self._table.row, objects))
        if self._media.view:
            items = (partial_metadata(obj, self._api_version) for obj in objects)
            return self._media.encode_list({**head, "items": None}, "items", items)
        head = {**self._list_head(list_metadata), "items": []}
        return self._media.encode_list(head, "items", map(self._item, objects))

    def _list_head(self, metadata: dict[str, Any]) -> dict[str, Any]:
        metadata = {"continue": "", **metadata} if self._resource.custom else metadata
        return {"kind": self._resource.list_kind, "apiVersion": self._resource.api_version, "metadata": metadata}

    def _item(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Typed lists do not repeat what the list's kind says."""
        return obj if self._resource.custom else {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}

    def _plain_list(self, records: Iterable[StoredObject], list_metadata: dict[str, Any]) -> bytes:
        bodies = (body_in(self._resource, record) for record in records)
        if not self._resource.custom:
            bodies = (b"{" + body[len(self._head) :] if body.startswith(self._head) else body for body in bodies)
        head = msgspec.json.encode(self._list_head(list_metadata))[:-1]
        return b"".join((head, b',"items":[', b",".join(bodies), b"]}"))

    def change(self, kind: str, change: StoredChange, record: StoredObject) -> bytes:
        """The watch event `kind` of a change, showing `record`: made once for all watchers of this form."""
        if self._table:
            return self.event(kind, record)
        media = self._media
        form = (media.type, media.view, media.view_version)
        cached = (kind, self._resource.encoding_version, *form, record is change.previous)
        frame = change.frames.get(cached)
        if frame is None:
            if record.version != change.version:
                record = _at_version(record, change.version)
            frame = change.frames[cached] = self.event(kind, record)
        return frame

    def event(self, kind: str, record: StoredObject) -> bytes:
        """A watch event with its end."""
        if self._plain:
            return b'{"type":"%b","object":%b}\n' % (kind.encode(), body_in(self._resource, record))
        return self._shaped_event(kind, object_in(self._resource, record))

    def bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        return self._shaped_event("BOOKMARK", obj)

    def _shaped_event(self, kind: str, obj: dict[str, Any]) -> bytes:
        if self._table:
            obj = self._table.single(obj, definitions=not self._columns_sent)
            self._columns_sent = True
        elif self._media.view:
            obj = partial_metadata(obj, self._api_version)
        return self._media.event(kind, obj)


def go_package(resource: Resource) -> str:
    """Where Go keeps the internal form of a kind, as some messages show it."""
    return resource.group.split(".")[0] or "core"


def go_list_type(resource: Resource) -> str:
    if resource.custom:
        return "unstructured.UnstructuredList"
    return f"{go_package(resource)}.{resource.list_kind}"


def _at_version(record: StoredObject, version: int) -> StoredObject:
    """The record as an event of `version` shows it."""
    obj = record.decode()
    obj["metadata"]["resourceVersion"] = str(version)
    return msgspec.structs.replace(record, version=version, body=msgspec.json.encode(obj))
