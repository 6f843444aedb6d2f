"""Crew: controllers that begin and end together, for the whole run or whenever this process leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from kopylite.controller import Controller
from kopylite.leaderelection import Elector
from kopylite.triggers import KindSource


class Crew:
    """Runs some controllers: once, or anew for each term as leader.

    Their sources hold the caches from the start on, so whoever begins to lead has them in sync.

    Args:
        makers: make the controllers; each term has its own, since a controller runs once.
        grace: seconds that running reconciles have after `stop()`.
        elector: says when; None: from the start.
    """

    def __init__(self, makers: Sequence[Callable[[], Controller]], grace: float, elector: Elector | None) -> None:
        self.elector = elector
        self.controllers = tuple(make() for make in makers)
        self.finished = True
        self._makers = makers
        self._grace = grace
        self._term = 0
        self._works = elector is None
        self._stop = anyio.Event()

    @property
    def working(self) -> Sequence[Controller]:
        """The controllers that run; none while somebody else leads."""
        return self.controllers if self._works else ()

    def stop(self) -> None:
        """Let the running reconciles end, then give the lease back; `run` returns after that."""
        self._stop.set()
        if self.elector is not None:
            self.elector.stop()

    async def run(self) -> None:
        """Run until stopped; `finished` tells then whether all running reconciles ended by themselves."""
        if self.elector is None:
            await self._work()
        else:
            await self.elector.run(self._work)

    async def wait_warm(self) -> None:
        """Wait until every controller works; of those that wait for their term, until their caches are in sync."""
        for controller in self.controllers:
            for source in controller.sources:
                if self.elector is not None and isinstance(source, KindSource):
                    await source.informer.wait_synced()
                else:
                    await source.wait_synced()

    async def _work(self) -> None:
        controllers = self._fresh()
        self._works = True
        try:
            async with anyio.create_task_group() as running:
                for controller in controllers:
                    running.start_soon(self._serve, controller)
                await self._stop.wait()
                await self._drain(controllers)
        finally:
            self._works = self.elector is None

    async def _serve(self, controller: Controller) -> None:
        await controller.run()
        if not self._stop.is_set():
            raise RuntimeError(f"controller {controller.name} ended by itself")

    async def _drain(self, controllers: Sequence[Controller]) -> None:
        """Let the running reconciles end, all controllers at the same time."""
        ended: list[bool] = []
        self.finished = False  # if the lease is lost meanwhile, it ends here

        async def drain(controller: Controller) -> None:
            ended.append(await controller.drain(self._grace))

        async with anyio.create_task_group() as tasks:
            for controller in controllers:
                tasks.start_soon(drain, controller)
        self.finished = all(ended)

    def _fresh(self) -> tuple[Controller, ...]:
        """The controllers of a new term."""
        self._term += 1
        if self._term > 1:
            # The new ones first: so the caches have a user all the time, and stay.
            before, self.controllers = self.controllers, tuple(make() for make in self._makers)
            for source in (source for controller in before for source in controller.sources):
                if isinstance(source, KindSource):
                    source.close()
        return self.controllers
