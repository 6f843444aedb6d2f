"""Crew: controllers and tasks that begin and end together, for the whole run or whenever this process leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio

from kopylite.controller import Controller
from kopylite.lifecycle.taskforce import TaskForce
from kopylite.manager.feeds import Feed
from kopylite.triggers import KindSource

if TYPE_CHECKING:
    from kopylite.leaderelection import Elector


class Crew:
    """Runs some controllers and tasks: once, or anew for each term as leader.

    Their sources hold the caches from the start on, so whoever begins to lead has them in sync.

    Args:
        makers: make the controllers, with their sources; each term has its own, since a controller runs once.
        grace: seconds that running reconciles have after `stop()`.
        elector: says when; None: from the start.
        tasks: what runs beside them; it ends after the last reconcile.
        warm: hold the caches from the start on; else in terms only.
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], Feed]],
        grace: float,
        elector: Elector | None,
        tasks: TaskForce,
        *,
        warm: bool = True,
    ) -> None:
        self.elector = elector
        self.tasks = tasks
        self._feeds = tuple(make() for make in makers) if warm else ()
        self._warm = warm
        self.finished = True
        self._makers = makers
        self._grace = grace
        self._term = 0
        self._works = elector is None
        self._stop = anyio.Event()
        self._over = anyio.Event()  # of the term that runs

    @property
    def controllers(self) -> Sequence[Controller]:
        """Those that run, or wait for their term."""
        return [feed.controller for feed in self._feeds]

    @property
    def working(self) -> Sequence[Controller]:
        """The controllers that run; none while somebody else leads."""
        return self.controllers if self._works else ()

    def stop(self) -> None:
        """Let the running reconciles end, then give the lease back; `run` returns after that."""
        self._stop.set()
        self._over.set()
        if self.elector is not None:
            self.elector.stop()

    def hand_over(self) -> None:
        """As `stop`, for the term that runs, if there is one: after it another one may come."""
        self._over.set()

    async def run(self) -> None:
        """Run until stopped; `finished` tells then whether all running reconciles ended by themselves."""
        if self.elector is None:
            await self._work()
        else:
            await self.elector.run(self._work)

    async def wait_warm(self, excused: frozenset[str] = frozenset()) -> None:
        """Wait until every controller works; of those that wait for their term, until their caches are in sync.

        Args:
            excused: namespaces that are not waited for.
        """
        for controller in self.controllers:
            for source in controller.sources:
                if source.namespace in excused:
                    continue
                if self.elector is not None and isinstance(source, KindSource):
                    await source.informer.wait_synced()
                else:
                    await source.wait_synced()

    async def _work(self) -> None:
        self._over = over = anyio.Event()
        if self._stop.is_set():
            over.set()
        controllers = self._fresh()
        self._works = True
        try:
            async with anyio.create_task_group() as running:
                for controller in controllers:
                    running.start_soon(self._serve, controller)
                running.start_soon(self.tasks.run)
                await over.wait()
                await self._drain(controllers)
                await self.tasks.end()
        finally:
            self._works = self.elector is None
            if not self._warm:
                ended, self._feeds = self._feeds, ()
                _close(ended)

    async def _serve(self, controller: Controller) -> None:
        await controller.run()
        if not self._over.is_set():
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
        self.finished = all(ended) or not self._stop.is_set()  # it tells of the end of the process

    def _fresh(self) -> Sequence[Controller]:
        """The controllers of a new term."""
        self._term += 1
        if self._term > 1 or not self._warm:
            # The new ones first: so the caches have a user all the time, and stay.
            before, self._feeds = self._feeds, tuple(make() for make in self._makers)
            _close(before)
        return self.controllers


def _close(feeds: Sequence[Feed]) -> None:
    """Let go of the caches of controllers that have ended."""
    for feed in feeds:
        feed.close()
