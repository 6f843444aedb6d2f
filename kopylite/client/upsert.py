"""Writes that first look whether anything would change.

What is desired is laid over what is stored (see `overlay`): that says whether there is anything to do, and what is
sent. Fields that this operator named before and names no longer go. Which these are, a process remembers; the first
time that it matters after a restart, the object is read from the server once, and managedFields say it: upserts write
under a field manager of their own.

What the server makes of a desired state (fields that it drops, values that it rewrites) is no reason to send it again:
what differs after a write is remembered, and only another difference is worth another request.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from kopylite.client.api import Api
from kopylite.client.codec import decode_identity, decode_object, encode
from kopylite.client.draft import Draft
from kopylite.client.fields import fields_of
from kopylite.client.live import WriteParams
from kopylite.client.overlay import NONE, Names, Overlay, managed_by
from kopylite.client.patches import bound_diff, merge_apply, merge_diff
from kopylite.client.recreating import Propagation, Recreation, with_way_out
from kopylite.client.schemas import Schemas
from kopylite.client.verbs import WriteOptions
from kopylite.clock import Clock
from kopylite.errors import AlreadyExists, Invalid
from kopylite.objects import Kind, ObjectKey, Unstructured, key_of, kind_of

# Objects whose last desired state is remembered, about 500 bytes each. A forgotten one costs at most one request.
MAX_REMEMBERED = 50_000
# Different sets of names: an operator has a few for each kind.
_MAX_SHARED = 1_000
# In place of a resourceVersion.
_UNSEEN = "unseen"


class UpsertParams(WriteParams, total=False):
    """What an upsert takes as keywords.

    Attributes:
        namespace: of the name that is given as key.
        owner, controller: see `create`.
        recreate: where the server refuses to change a field, and would take the object as a new one, delete it and make
            it anew: True or "Foreground" (dependents go first), "Orphan" (they stay) or "Background" (they go later).
            Waits 35 s at most; a run that gives way then is followed by one that goes on.
    """

    namespace: str
    owner: Any
    controller: bool
    recreate: bool | Propagation


class Outcome(enum.StrEnum):
    """What an upsert did to the stored object."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    RECREATED = "recreated"


class _Known(NamedTuple):
    """What is remembered of the last desired state of an object.

    Attributes:
        uid: of the object; another one of its name is not known.
        names: the fields that it named, as JSON.
        refused: a hash of the differences that the server left after the desired state was sent; 0: it took everything.
        state: the version of the stored object that was found to match the desired state, or _UNSEEN: none was since it
            was sent; and a hash of the desired state.
    """

    uid: str
    names: bytes
    refused: int
    state: tuple[str, int]


class Upserts:
    """The upserts of one client.

    Args:
        api: carries out the writes.
        read: the stored object, from a cache where there is one; None when there is none.
        clock: of the waiting until an object that is made anew has gone.
    """

    __slots__ = ("_api", "_clock", "_known", "_read", "_schemas", "_shared")

    def __init__(self, api: Api, read: Callable[[Kind, ObjectKey], Awaitable[bytes | None]], clock: Clock) -> None:
        self._clock = clock
        self._api = api
        self._read = read
        self._known: OrderedDict[tuple[str, ...], _Known] = OrderedDict()
        self._shared: dict[bytes, bytes] = {}
        self._schemas = Schemas(api.transport)

    async def create_or_update(
        self,
        kind: Kind | type[Any],
        key: ObjectKey,
        mutate: Callable[[Any], object],
        *,
        own: Callable[[Any], None] | None,
        options: WriteOptions,
        by_patch: bool,
        recreate: Propagation | None = None,
        told: Callable[[Mapping[str, Any], str], None] = lambda stored, why: None,
    ) -> tuple[Any, Outcome]:
        """Make the stored object hold what `mutate` makes of it.

        Args:
            own: gives the object its owner.
            by_patch: send a patch of what differs, instead of a PUT with the resourceVersion that was read.
            recreate: make it anew where it cannot be changed; how its dependents go then. None: never.
            told: of the object that was deleted for that, and why.

        Returns:
            The object as stored, read as `kind`, and what was done.
        """
        resource_kind = kind_of(kind)
        field = await self._schemas.fields(kind, resource_kind)
        body = await self._read(resource_kind, key)
        if body is None:
            draft = Draft.empty(kind, key, field)
            draft.mutate(mutate, own)
            try:
                answer = await self._api.create(resource_kind, key.namespace, draft.desired, options, draft.body)
            except AlreadyExists:
                body = await self._api.get(resource_kind, key)  # the cache has yet to see it
            else:
                return self._settle(draft, answer, NONE, options), Outcome.CREATED

        def drafted(body: bytes) -> Draft:
            draft = Draft.of(kind, key, body, field)
            draft.mutate(mutate, own)
            return draft

        draft = drafted(body)
        known = self._recall(draft)
        if known is not None and self._still_matches(draft, known):
            return draft.give_back(), Outcome.UNCHANGED
        draft, merged, names = await self._merged(draft, known, drafted, options)
        if self._matches(draft, merged, known, names):
            return draft.give_back(), Outcome.UNCHANGED
        try:
            answer = await self._send(draft, merged, options, by_patch=by_patch)
        except Invalid as error:
            if recreate is None or options.dry_run:
                raise with_way_out(error) from None
            fresh = Draft.empty(kind, key, field)
            fresh.mutate(mutate, own)
            anew = Recreation(self._api, self._clock, told)
            answer = await anew.recreate(resource_kind, draft.stored, fresh.desired, options, recreate, error)
            return self._settle(fresh, answer, NONE, options), Outcome.RECREATED
        obj = self._settle(draft, answer, names, options, merged)
        before, after = draft.stored["metadata"].get("resourceVersion"), decode_identity(answer)[1].resource_version
        return obj, Outcome.UNCHANGED if before == after else Outcome.UPDATED

    async def _send(self, draft: Draft, merged: dict[str, Any], options: WriteOptions, *, by_patch: bool) -> bytes:
        kind = draft.adapter.kind
        if not by_patch:
            return await self._api.update(kind, merged, None, options, encode(merged))
        patch, patch_type = bound_diff(draft.stored, merged, draft.field)
        return await self._api.patch(kind, key_of(draft.stored), patch, patch_type, None, options)

    async def _merged(
        self, draft: Draft, known: _Known | None, drafted: Callable[[bytes], Draft], options: WriteOptions
    ) -> tuple[Draft, dict[str, Any], Names]:
        """The object to store, the draft that it was made from, and the fields that were named the last time."""
        names: Names = decode_object(known.names) if known is not None else NONE
        overlay = Overlay(draft.literal, explain=known is None)
        merged = draft.over(draft.stored, overlay, names)
        if not overlay.dropped and (known is not None or not (overlay.unexplained or merged is not draft.stored)):
            return draft, merged, names
        # Whose is what is not desired (any more)? Only the server knows.
        if "managedFields" not in draft.stored["metadata"]:
            draft = drafted(await self._api.get(draft.adapter.kind, key_of(draft.stored)))
        mine, others = managed_by(options.field_manager, draft.stored["metadata"].get("managedFields") or [])
        names = names if known is not None else mine
        return draft, draft.over(draft.stored, Overlay(draft.literal, others), names), names

    async def apply(self, kind: Kind, wire: Mapping[str, Any], options: WriteOptions) -> bytes:
        """Server-side apply, unless this very configuration was applied before and the stored object still holds it."""
        key = key_of(wire)
        # Each manager has a configuration of its own.
        name = (kind.api_version, kind.kind, *key, options.field_manager)
        applied = ("", hash(encode(wire)))
        known = self._known.get(name)
        if known is not None and known.state == applied:
            body = await self._read(kind, key)
            if body is not None and self._left(kind, wire, body) == known.refused:
                self._known.move_to_end(name)
                return body
        answer = await self._api.patch(kind, key, wire, "apply", None, options)
        if not options.dry_run:
            self._remember(name, _Known("", b"{}", self._left(kind, wire, answer), applied))
        return answer

    @staticmethod
    def _left(kind: Kind, wire: Mapping[str, Any], body: bytes) -> int:
        """A hash of what a stored object does not hold of an applied configuration; 0: it holds it all."""
        stored = decode_object(body)
        return _hash(stored, Overlay({}).merge(stored, dict(wire), fields_of(kind, kind)))

    def _recall(self, draft: Draft) -> _Known | None:
        known = self._known.get(draft.name)
        if known is None or known.uid != draft.stored["metadata"].get("uid"):
            return None
        self._known.move_to_end(draft.name)
        return known

    def _still_matches(self, draft: Draft, known: _Known) -> bool:
        """Whether what was desired the last time, too, is stored: most of what comes to an upsert are other changes."""
        state = draft.fingerprint()
        if known.state == state:
            return True
        # The names are those of the last time, so none is dropped.
        if known.state[1] != state[1] or known.refused or not draft.is_held_by(draft.stored):
            return False
        self._remember(draft.name, known._replace(state=state))
        return True

    def _matches(self, draft: Draft, merged: dict[str, Any], known: _Known | None, names: Names) -> bool:
        """Whether the stored object is as good as the server lets it be; what was named is remembered then."""
        refused = 0
        if merged is not draft.stored:
            if known is None or not known.refused:
                return False
            refused = _hash(draft.stored, merged)
            if known.refused != refused:
                return False
        uid, state = draft.stored["metadata"].get("uid") or "", draft.fingerprint()
        same = known is not None and known.state[1] == state[1]
        shared = known.names if known is not None and same else self._shared_names(draft, names)
        self._remember(draft.name, _Known(uid, shared, refused, state))
        return True

    def _settle(
        self, draft: Draft, answer: bytes, names: Names, options: WriteOptions, sent: dict[str, Any] | None = None
    ) -> Any:
        """The object that the server made of the desired state; what it did not take of it is remembered."""
        obj = draft.adapter.decode(answer)
        if not options.dry_run:
            stored = obj if isinstance(obj, Unstructured) else decode_object(answer)
            metadata, held = stored["metadata"], draft.is_held_by(stored, sent)
            refused = 0 if held else self._refused(draft, stored)
            seen = (held and metadata.get("resourceVersion")) or _UNSEEN
            shared, state = self._shared_names(draft, names), (seen, draft.fingerprint()[1])
            self._remember(draft.name, _Known(metadata.get("uid") or "", shared, refused, state))
        return obj

    @staticmethod
    def _refused(draft: Draft, stored: dict[str, Any]) -> int:
        """A hash of what the server, in its answer, has not taken of a desired state; 0: it took it all."""
        left = _asked_for(merge_diff(stored, draft.over(stored, Overlay(draft.literal))), draft.stored)
        return _hash(stored, merge_apply(stored, left) if left else stored)

    def _shared_names(self, draft: Draft, before: Names) -> bytes:
        """The names in a desired state as JSON; equal ones are one object: most objects of a kind have the same."""
        names = encode(draft.names(before))
        if len(self._shared) >= _MAX_SHARED:
            self._shared.clear()
        return self._shared.setdefault(names, names)

    def _remember(self, name: tuple[str, ...], known: _Known) -> None:
        self._known[name] = known
        self._known.move_to_end(name)
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)


def _hash(stored: dict[str, Any], merged: dict[str, Any]) -> int:
    """Of the differences, with what is there instead; 0: there are none."""
    return 0 if merged is stored else hash(encode([merge_diff(stored, merged), merge_diff(merged, stored)]))


def _asked_for(left: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Of a difference, what was asked for: what the server has just added was not taken out by anybody."""
    found = {}
    for name, value in left.items():
        old = before.get(name)
        if isinstance(value, dict):
            if inner := _asked_for(value, old if isinstance(old, dict) else {}):
                found[name] = inner
        elif value is not None or old is not None:
            found[name] = value
    return found
