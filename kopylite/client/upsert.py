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

# Wishes that are remembered, about 500 bytes each. A forgotten one costs at most one request.
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
        held: the version of the stored object that was found to hold the wish, and the wish; None: none was.
    """

    refused: int
    replaced: Mapping[Path, int]
    held: tuple[str, int] | None = None


_Name = tuple[str, ...]


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
        self,
        kind: Kind | type[Any],
        key: ObjectKey,
        shape: Callable[[Any], object],
        *,
        owner: Any,
        options: WriteOptions,
        by_patch: bool,
    ) -> tuple[Any, Outcome]:
        """Make the stored object hold what `shape` wishes.

        Args:
            by_patch: send a merge patch of what differs, instead of a PUT with the resourceVersion that was read.

        Returns:
            The object as stored, read as `kind`, and what was done.
        """
        resource_kind = kind_of(kind)
        body = await self._read(resource_kind, key)
        if body is None:
            draft = Draft.empty(kind, key)
            draft.shape(shape, owner)
            try:
                answer = await self._api.create(resource_kind, key.namespace, draft.wire, options)
            except AlreadyExists:
                body = await self._api.get(resource_kind, key)  # the cache has yet to see it
            else:
                return self._settle(draft, answer, options), Outcome.CREATED
        draft = Draft.of(kind, key, body)
        draft.shape(shape, owner)
        if self._holds(draft):
            return draft.stored, Outcome.UNCHANGED
        if by_patch:
            patch = merge_diff(draft.before, draft.wire)
            answer = await self._api.patch(resource_kind, key, patch, "merge", None, options)
        else:
            answer = await self._api.update(resource_kind, draft.wire, None, options)
        before, after = (decode_identity(state)[1].resource_version for state in (body, answer))
        return self._settle(draft, answer, options), Outcome.UNCHANGED if before == after else Outcome.UPDATED

    async def apply(self, kind: Kind, wire: Mapping[str, Any], options: WriteOptions) -> bytes:
        """Server-side apply, unless this very wish was applied before and the stored object still holds it."""
        key = key_of(wire)
        # Each manager has wishes of its own.
        name = (kind.api_version, kind.kind, *key, options.field_manager)
        wish = hash(encode(wire))
        known = self._sent.get(name)
        if known is not None and known.replaced[()] == wish:
            body = await self._read(kind, key)
            if body is not None and _hash(compare(wire, decode_object(body), {})) == known.refused:
                self._sent.move_to_end(name)
                return body
        answer = await self._api.patch(kind, key, wire, "apply", None, options)
        if not options.dry_run:
            self._remember(name, _Sent(_hash(compare(wire, decode_object(answer), {})), {(): wish}))
        return answer

    def _holds(self, draft: Draft) -> bool:
        """Whether the stored object is as good as the server lets it be."""
        known, fingerprint = self._sent.get(draft.name), draft.fingerprint()
        if known is not None:
            self._sent.move_to_end(draft.name)
            if known.held == fingerprint:  # this very wish was compared with this very version before
                return True
        comparison = draft.compare()
        replaced = {path: hash(part) for path, part in comparison.replaced.items()}
        # A part that was put in whole and is not the one of the last time may have dropped a field.
        if known is not None and any(known.replaced.get(path, part) != part for path, part in replaced.items()):
            return False
        refused = _hash(comparison)
        if refused and (known is None or known.refused != refused):
            return False
        self._remember(draft.name, _Sent(refused, replaced, fingerprint))
        return True

    def _settle(self, draft: Draft, answer: bytes, options: WriteOptions) -> Any:
        """The object that the server made of a wish; what it did not take of the wish is remembered."""
        obj = draft.adapter.decode(answer)
        if not options.dry_run:
            comparison = draft.compare(obj)
            replaced = {path: hash(part) for path, part in comparison.replaced.items()}
            self._remember(draft.name, _Sent(_hash(comparison), replaced))
        return obj

    def _remember(self, name: _Name, sent: _Sent) -> None:
        self._sent[name] = sent
        self._sent.move_to_end(name)
        if len(self._sent) > MAX_REMEMBERED:
            self._sent.popitem(last=False)


def _hash(comparison: Comparison) -> int:
    return hash(encode(comparison.differences)) if comparison.differences else 0
