"""Where a status is written: to the sub-resource, or, for kinds that have none, to the object itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kopylite.client.resources import Resources
from kopylite.errors import SubresourceNotFound
from kopylite.objects import Kind

T = TypeVar("T")


async def through_status(resources: Resources, kind: Kind, write: Callable[[str | None], Awaitable[T]]) -> T:
    """Have `write` send a status to the sub-resource "status", or (None) to the object.

    A third of the CRDs of the field declare no status sub-resource. Their status is a field like any other: a write of
    it gives the object a new generation. That a kind has none is remembered for a minute, since its CRD may get one,
    and the main endpoint would then leave out a status without a word.
    """
    if not resources.is_statusless(kind):
        try:
            return await write("status")
        except SubresourceNotFound:
            resources.note_statusless(kind)
    return await write(None)
