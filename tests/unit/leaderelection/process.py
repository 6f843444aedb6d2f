"""Process: an elector on a server in memory, in virtual time, whose work is to wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import anyio
from anyio.abc import TaskGroup

from kopylite.errors import Forbidden
from kopylite.leaderelection import Elector, Lease, LeaseSettings
from kopylite.leaderelection.observer import ElectionObserver, LeaseChange
from kopylite.leaderelection.requests import LeaseRequests
from kopylite.testing.clock import START, VirtualClock
from tests.operators import eventually
from tests.unit.leaderelection.leaseserver import LeaseServer, Line

SETTINGS = LeaseSettings(name="a", namespace="default", lease_duration=15, renew_deadline=10, retry_period=2)
ENDING = 0.1  # what it does before a Lease is given back takes so many seconds


class Process(ElectionObserver):
    """An elector whose work waits until it is told to end; notes what it is told, and who holds the Lease then.

    Attributes:
        stubborn: its work goes on for so many seconds when it is cancelled.
        ending_takes: so many seconds, what it does before a Lease is given back.
    """

    def __init__(self, identity: str, server: LeaseServer, clock: VirtualClock, **options: Any) -> None:
        self.line, self.clock, self._server = Line(server), clock, server
        self.elector = Elector(SETTINGS, identity, self.line, clock=clock, observer=self, **options)
        self.told: list[tuple[LeaseChange | str, str]] = []
        self.notes: list[str] = []
        self.over = anyio.Event()
        self.stubborn = 0.0
        self.ending_takes = ENDING
        self.terms: list[float] = []
        self.ended: list[float] = []

    async def work(self) -> None:
        self.terms.append(self.clock.elapsed())
        self.over = anyio.Event()
        try:
            await self.over.wait()
        except anyio.get_cancelled_exc_class():
            if not self.stubborn:
                raise
            with anyio.CancelScope(shield=True):
                await anyio.sleep(self.stubborn)
        finally:
            self.ended.append(self.clock.elapsed())

    def end(self) -> None:
        self.elector.stop()
        self.over.set()

    async def read(self) -> Lease:
        """The Lease as it is now."""
        found = await LeaseRequests(self.line, "default", 5).get("a")
        assert found is not None
        return found

    def changed(self, lease: Lease, change: LeaseChange, note: str) -> None:
        assert lease.wire["metadata"]["name"] == "a"
        self.told.append((change, self._server.holders().get("a", "")))
        self.notes.append(note)

    def forbidden(self, error: Forbidden) -> None:
        self.told.append(("forbidden", str(error)))

    async def ending(self) -> None:
        await anyio.sleep(self.ending_takes)
        self.told.append(("ending", self._server.holders().get("a", "")))


@asynccontextmanager
async def leading(server: LeaseServer, clock: VirtualClock) -> AsyncIterator[tuple[Process, TaskGroup]]:
    """A process that leads, and the tasks it is one of; it waits for them at the end."""
    one = Process("one", server, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.elector.run, one.work)
        await until(lambda: one.terms, 1)
        yield one, tasks


def played(
    play: Callable[[LeaseServer, VirtualClock], Awaitable[None]],
    *,
    lease: bool = True,
    clock: VirtualClock | None = None,
) -> LeaseServer:
    """With the Lease as manifests bring it, so that it is claimed at once."""
    server, clock = LeaseServer(), clock or VirtualClock()
    if lease:
        server.put({"metadata": {"name": "a", "namespace": "default"}})

    async def main() -> None:
        with anyio.fail_after(2000):
            await play(server, clock)

    clock.run(main)
    return server


def renewed(server: LeaseServer) -> float:
    """When the last renewal was sent, as the Lease has it."""
    stamp = datetime.fromisoformat(server.leases["a"]["spec"]["renewTime"])
    return (stamp - START).total_seconds()


async def until(condition: Callable[[], object], limit: float = 60) -> None:
    await eventually(condition, "it came so", limit)
