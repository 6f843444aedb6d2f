"""Writes that first look whether anything would change.

A wish is what an object should hold. It is compared with what is stored; a wish that is held already sends
nothing. What the server makes of a wish (defaults it adds, values it rewrites, fields it drops) is no reason to
send it again: after each write the part that the server did not take is remembered, and only a new difference
is worth a new request.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from kopylite.client.api import Api
from kopylite.client.codec import decode_identity, decode_object, encode
from kopylite.client.draft import Draft
from kopylite.client.patches import Comparison, Path, compare, merge_diff
from kopylite.client.verbs import WriteOptions
from kopylite.errors import AlreadyExists
from kopylite.objects import Kind, ObjectKey, key_of, kind_of

# Wishes that are remembered, about 300 bytes each. A forgotten one costs at most one request.
MAX_REMEMBERED = 50_000


class Outcome(enum.StrEnum):
    """What an upsert did to the stored object."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class _Sent(NamedTuple):
    """What is remembered of a wish: hashes only.

    Attributes:
        refused: of the differences that the server left after the wish was sent; 0: it took everything.
        replaced: of each part that was put in whole.
    """

    refused: int
    replaced: Mapping[Path, int]


_Name = tuple[str, str, str, str]

Shape = Callable[[Any], None]


class Upserts:
    """The upserts of one client.

    Args:
        api: carries out the writes.
        read: the stored object, from a cache where there is one; None when there is none.
    """

    __slots__ = ("_api", "_read", "_sent")

    def __init__(self, api: Api, read: Callable[[Kind, ObjectKey], Awaitable[bytes | None]]) -> None:
        self._api = api
        self._read = read
        self._sent: OrderedDict[_Name, _Sent] = OrderedDict()

    async def create_or_update(
        self, kind: Kind | type[Any], key: ObjectKey, shape: Shape, owner: Any, options: WriteOptions
    ) -> tuple[bytes, Outcome]:
        """Make the stored object hold what `shape` wishes, by a PUT with its resourceVersion.

        Raises:
            Conflict: somebody changed the object since it was read.
        """
        found = await self._find_or_create(kind, key, shape, owner, options)
        if isinstance(found, bytes):
            return found, Outcome.CREATED
        draft, body = found
        comparison = draft.compare()
        if self._holds(draft.name, comparison):
            return body, Outcome.UNCHANGED
        answer = await self._api.update(kind_of(kind), draft.wire, None, options)
        return answer, self._settle(draft, body, answer)

    async def create_or_patch(
        self, kind: Kind | type[Any], key: ObjectKey, shape: Shape, owner: Any, options: WriteOptions
    ) -> tuple[bytes, Outcome]:
        """The same by a JSON merge patch of what differs: no Conflict, other fields stay as others set them."""
        found = await self._find_or_create(kind, key, shape, owner, options)
        if isinstance(found, bytes):
            return found, Outcome.CREATED
        draft, body = found
        comparison = draft.compare()
        if self._holds(draft.name, comparison):
            return body, Outcome.UNCHANGED
        patch = merge_diff(draft.before, draft.wire)
        answer = await self._api.patch(kind_of(kind), key, patch, "merge", None, options)
        return answer, self._settle(draft, body, answer)

    async def apply(self, kind: Kind, wire: Mapping[str, Any], options: WriteOptions) -> bytes:
        """Server-side apply, unless this very wish was applied before and the stored object still holds it."""
        key = key_of(wire)
        name = (kind.api_version, kind.kind, *key)
        known = self._sent.get(name)
        wish_hash = hash(encode(wire))
        if known is not None and known.replaced.get(()) == wish_hash:
            body = await self._read(kind, key)
            if body is not None and _hash(compare(wire, decode_object(body), {})) == known.refused:
                self._sent.move_to_end(name)
                return body
        answer = await self._api.patch(kind, key, wire, "apply", None, options)
        if not options.dry_run:
            refused = _hash(compare(wire, decode_object(answer), {}))
            self._remember(name, _Sent(refused, {(): wish_hash}))
        return answer

    async def _find_or_create(
        self, kind: Kind | type[Any], key: ObjectKey, shape: Shape, owner: Any, options: WriteOptions
    ) -> bytes | tuple[Draft, bytes]:
        """The stored object as a shaped draft, with its bytes; or the bytes of the one that was created."""
        body = await self._read(kind_of(kind), key)
        if body is None:
            draft = Draft.empty(kind, key)
            draft.shape(shape, owner)
            try:
                answer = await self._api.create(kind_of(kind), key.namespace, draft.wire, options)
            except AlreadyExists:
                # The cache has yet to see it.
                body = await self._api.get(kind_of(kind), key)
            else:
                if not options.dry_run:
                    self._settle(draft, b"", answer)
                return answer
        draft = Draft.of(kind, key, body)
        draft.shape(shape, owner)
        return draft, body

    def _holds(self, name: _Name, comparison: Comparison) -> bool:
        """Whether the stored object is as good as the server lets it be."""
        known = self._sent.get(name)
        replaced = {path: hash(part) for path, part in comparison.replaced.items()}
        if known is not None:
            self._sent.move_to_end(name)
            # A part that was put in whole and names other fields than last time may have dropped one.
            if any(known.replaced.get(path, part) != part for path, part in replaced.items()):
                return False
        if not comparison.differences:
            if known is None or known.replaced != replaced:
                self._remember(name, _Sent(0, replaced))
            return True
        return known is not None and known.refused == _hash(comparison)

    def _settle(self, draft: Draft, before: bytes, answer: bytes) -> Outcome:
        """Remember what the server made of a wish."""
        comparison = draft.compare(answer)
        replaced = {path: hash(part) for path, part in comparison.replaced.items()}
        self._remember(draft.name, _Sent(_hash(comparison), replaced))
        if before and decode_identity(before)[1].resource_version == decode_identity(answer)[1].resource_version:
            return Outcome.UNCHANGED
        return Outcome.UPDATED

    def _remember(self, name: _Name, sent: _Sent) -> None:
        self._sent[name] = sent
        self._sent.move_to_end(name)
        if len(self._sent) > MAX_REMEMBERED:
            self._sent.popitem(last=False)


def _hash(comparison: Comparison) -> int:
    return hash(encode(comparison.differences)) if comparison.differences else 0
