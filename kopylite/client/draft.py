"""Draft: a private copy of a stored object, or an empty one, that user code edits into a wish."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self

from kopylite.client.codec import encode
from kopylite.client.patches import ABSENT, Comparison, Path, compare, containers
from kopylite.errors import UsageError
from kopylite.objects import (
    Adapter,
    CustomResource,
    Kind,
    ObjectKey,
    ObjectMeta,
    adapter_of,
    set_controller_reference,
)

# Metadata that the server keeps: a wish cannot change it, and need not repeat it.
_SERVER_KEPT = frozenset({
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "selfLink",
})  # fmt: skip


class Draft:
    """One object between its reading and its writing.

    Attributes:
        adapter: reads and writes the kind.
        stored: the stored object, for whoever wants it; None for a new object.
        before: the same in wire form; for a new object just its name.
        wire: the wish in wire form, complete enough to be sent; before `shape`, the same as `before`.
    """

    __slots__ = ("_key", "_obj", "_own", "adapter", "before", "stored", "wire")

    def __init__(
        self, adapter: Adapter[Any], key: ObjectKey, obj: Any, before: dict[str, Any], stored: Any = None
    ) -> None:
        self.adapter = adapter
        self._key = key
        self._obj = obj
        self._own: dict[int, Any] = {}
        self.stored = stored
        self.before = before
        self.wire = before

    @classmethod
    def of(cls, kind: Kind | type[Any], key: ObjectKey, body: bytes) -> Self:
        """A draft of a stored object."""
        adapter = adapter_of(kind)
        stored = adapter.decode(body)
        return cls(adapter, key, adapter.decode(body), adapter.encode(stored), stored)

    @classmethod
    def empty(cls, kind: Kind | type[Any], key: ObjectKey) -> Self:
        """A draft of a new object: apiVersion, kind, name and namespace."""
        adapter = adapter_of(kind)
        metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
        wire = {"apiVersion": adapter.kind.api_version, "kind": adapter.kind.kind, "metadata": metadata}
        if isinstance(kind, type) and issubclass(kind, CustomResource):
            # Its spec may have required fields: putting it in is up to `shape`.
            model: Any = kind
            return cls(adapter, key, model.model_construct(metadata=ObjectMeta.model_validate(metadata)), wire)
        return cls(adapter, key, adapter.decode(encode(wire)), wire)

    @property
    def name(self) -> tuple[str, ...]:
        """Which object this is, over all kinds."""
        return self.adapter.kind.api_version, self.adapter.kind.kind, *self._key

    def shape(self, edit: Callable[[Any], object], owner: Any = None) -> None:
        """Let user code edit the object into the wish, and give the wish an owner.

        The status stays out of it: only `patch_status` writes that. Name and namespace stay as they are.

        Raises:
            UsageError: `edit` is async, or changed name or namespace.
            AlreadyOwned: the object has another controller.
        """
        obj = self._obj
        parts = {} if isinstance(obj, dict) else {name: getattr(obj, name, None) for name in self.before}
        own = containers(obj) if isinstance(obj, dict) else {}
        returned = edit(obj)
        if inspect.iscoroutine(returned):
            returned.close()
            raise UsageError(f"shape of {self.adapter.kind} {self._key} is async: a plain function is needed")
        wire = self.adapter.encode(obj)
        if not isinstance(obj, dict):
            # Fields of a model are known as edited in place or put in whole by the identity of its parts.
            kept = {name: part for name, part in wire.items() if getattr(obj, name, None) is parts.get(name)}
            own = containers(kept)
        wire["metadata"] = self._metadata(wire.get("metadata") or {}, own)
        wire.pop("status", None)
        if "status" in self.before:
            wire["status"] = self.before["status"]
        self._own, self.wire = own, wire
        if owner is not None:
            set_controller_reference(owner, wire)

    def fingerprint(self) -> tuple[str, int]:
        """The version of the stored object, and a hash of all that the verdict on the wish depends on beside it."""
        wire = self.wire
        kept = [name for name, part in wire.items() if id(part) in self._own]
        return self.before["metadata"].get("resourceVersion") or "", hash(encode([kept, wire]))

    def compare(self, answer: Any = None) -> Comparison:
        """What differs between the wish and the stored object, or the object that the server made of the wish."""
        stored = self.before if answer is None else self.adapter.encode(answer)
        wish, held = _wishable(self.wire), _wishable(stored)
        found = compare(wish, held, self._own | {id(part): part for part in (wish, wish["metadata"])})
        if answer is None:
            return found
        # What the server has just added was not taken out by the wish.
        real = (d for d in found.differences if d.wished is not ABSENT or _is_in(self.before, d.path))
        return found._replace(differences=tuple(real))

    def _metadata(self, wished: dict[str, Any], own: dict[int, Any]) -> dict[str, Any]:
        """The metadata to send. Put in whole, it names what matters and leaves out the rest."""
        before = self.before["metadata"]
        metadata = _with_server_kept(wished if id(wished) in own else before | wished, before)
        for name in ("name", "namespace"):
            if metadata.setdefault(name, getattr(self._key, name)) != getattr(self._key, name):
                raise UsageError(f"shape of {self.adapter.kind} {self._key} changed its {name} to {metadata[name]!r}")
        if not self._key.namespace:
            del metadata["namespace"]
        return metadata


def _is_in(obj: Any, path: Path) -> bool:
    for step in path:
        try:
            obj = obj[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _wishable(wire: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an object that a wish can be about."""
    metadata = {name: part for name, part in (wire.get("metadata") or {}).items() if name not in _SERVER_KEPT}
    return {name: part for name, part in wire.items() if name != "status"} | {"metadata": metadata}


def _with_server_kept(metadata: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with those parts that only the server writes taken from another state of the object."""
    own = {name: part for name, part in metadata.items() if name not in _SERVER_KEPT}
    return own | {name: part for name, part in source.items() if name in _SERVER_KEPT}
