"""Record: what the cache holds of one object. RecordDecoder: how it comes out of the bytes of a list or watch.

Rules of this file: nothing is decoded but metadata, and nothing is kept but exact-size bytes. The body is the
object as the server sent it, less managedFields (a third of a Pod), plus the apiVersion and kind that typed
lists leave out of their items. Every reader decodes the body for itself, so it owns what it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec
from msgspec import Raw, Struct

from kopylite.boundary import elements, json_object, members, read, say, show
from kopylite.client.codec import decode_list
from kopylite.errors import ApiError, StreamBroken, error_from_status
from kopylite.objects import Kind, ObjectKey, OwnerReference

V = TypeVar("V")

# managedFields is the only key of metadata that holds a list of objects under this name: labels and annotations
# hold strings. In JSON text a quote inside a string is escaped, so these bytes can only be a key.
_MANAGED_FIELDS: Final = b'"managedFields":['
_OBJECT: Final = b'"object":'
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

# Equal label sets share one dict. The table is emptied when it is full, which only costs some sharing: pods of a
# StatefulSet carry their own name as a label, and must not make it grow for ever.
_INTERNED_VALUES: Final = 8192


class _Elsewhere:
    """What an object has and its record has not. A `__getattr__` would tell of every name, and makes each access to
    what is there ten times dearer, dozens of times an event."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, record: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(
            f"a cache record has no {self._name!r}, only metadata and the body as bytes; to look into objects, use "
            "when(lambda old, new: ...) or field_changed('spec.id') as the predicate"
        )


class Record(Struct, frozen=True, eq=False, gc=False):
    """One stored object. Immutable, except that nobody may change the shared `labels`.

    gc=False because it can't be part of a reference cycle: 100,000 records cost the collector nothing.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    labels: Mapping[str, str] | None
    owner_references: tuple[OwnerReference, ...]
    finalizers: tuple[str, ...]
    deletion_timestamp: str | None
    body: bytes

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    metadata = _Elsewhere()
    spec = _Elsewhere()
    status = _Elsewhere()
    data = _Elsewhere()
    get = _Elsewhere()

    def annotations(self) -> dict[str, str]:
        """Decoded from the body at each call; empty where they can't be read."""
        try:
            return _decode_annotated(self.body).metadata.annotations or {}
        except Exception:
            metadata = members(members(self.body)["metadata"])
            return _read_or(metadata, "annotations", {}, dict[str, str])

    def creation_timestamp(self) -> str:
        """Decoded from the body at each call; "" where it can't be read."""
        try:
            return _decode_annotated(self.body).metadata.creation_timestamp or ""
        except Exception:
            return ""

    def __repr__(self) -> str:
        return f"Record({self.key}, uid={self.uid!r}, resource_version={self.resource_version!r})"


class Bookmark(Struct, frozen=True, gc=False):
    """The server has sent every event up to this version; `initial_end`: and with it the whole initial state."""

    resource_version: str
    initial_end: bool


class Page(Struct, frozen=True, gc=False):
    """One page of a list: its records, the list's version, and where to go on ("" at the end)."""

    records: list[Record]
    resource_version: str
    continue_token: str


class BadFrame(StreamBroken):
    """Bytes in a list or watch that are no object of the API: cut, garbled, or from something that is no server."""


_ABSENT: Final = Raw()


class _Metadata(Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    deletion_timestamp: str | None = None
    labels: Raw = _ABSENT
    owner_references: Raw = _ABSENT
    finalizers: Raw = _ABSENT
    managed_fields: Raw = _ABSENT


class _Object(Struct, gc=False, rename="camel"):
    metadata: _Metadata
    kind: str = ""


class _RawMetadata(Struct, gc=False):
    metadata: Raw


class _Frame(Struct, gc=False):
    type: str
    object: Raw


class _Annotations(Struct, gc=False, rename="camel"):
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None  # null in a bookmark of a built-in kind, before Kubernetes 1.34
    resource_version: str = ""


class _Annotated(Struct, gc=False):
    metadata: _Annotations


_decode_object = msgspec.json.Decoder(_Object).decode
_decode_raw_metadata = msgspec.json.Decoder(_RawMetadata).decode
_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_annotated = msgspec.json.Decoder(_Annotated).decode

# How the API server begins the line of a change; anything else is decoded the slow way.
_CHANGES: Final = ("ADDED", "MODIFIED", "DELETED")
_HEADS: Final = {f'{{"type":"{word}",'.encode(): word for word in _CHANGES}

WatchFrame = tuple[str, Record | Bookmark | ApiError]


class RecordDecoder:
    """Turns the bytes of one resource into Records.

    Args:
        kind: completes items of lists that come without apiVersion and kind.
        metadata_only: the server was asked for PartialObjectMetadata; bodies get the real kind.
    """

    def __init__(self, kind: Kind, *, metadata_only: bool = False) -> None:
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        self._kind = kind
        # Items of a typed list do not say their kind. One of another kind was meant for somebody else.
        self._kinds = {"", kind.kind, "PartialObjectMetadata"}
        self._head = msgspec.json.encode(head)[:-1] + b","
        self._metadata_only = metadata_only
        self._labels: _Interned[Mapping[str, str] | None] = _Interned(dict[str, str], None)
        self._owners: _Interned[tuple[OwnerReference, ...]] = _Interned(
            tuple[OwnerReference, ...], (), _owners_one_by_one
        )
        self._finalizers: _Interned[tuple[str, ...]] = _Interned(tuple[str, ...], ())
        self._namespaces: dict[str, str] = {}

    def frame(self, line: bytes) -> WatchFrame:
        """One line of a watch: its type, and a Record, a Bookmark, or (type ERROR) the server's error.

        Raises:
            BadFrame: it is none of these.
        """
        head, _, rest = line.partition(_OBJECT)
        word = _HEADS.get(head)
        if word is not None:
            try:
                return word, self._record(rest[:-1])
            except Exception:
                pass  # perhaps only spelled in another way
        return read(self._any_frame, line, _no_event)

    def page(self, body: bytes) -> Page:
        """One answer to a list.

        Raises:
            StreamBroken: it is no list.
        """
        page = decode_list(body, self._kind)
        if not page.resource_version:
            # From a proxy or a cache: an empty one would be taken for "all are deleted".
            raise BadFrame(f"not a list of {self._kind}: without a resourceVersion, nobody knows what it shows")
        records = [self.item(bytes(item)) for item in page.items]
        return Page(records, page.resource_version, page.continue_token)

    def item(self, body: bytes) -> Record:
        """One object of a list.

        Raises:
            BadFrame: it is none of this kind.
        """
        return read(self.record, body, self._no_list)

    def _no_list(self, item: bytes, error: Exception) -> BadFrame:
        return BadFrame(f"not a list of {self._kind}: {say(error)}")

    def _any_frame(self, line: bytes) -> WatchFrame:
        try:
            frame = _decode_frame(line)
            word, body = frame.type, bytes(frame.object)
        except RecursionError:
            parts = members(line)
            word, body = msgspec.json.decode(parts["type"], type=str), parts["object"]
        if word in ("BOOKMARK", "ERROR"):
            return self._special(word, body)
        if word not in _CHANGES:
            raise ValueError(f"unknown type {show(word)}")
        return word, self.record(body)

    def _special(self, word: str, body: bytes) -> WatchFrame:
        if word == "ERROR":
            return word, error_from_status(json_object(body))
        metadata = _decode_annotated(body).metadata
        return word, Bookmark(
            metadata.resource_version, (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
        )

    def record(self, body: bytes) -> Record:
        """The record also of an object that is nested too deeply, or has odd metadata: others are not to suffer.

        What can't be read of its metadata counts as absent. Its body is kept as it is, so whoever reads the object
        gets a DecodeError that names it.

        Raises:
            Exception: it doesn't even say its name.
        """
        try:
            return self._record(body)
        except Exception:
            parts = members(body)
            metadata = members(parts["metadata"])
        name = _read_or(metadata, "name", "", str)
        if not name:
            raise ValueError("an object without a name")
        self._check_kind(_read_or(parts, "kind", "", str))
        metadata.pop("managedFields", None)
        parts["metadata"] = _text_of(metadata)
        if self._metadata_only:
            parts = {"metadata": parts["metadata"]}
        if "kind" not in parts or self._metadata_only:
            parts = {**members(self._head[:-1] + b"}"), **parts}
        namespace = _read_or(metadata, "namespace", "", str)
        return Record(
            self._namespaces.setdefault(namespace, namespace),
            name,
            _read_or(metadata, "uid", "", str),
            _read_or(metadata, "resourceVersion", "", str),
            _read_or(metadata, "generation", 0, int),
            _read_or(metadata, "labels", None, dict[str, str]),
            _owners_one_by_one(msgspec.Raw(metadata.get("ownerReferences", b"[]"))),
            _read_or(metadata, "finalizers", (), tuple[str, ...]),
            _read_or(metadata, "deletionTimestamp", None, str),
            _text_of(parts),
        )

    def _record(self, text: bytes) -> Record:
        """The record of an object; some exception if it is none, or an odd one. Most of the work of a watch: what is
        absent, as labels and owners often are, costs no call."""
        decoded = _decode_object(text)
        metadata = decoded.metadata
        if not metadata.name:
            raise ValueError("an object without a name")
        if decoded.kind not in self._kinds:
            self._check_kind(decoded.kind)
        namespace, labels = metadata.namespace or "", metadata.labels
        owners, finalizers = metadata.owner_references, metadata.finalizers
        return Record(
            self._namespaces.setdefault(namespace, namespace),
            metadata.name,
            metadata.uid,
            metadata.resource_version,
            metadata.generation or 0,
            None if labels is _ABSENT else self._labels(labels),
            () if owners is _ABSENT else self._owners(owners),
            () if finalizers is _ABSENT else self._finalizers(finalizers),
            metadata.deletion_timestamp,
            self._body(text, decoded),
        )

    def _check_kind(self, kind: str) -> None:
        if kind not in self._kinds:
            raise ValueError(f"an object of kind {show(kind)}")

    def _body(self, text: bytes, decoded: _Object) -> bytes:
        if self._metadata_only:
            text = b"".join((self._head, b'"metadata":', bytes(_decode_raw_metadata(text).metadata), b"}"))
        managed = decoded.metadata.managed_fields
        if managed is not _ABSENT:
            text = _without_managed_fields(text, memoryview(managed).nbytes)
        return text if decoded.kind or self._metadata_only else self._head + text[1:]


class _Interned(Generic[V]):
    """Equal JSON texts give one shared value, decoded once."""

    __slots__ = ("_decode", "_empty", "_fallback", "_values")

    def __init__(self, model: Any, empty: V, fallback: Callable[[Raw], V] | None = None) -> None:
        self._decode = msgspec.json.Decoder(model).decode
        self._fallback = fallback
        self._empty: dict[bytes, V] = {b"": empty, b"null": empty}
        self._values = self._empty.copy()

    def __call__(self, raw: Raw) -> V:
        text = bytes(raw)
        try:
            return self._values[text]
        except KeyError:
            pass
        if len(self._values) >= _INTERNED_VALUES:
            self._values = self._empty.copy()
        try:
            value: V = self._decode(text)
        except ValueError:
            if self._fallback is None:
                raise
            value = self._fallback(raw)
        self._values[text] = value
        return value


def _owners_one_by_one(raw: Raw) -> tuple[OwnerReference, ...]:
    """The references that can be read: one of a wrong shape must not hide the others."""
    found: list[OwnerReference] = []
    try:
        items = elements(bytes(raw))
    except ValueError:
        return ()
    for item in items:
        try:
            found.append(msgspec.json.decode(item, type=OwnerReference))
        except Exception:
            continue
    return tuple(found)


def _read_or(metadata: Mapping[str, bytes], name: str, absent: V, model: Any) -> V:
    """A part of odd metadata; what can't be read, or is null, counts as absent."""
    try:
        value: V | None = msgspec.json.decode(metadata.get(name, b"null"), type=model | None)
    except Exception:
        value = None
    return absent if value is None else value


def _text_of(parts: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + value for name, value in parts.items()) + b"}"


def _no_event(line: bytes, error: Exception) -> BadFrame:
    # The line may hold a Secret: its text never reaches a log.
    return BadFrame(f"not a watch event: {say(error)}: {len(line)} bytes")


def _without_managed_fields(text: bytes, size: int) -> bytes:
    """An object less its metadata.managedFields, a value of `size` bytes, and one comma beside it."""
    at = text.find(_MANAGED_FIELDS)
    if at < 0 or text.find(_MANAGED_FIELDS, at + 1) >= 0:
        # The text is spaced out, or the same key with a list occurs a second time somewhere in the object.
        decoded = msgspec.json.decode(text)
        decoded["metadata"].pop("managedFields", None)
        return bytes(memoryview(msgspec.json.encode(decoded)))  # the encoder's own bytes hold more than they show
    after = at + len(_MANAGED_FIELDS) - 1 + size
    if text[at - 1] == ord(","):
        at -= 1
    elif text[after] == ord(","):
        after += 1
    return text[:at] + text[after:]
