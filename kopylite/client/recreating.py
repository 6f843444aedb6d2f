"""Making an object anew, where a field that cannot be changed has to be another.

    read → PUT is a 422 → would it be valid as a new one? → delete (this uid) → told → wait until it has gone → create

A crash anywhere between is healed by the next run: one that finds the object on its way out gets the same 422, and goes
on to wait; one that finds none creates it, as for any object that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from kopylite.client.api import Api
from kopylite.client.codec import decode_identity
from kopylite.client.verbs import Preconditions, WriteOptions
from kopylite.clock import Clock
from kopylite.errors import AlreadyExists, Conflict, Invalid, NameStillTaken, NotFound, UsageError
from kopylite.objects import Kind, key_of

# Dependents that go first may take a pod's whole grace period; longer, and the run gives way, to come back in 30 s.
GONE_SECONDS = 35.0
FIRST_LOOK, LONGEST_PAUSE = 0.05, 1.0

_IMMUTABLE = re.compile(r"immutable|may not be changed|may not change|updates to .* are forbidden")

Propagation = Literal["Foreground", "Orphan", "Background"]


class Recreation(msgspec.Struct, frozen=True):
    """How objects are made anew.

    Args:
        api: carries it out.
        clock: of the waiting.
        told: of each object that was deleted to be made anew: the object, and why.
    """

    api: Api
    clock: Clock
    told: Callable[[Mapping[str, Any], str], None]

    async def recreate(
        self,
        kind: Kind,
        stored: Mapping[str, Any],
        desired: Mapping[str, Any],
        options: WriteOptions,
        propagation: Propagation,
        error: Invalid,
    ) -> bytes:
        """Delete the stored object and create the desired one; returns that as stored.

        Args:
            error: why the stored one could not be updated.

        Raises:
            Invalid: that error: the desired object would be refused as a new one, too. Nothing was deleted.
            Conflict: the object was deleted, or made anew, by somebody else meanwhile; run again.
            NameStillTaken: it has not gone within 35 s; the next run goes on from there.
        """
        key, metadata = key_of(stored), stored["metadata"]
        uid = metadata["uid"]
        try:  # what the server looks at before it looks for the name
            await self.api.create(kind, key.namespace, desired, msgspec.structs.replace(options, dry_run=True))
        except AlreadyExists:
            pass
        except Invalid:
            raise error from None
        if not metadata.get("deletionTimestamp"):
            try:
                await self.api.delete(kind, key, Preconditions(uid=uid, propagation=propagation))
            except NotFound:
                pass
            else:
                fields = ", ".join(dict.fromkeys(cause.field for cause in error.causes if cause.field)) or error.message
                self.told(
                    stored, f"{kind.kind} {key.name} was deleted to be made anew, since it cannot change: {fields}"
                )
        await self._wait_gone(kind, stored, uid)
        try:
            return await self.api.create(kind, key.namespace, desired, options)
        except NameStillTaken:
            raise
        except AlreadyExists as taken:
            raise _by_others(kind, stored) from taken

    async def _wait_gone(self, kind: Kind, stored: Mapping[str, Any], uid: str) -> None:
        key, pause, began = key_of(stored), FIRST_LOOK, self.clock.monotonic()
        while True:
            try:
                now = decode_identity(await self.api.get(kind, key))[1].uid
            except NotFound:
                return
            if now != uid:
                raise _by_others(kind, stored)
            if self.clock.monotonic() - began >= GONE_SECONDS:
                raise NameStillTaken(
                    f"{kind} {key} was deleted to be made anew, and has not gone within {GONE_SECONDS:.0f} s; look "
                    "which finalizer or dependent holds it"
                )
            await self.clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def chosen(recreate: object) -> Propagation | None:
    """What the option `recreate=` says.

    Raises:
        UsageError: nothing that it can.
    """
    if recreate is False:
        return None
    choices: dict[object, Propagation] = {
        True: "Foreground", "Foreground": "Foreground", "Orphan": "Orphan", "Background": "Background",
    }  # fmt: skip
    if isinstance(recreate, str | bool) and recreate in choices:
        return choices[recreate]
    raise UsageError(
        f'recreate={recreate!r}: True or "Foreground" (dependents go first), "Orphan" (they stay), "Background" '
        "(they go later), or False"
    )


def with_way_out(error: Invalid) -> Invalid:
    """The error of an update; of a field that cannot be changed, with what can be done."""
    if _IMMUTABLE.search(error.message):
        error.message += "; create_or_update(..., recreate=True) deletes the object and makes it anew"
    return error


def _by_others(kind: Kind, stored: Mapping[str, Any]) -> Conflict:
    return Conflict(f"{kind} {key_of(stored)} was made anew by somebody else meanwhile")
