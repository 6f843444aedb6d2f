"""Where a status is written."""

from __future__ import annotations

from typing import cast

import pytest

from kopylite.client.resources import Resources
from kopylite.client.status import through_status
from kopylite.errors import Conflict, NotFound, SubresourceNotFound
from kopylite.objects import Kind

THING = Kind("example.com/v1", "Thing")


class Known:
    def __init__(self) -> None:
        self.statusless: set[Kind] = set()

    def is_statusless(self, kind: Kind) -> bool:
        return kind in self.statusless

    def note_statusless(self, kind: Kind) -> None:
        self.statusless.add(kind)


class Written:
    def __init__(self, *fails: Exception) -> None:
        self.known = Known()
        self.to: list[str | None] = []
        self._fails = list(fails)

    async def write(self, subresource: str | None) -> str:
        self.to.append(subresource)
        if self._fails:
            raise self._fails.pop(0)
        return "done"

    async def status(self) -> str:
        return await through_status(cast("Resources", self.known), THING, self.write)


async def test_the_sub_resource_is_tried_first_and_is_enough() -> None:
    written = Written()
    assert await written.status() == "done"
    assert written.to == ["status"]


async def test_of_a_kind_that_has_none_the_object_is_written_and_that_is_remembered() -> None:
    written = Written(SubresourceNotFound("no status here"))
    assert [await written.status(), await written.status()] == ["done", "done"]
    assert written.to == ["status", None, None]
    written.known.statusless.clear()  # as it is after a minute: its CRD may have got one
    await written.status()
    assert written.to[-1] == "status"


@pytest.mark.parametrize("error", [NotFound("gone"), Conflict("newer"), OSError("cut")])
async def test_other_failures_are_no_reason_to_write_elsewhere(error: Exception) -> None:
    written = Written(error)
    with pytest.raises(type(error)):
        await written.status()
    assert written.to == ["status"]
    assert not written.known.statusless
