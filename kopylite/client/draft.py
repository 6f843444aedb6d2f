"""Draft: a private copy of a stored object, or an empty one, that user code edits into what it desires."""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Self

from kopylite.client.codec import decode_object, encode, encode_sorted
from kopylite.client.fields import Field
from kopylite.client.overlay import NONE, Names, Overlay, holds, names_of
from kopylite.errors import UsageError
from kopylite.objects import (
    Adapter,
    CustomResource,
    Kind,
    ObjectKey,
    ObjectMeta,
    adapter_of,
)
from kopylite.objects.reading import paired, parts_of, read_from
from kopylite.objects.secretadapter import is_secret
from kopylite.objects.unstructured import Unstructured, fill_kind
from kopylite.objects.wirevalues import wire_value

# Metadata that the server keeps: nobody can desire another value, or need repeat it.
_SERVER_KEPT = frozenset({
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "selfLink",
})  # fmt: skip


class Draft:
    """One object between its reading and its writing.

    Attributes:
        adapter: reads and writes the kind.
        field: what is known of the kind's fields.
        stored: the stored object in wire form; for a new object just its name.
        desired: the same as user code wants it, without what only the server writes; set by `mutate`.
        literal: the parts of `desired` that were edited in place, by id; see `overlay`.
    """

    __slots__ = ("_body", "_desired_body", "_hash", "_key", "_obj", "adapter", "desired", "field", "literal", "stored")

    def __init__(self, kind: Kind | type[Any], key: ObjectKey, obj: Any, stored: dict[str, Any], field: Field) -> None:
        self.adapter: Adapter[Any] = adapter_of(kind)
        self.field = field
        self._key = key
        self._obj = obj
        self.stored = stored
        self.desired = stored
        self.literal: dict[int, Any] = {}
        self._body = self._desired_body = b""
        self._hash: int | None = None

    @classmethod
    def of(cls, kind: Kind | type[Any], key: ObjectKey, body: bytes, field: Field) -> Self:
        """A draft of a stored object."""
        draft = cls(kind, key, adapter_of(kind).decode(body), decode_object(body), field)
        draft._body = body
        return draft

    @classmethod
    def empty(cls, kind: Kind | type[Any], key: ObjectKey, field: Field) -> Self:
        """A draft of a new object: apiVersion, kind, name and namespace."""
        adapter = adapter_of(kind)
        metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
        wire = {"apiVersion": adapter.kind.api_version, "kind": adapter.kind.kind, "metadata": metadata}
        if isinstance(kind, type) and issubclass(kind, CustomResource):
            # Its spec may have required fields: putting it in is up to `mutate`.
            model: Any = kind
            return cls(kind, key, model.model_construct(metadata=ObjectMeta.model_validate(metadata)), wire, field)
        return cls(kind, key, adapter.decode(encode(wire)), wire, field)

    def give_back(self) -> Any:
        """The stored object for whoever asked for it. It is theirs then, so this is the end of the draft."""
        if not isinstance(self._obj, Unstructured):
            return self.adapter.decode(self._body)
        obj = fill_kind(Unstructured(self.stored), self.adapter.kind)
        read_from(obj, self._body)
        return obj

    @property
    def name(self) -> tuple[str, ...]:
        """Which object this is, over all kinds."""
        return self.adapter.kind.api_version, self.adapter.kind.kind, *self._key

    def mutate(self, edit: Callable[[Any], object], own: Callable[[Any], None] | None = None) -> None:
        """Let user code edit the object into what it desires, and give it an owner.

        The status stays out of it: only `patch_status` writes that. Name and namespace stay as they are.

        Raises:
            UsageError: `edit` is async, or changed name or namespace.
            AlreadyOwned: the object has another controller.
        """
        obj = self._obj
        is_dict, is_new = isinstance(obj, dict), "uid" not in self.stored["metadata"]
        as_read = {} if is_dict or is_new else self.adapter.encode(obj)
        handed_out = parts_of(obj)
        returned = edit(obj)
        if inspect.iscoroutine(returned):
            returned.close()
            raise UsageError(
                f"mutate function for {self.adapter.kind} {self._key} is async: a plain function is needed"
            )
        wire = self.adapter.encode(obj)
        # A dict's wire form has the dict's own parts.
        pairs = () if is_dict else paired(obj, wire)
        self.literal = handed_out if is_dict else {id(new): new for part, new in pairs if id(part) in handed_out}
        self.literal[id(wire)] = wire
        edits_data = id(wire.get("data")) in self.literal
        if as_read:
            wire = as_stored(wire, as_read, self.stored, self.literal)
        self.desired = wire = without_status(wire)
        self.literal[id(wire)] = wire
        self._name()
        if is_secret(self.adapter.kind):
            self._fold_string_data(edited=edits_data)
        if own is not None:
            self._set_owner(own)

    def over(self, stored: dict[str, Any], overlay: Overlay, names: Names = NONE) -> dict[str, Any]:
        """What is desired, laid over a state of the object; that state itself when it holds it all."""
        bare = self._bare(stored)
        merged = overlay.merge(bare, self.desired, self.field, names)
        if merged is bare:
            return stored
        kept = {name: part for name, part in stored["metadata"].items() if name in _SERVER_KEPT}
        whole = {**merged, "metadata": {**kept, **merged["metadata"]}}
        return {**whole, "status": stored["status"]} if "status" in stored else whole

    @staticmethod
    def _bare(stored: dict[str, Any]) -> dict[str, Any]:
        return {**without_status(stored), "metadata": _without_kept(stored["metadata"])}

    def names(self, before: Names) -> Names:
        """The fields that were named now, and those of before in parts that were not put in whole."""
        return names_of(self.desired, self.field, self.literal, before)

    def fingerprint(self) -> tuple[str, int]:
        """The version of the stored object, and a hash of all that a verdict depends on beside it."""
        if self._hash is None:
            kept = sorted(name for name, part in self.desired.items() if id(part) in self.literal)
            self._hash = hash((*kept, self.body))
        return self.stored["metadata"].get("resourceVersion") or "", self._hash

    @property
    def body(self) -> bytes:
        """What is desired as JSON; the same for the same, in whatever order the fields were put in."""
        if not self._desired_body:
            self._desired_body = encode_sorted(self.desired)
        return self._desired_body

    def is_held_by(self, stored: dict[str, Any], sent: dict[str, Any] | None = None) -> bool:
        """Whether a state of the object holds what is desired just as it is, so that there is nothing to merge.

        Args:
            sent: what was made of the desired state; an answer that is just that holds it.
        """
        bare = self._bare(stored)
        return (sent is not None and bare == self._bare(sent)) or holds(bare, self.desired, self.literal)

    def _name(self) -> None:
        desired = self.desired.get("metadata") or {}
        metadata = _without_kept(desired)
        for name in ("name", "namespace"):
            if metadata.setdefault(name, getattr(self._key, name)) != getattr(self._key, name):
                raise UsageError(
                    f"mutate function for {self.adapter.kind} {self._key} changed its {name} to {metadata[name]!r}"
                )
        if not self._key.namespace:
            del metadata["namespace"]
        if id(desired) in self.literal:
            self.literal[id(metadata)] = metadata
        self.desired["metadata"] = metadata

    def _set_owner(self, own: Callable[[Any], None]) -> None:
        metadata = self.desired["metadata"]
        stored = self.stored["metadata"].get("ownerReferences")
        before = metadata.setdefault("ownerReferences", stored)  # metadata put in whole does not say who owns it
        own(self.desired)
        after = metadata["ownerReferences"]
        if id(before) in self.literal:
            self.literal[id(after)] = after

    def _fold_string_data(self, *, edited: bool) -> None:
        """`stringData` is a way to write `data`: the server keeps only that, so only that can be compared.

        Args:
            edited: `data` is what user code was handed out, and not put in whole.
        """
        wire = self.desired
        texts = wire_value(wire.pop("stringData", None))
        if not isinstance(texts, dict):
            return
        encoded = {name: b64encode(text.encode()).decode() for name, text in texts.items() if isinstance(text, str)}
        data = wire.get("data")
        if data is None or (edited and data == self.stored.get("data")):
            wire["data"] = encoded  # nobody has edited the copy of what is stored: the texts are what is desired
        elif isinstance(data, dict):
            wire["data"] = both = {**data, **encoded}  # a new one: user code may keep its own for the next run
            if edited:
                self.literal[id(both)] = both


def as_stored(wire: Any, as_read: Any, stored: Any, literal: dict[int, Any]) -> Any:
    """The wire form of an edited model, with all that was not edited exactly as it is stored.

    A model may write a value in another way than it was stored (a time, a null), or not know a field at all: neither
    is anything that user code has asked for.

    Args:
        wire, as_read: the model as it is written now, and as it would have been before the edit.
        literal: gets the parts that are made anew in place of literal ones.
    """
    if wire == as_read:
        return stored
    if isinstance(wire, dict) and isinstance(as_read, dict) and isinstance(stored, dict):
        result = {
            name: as_stored(part, as_read[name], stored[name], literal) if name in as_read and name in stored else part
            for name, part in wire.items()
        }
        if id(wire) in literal:
            result = {name: part for name, part in stored.items() if name not in as_read} | result
            literal[id(result)] = result
        return result
    return wire


def without_status(wire: Mapping[str, Any]) -> dict[str, Any]:
    rest = dict(wire)
    rest.pop("status", None)
    return rest


def _without_kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
    rest = dict(metadata)
    for name in _SERVER_KEPT & rest.keys():
        del rest[name]
    return rest
