"""Unstructured: an API object as the dict that came over the wire, with shortcuts for what everybody reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

import msgspec

from kopylite.boundary import members, place_of, printable
from kopylite.errors import DecodeError
from kopylite.objects.kinds import Kind
from kopylite.objects.meta import OwnerReference

T = TypeVar("T")

# No longer name is valid; more than that of a foreign text is not put into an error.
_MAX_NAME = 253


class Unstructured(dict[str, Any]):
    """An object of any kind. It is a plain dict in wire form; the attributes below only read.

    Reading an attribute never adds anything to the dict, and never fails on missing or null parts: an absent
    string is "", an absent number 0, an absent map or list an empty one. An empty map or list that was not in
    the object is detached from it, so write through the dict: `obj["spec"] = {...}`.
    """

    __slots__ = ("_read",)

    _read: Any  # of those that were read: see `reading`

    def copy(self) -> Self:
        """A shallow copy, of the same class and of the same object as far as writes are concerned."""
        obj = type(self)(self)
        if hasattr(self, "_read"):
            obj._read = self._read
        return obj

    __copy__ = copy

    def __or__(self, other: dict[str, Any], /) -> Self:  # type: ignore[override]
        if not isinstance(other, dict):
            return NotImplemented
        obj = self.copy()
        obj.update(other)
        return obj

    def __ror__(self, other: dict[str, Any], /) -> Self:  # type: ignore[override]
        if not isinstance(other, dict):
            return NotImplemented
        obj = self.copy()
        obj.clear()
        obj.update(other)
        obj.update(self)
        return obj

    @property
    def api_version(self) -> str:
        return self.get("apiVersion") or ""

    @property
    def kind(self) -> str:
        return self.get("kind") or ""

    @property
    def metadata(self) -> dict[str, Any]:
        return _present(self.get("metadata"), {})

    @property
    def name(self) -> str:
        return self.metadata.get("name") or ""

    @property
    def namespace(self) -> str:
        """ "" for cluster-scoped objects."""
        return self.metadata.get("namespace") or ""

    @property
    def uid(self) -> str:
        return self.metadata.get("uid") or ""

    @property
    def resource_version(self) -> str:
        return self.metadata.get("resourceVersion") or ""

    @property
    def generation(self) -> int:
        return self.metadata.get("generation") or 0

    @property
    def labels(self) -> dict[str, str]:
        return _present(self.metadata.get("labels"), {})

    @property
    def annotations(self) -> dict[str, str]:
        return _present(self.metadata.get("annotations"), {})

    @property
    def owner_references(self) -> list[OwnerReference]:
        """The well-formed owner references; an entry that is not one is skipped and hides no other."""
        return read_owner_references(self.metadata)

    @property
    def finalizers(self) -> list[str]:
        return _present(self.metadata.get("finalizers"), [])

    @property
    def deletion_timestamp(self) -> str | None:
        """RFC 3339 text; None while nobody has asked for the deletion."""
        return self.metadata.get("deletionTimestamp") or None

    @property
    def spec(self) -> dict[str, Any]:
        return _present(self.get("spec"), {})

    @property
    def status(self) -> dict[str, Any]:
        return _present(self.get("status"), {})


def _present(value: T | None, empty: T) -> T:
    # An empty map that is there must be handed out itself: `value or empty` would not.
    return empty if value is None else value


def read_owner_references(metadata: Mapping[str, Any]) -> list[OwnerReference]:
    """The well-formed entries of `ownerReferences` of a metadata map in wire form."""
    references = []
    for entry in metadata.get("ownerReferences") or ():
        try:
            references.append(msgspec.convert(entry, OwnerReference))
        except msgspec.ValidationError:
            continue
    return references


def fill_kind(obj: Unstructured, kind: Kind) -> Unstructured:
    """The object itself, with its kind: lists of Kubernetes' own kinds leave it out of their items."""
    if "kind" not in obj:
        obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    return obj


def unreadable(raw: bytes, error: Exception, title: str) -> DecodeError:
    """The error for bytes of which no object can be made: nested too deep, no JSON, or a validator's own exception.

    Names the object where its metadata can be found; its `object` holds that, with apiVersion and kind. Shows no
    values, so not the text of the exception.
    """
    stored = Unstructured()
    try:
        parts = members(raw)
        stored |= {name: msgspec.json.decode(parts[name], type=str) for name in ("apiVersion", "kind") if name in parts}
        stored["metadata"] = msgspec.json.decode(parts["metadata"], type=dict)
    except Exception:  # then it is named as far as that
        stored.setdefault("metadata", {})
    if isinstance(error, RecursionError):
        problem = "is nested too deep to be read"
    elif isinstance(error, (msgspec.DecodeError, UnicodeDecodeError)):
        problem = "is no JSON object"
    else:
        place = place_of(error)
        problem = f"cannot be read: its model raised {type(error).__name__}{place and ' at '}{place}"
    named = _named(stored, title, title)
    return DecodeError(f"{named} {problem}{_finalizers_left(stored)}", stored if stored.name else None)


def misfit(document: Any, problem: str, title: str) -> DecodeError:
    """The error for an object that does not fit its class: it names the object, or else `title`."""
    stored = Unstructured(document) if isinstance(document, dict) else Unstructured()
    known = bool(stored)
    named = _named(stored, title)
    return DecodeError(
        f"{named} does not fit its model: {problem}{_finalizers_left(stored)}", stored if known else None
    )


def _named(stored: Unstructured, title: str, kind: str = "") -> str:
    """Kind and key of an object that may be odd. What is no text in the place of one is taken out, so that whoever
    handles the error can rely on the object's attributes."""
    for part in ("apiVersion", "kind"):
        if not isinstance(stored.get(part, ""), str):
            del stored[part]
    metadata = stored.get("metadata")
    metadata = stored["metadata"] = dict(metadata) if isinstance(metadata, dict) else {}
    for part in ("namespace", "name", "uid", "resourceVersion"):
        if not isinstance(metadata.get(part, ""), str):
            del metadata[part]
    name = "/".join(metadata[part][:_MAX_NAME] for part in ("namespace", "name") if metadata.get(part))
    return printable(f"{kind or stored.kind or title} {name or '(no name)'}")


def _finalizers_left(stored: Unstructured) -> str:
    finalizers = stored.metadata.get("finalizers")
    if not stored.metadata.get("deletionTimestamp") or not isinstance(finalizers, list):
        return ""
    return printable(f" (it is being deleted, and held by {', '.join(map(str, finalizers))})")
