"""What runs beside the Apps to serve their webhooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite.errors import UsageError
from kopylite.manager.webhooks import served
from kopylite.testing import VirtualClock


def service(run: Callable[[], Awaitable[None]]) -> Any:
    return SimpleNamespace(run=run, wait_begun=anyio.lowlevel.checkpoint)


async def endless(what: str, run: Callable[[], Awaitable[None]]) -> None:
    await run()


def test_what_fails_beside_the_webhooks_is_raised_as_itself() -> None:
    told: list[UsageError] = []

    async def main() -> None:
        async with served(service(anyio.sleep_forever), told.append, endless):
            raise ValueError("the App's own")

    with pytest.raises(ValueError, match="the App's own"):
        VirtualClock().run(main)
    assert not told


def test_an_address_that_cannot_be_had_ends_the_run_in_order() -> None:
    told: list[UsageError] = []

    async def taken() -> None:
        raise UsageError("the port is taken")

    async def main() -> None:
        async with served(cast("Any", service(taken)), told.append, endless):
            await anyio.lowlevel.checkpoint()

    VirtualClock().run(main)
    assert [str(error) for error in told] == ["the port is taken"]
