"""Bytes to values and back, decoding no more than is asked for. No I/O.

Bodies stay bytes: a list page is cut into its items and a watch stream into its lines, and neither builds a dict.
An answer that is not what the API promises (a proxy's HTML page, a cut frame) is a StreamBroken. One object that is
nested too deeply for the decoder spoils nothing but its own reading.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import msgspec

from kopylite.boundary import elements, json_object, members, printable, read, say, show
from kopylite.errors import StreamBroken, error_from_status
from kopylite.objects import Kind, to_wire
from kopylite.objects.wirevalues import wire_value

# How much of an answer that is no JSON its error shows.
_EXCERPT = 80

encode = msgspec.json.Encoder(enc_hook=to_wire).encode
"""To compact JSON: dicts, lists, strings and numbers, and in them dates, enums, msgspec structs, pydantic models."""


encode_sorted = msgspec.json.Encoder(enc_hook=to_wire, order="deterministic").encode
"""As `encode`, with the fields in one order, whatever their order in the dicts."""


def encode_body(value: Any, name: str = "") -> bytes:
    """The body of a request: what reads back as what was meant (see `objects.wirevalues`).

    Raises:
        EncodeError: naming the field that would not.
    """
    return msgspec.json.encode(wire_value(value, name=name))


class LineSplitter:
    """Cuts a byte stream at newlines.

    A line may be of any length and come in any number of chunks, in linear time: chunks without a newline are
    only collected. A character cut by a chunk's end is whole again in its line. Empty lines are left out.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, in order and without their newline."""
        # `split` would look at each byte by itself; lines are a thousand of them.
        at, end = 0, chunk.find(b"\n")
        if end == len(chunk) - 1 > 0 and not self._parts:
            return [chunk[:end]]  # an event that comes alone, as most do
        lines: list[bytes] = []
        while end >= 0:
            line = chunk[at:end]
            if self._parts:
                line = b"".join((*self._parts, line))
                self._parts = []
            if line:
                lines.append(line)
            at = end + 1
            end = chunk.find(b"\n", at)
        if at < len(chunk):
            self._parts.append(chunk[at:])
        return lines

    @property
    def pending(self) -> int:
        """Bytes of the line that has begun and not ended: not 0 after the end of a stream means it was cut."""
        return sum(map(len, self._parts))


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode


def decode_event(line: bytes) -> tuple[str, bytes]:
    """Type and undecoded object of one watch event.

    Raises:
        StreamBroken: the line is no watch event.
    """
    event = read(_decode_event, line, partial(_broken, "watch event"))
    return event.type, bytes(event.object)


class ListPage(msgspec.Struct, gc=False, frozen=True):
    """One page of a list.

    Attributes:
        resource_version: the state that the page shows; the same on all pages of one list.
        continue_token: asks for the next page; "" on the last one.
        items: the objects, undecoded: views of the page's bytes, so `bytes(item)` what is to be kept.
    """

    resource_version: str
    continue_token: str
    items: list[msgspec.Raw]


class _ListMeta(msgspec.Struct, gc=False):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    continue_token: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")


_decode_list = msgspec.json.Decoder(_List).decode


def decode_list(body: bytes, kind: Kind) -> ListPage:
    """A list answer cut into items; `items: null` is empty, `continue: ""` is the last page.

    What a list is called is up to its CRD, so only its group tells that it is none of this kind.

    Raises:
        StreamBroken: the body is no list, or one of another group.
    """
    page = read(_any_list, body, partial(_broken, "list"))
    if page.kind == "Status" or _group(page.api_version) not in (None, kind.group_kind[0], "meta.k8s.io"):
        raise StreamBroken(f"the server sent a {show(page.kind)} of {show(page.api_version)} as a list of {kind}")
    return ListPage(page.metadata.resource_version, page.metadata.continue_token or "", page.items or [])


def _any_list(body: bytes) -> _List:
    """A list, also one with an item that is nested too deeply for the decoder."""
    try:
        return _decode_list(body)
    except RecursionError:
        parts = members(body)
        items = parts.pop("items")
        metadata = msgspec.json.decode(parts.get("metadata", b"{}"), type=_ListMeta)
        names = (msgspec.json.decode(parts.get(name, b'""'), type=str) for name in ("kind", "apiVersion"))
        return _List(None if items == b"null" else [*map(msgspec.Raw, elements(items))], metadata, *names)


def _group(api_version: str) -> str | None:
    """None: it does not say; a generic List says "v1"."""
    return api_version.rpartition("/")[0] or None


def check_kind(body: bytes, kind: str, found: str | None = None) -> None:
    """Of an answer that has to be an object of this kind.

    Args:
        found: the kind in it, where that has been read already.

    Raises:
        ApiError: it is a Status that says no, which a gateway may send with a code that says yes (as in client-go).
        StreamBroken: it is no object, or one of another kind. Taken for an object, it would be one without any
            fields, or somebody else's.
    """
    if found is None:
        found = read(_kind_in, body, partial(_broken, "object"))
    if found == "Status" and kind != "Status":
        status = json_object(body)
        if status.get("status") == "Failure":
            raise error_from_status(status)
    if found not in ("", kind):
        raise StreamBroken(f"the server sent a {show(found)} for a {kind}")


def _kind_in(body: bytes) -> str:
    try:
        return _decode_kind(body).kind
    except RecursionError:
        return msgspec.json.decode(members(body).get("kind", b'""'), type=str)


class _Kinded(msgspec.Struct, gc=False):
    kind: str = ""


_decode_kind = msgspec.json.Decoder(_Kinded).decode


class ObjectIdentity(msgspec.Struct, gc=False, rename="camel"):
    """The part of an object's metadata that tells which object it is, and in which state."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct, gc=False):
    metadata: ObjectIdentity = msgspec.field(default_factory=ObjectIdentity)
    kind: str = ""


_decode_identified = msgspec.json.Decoder(_Identified).decode


def decode_identity(body: bytes) -> tuple[str, ObjectIdentity]:
    """Kind and identity of an object, without decoding the rest.

    Raises:
        StreamBroken: the body is no object.
    """
    found = read(_any_identified, body, partial(_broken, "object"))
    return found.kind, found.metadata


def _any_identified(body: bytes) -> _Identified:
    """Also of an object that is nested too deeply for the decoder: it was written all the same."""
    try:
        return _decode_identified(body)
    except RecursionError:
        parts = members(body)
        metadata = members(parts["metadata"])
        known = (metadata.get(name, b'""') for name in ("name", "namespace", "uid", "resourceVersion"))
        identity = ObjectIdentity(*(msgspec.json.decode(value, type=str) for value in known))
        return _Identified(identity, msgspec.json.decode(parts.get("kind", b'""'), type=str))


class _ChangedMeta(ObjectIdentity, gc=False, rename="camel"):
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Change(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _ChangedMeta = msgspec.field(default_factory=_ChangedMeta)
    spec: msgspec.Raw = msgspec.Raw()
    details: msgspec.Raw = msgspec.Raw()


class _Details(msgspec.Struct, gc=False):
    uid: str | None = None


class _NamespaceSpec(msgspec.Struct, gc=False):
    finalizers: list[str] | None = None


class WriteAnswer(NamedTuple):
    """What the answer to a write says.

    Attributes:
        identity: of the object; without a uid the answer does not say what became of it.
        gone: it is no more.
        kind: of the object, or Status.
    """

    identity: ObjectIdentity
    gone: bool
    kind: str = ""


_decode_change = msgspec.json.Decoder(_Change).decode


def decode_change(body: bytes, *, of_delete: bool) -> WriteAnswer:
    """What the answer to a write says about its object.

    The last finalizer of an object that is being deleted takes it along, whatever verb removes it; the answer is the
    object as it was, with its old resourceVersion. A DELETE that waits for nothing answers with a Status, or (some
    kinds of Kubernetes itself) with the object as it was. A Pod waits for its grace period too, a Namespace for the
    finalizers in its spec.

    Raises:
        StreamBroken: the body is no object.
    """
    return read(partial(_change, of_delete=of_delete), body, partial(_broken, "object"))


def _change(body: bytes, *, of_delete: bool) -> WriteAnswer:
    try:
        found = _decode_change(body)
    except RecursionError:
        parts = members(body)
        metadata = msgspec.json.decode(parts["metadata"], type=_ChangedMeta)
        # The spec counts only for a Namespace, and none of those is deep.
        found = _Change(msgspec.json.decode(parts.get("kind", b'""'), type=str), metadata)
    meta = found.metadata
    if found.kind == "Status":
        uid = (msgspec.json.decode(found.details, type=_Details).uid if bytes(found.details) else None) or ""
        return WriteAnswer(ObjectIdentity(uid=uid), of_delete, found.kind)
    waits = bool(meta.finalizers) or (meta.deletion_grace_period_seconds or 0) > 0
    if found.kind == "Namespace" and bytes(found.spec):
        waits = waits or bool(msgspec.json.decode(found.spec, type=_NamespaceSpec).finalizers)
    return WriteAnswer(meta, not waits and (of_delete or meta.deletion_timestamp is not None), found.kind)


def decode_object(body: bytes) -> dict[str, Any]:
    """A JSON object as a dict.

    Raises:
        StreamBroken: the body is no JSON object.
    """
    value: dict[str, Any] = read(_decode_object, body, partial(_broken, "JSON object"))
    return value


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def _broken(what: str, body: bytes, error: Exception) -> StreamBroken:
    # A body that begins as JSON may hold a Secret: its text never reaches a log.
    shown = f"{len(body)} bytes of JSON" if body.lstrip()[:1] == b"{" else show(body[:_EXCERPT])
    reason = printable(str(error)) if isinstance(error, ValueError) else say(error)
    return StreamBroken(f"the server sent something that is no {what} ({reason}): {shown}")
