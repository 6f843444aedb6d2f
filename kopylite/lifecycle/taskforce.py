"""TaskForce: runs the tasks of an App that begin and end together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import anyio

from kopylite.boundary import TASK, CallFailed, Guard, say
from kopylite.clock import Clock
from kopylite.errors import LifecycleError
from kopylite.lifecycle.hosted import Hosted
from kopylite.lifecycle.spec import TaskSpec
from kopylite.reconcile.context import Context, in_run
from kopylite.workqueue import RateLimit

logger = logging.getLogger("kopylite.lifecycle")

# A task that breaks is begun again after 1 s, and after 60 s at most.
RESTART = RateLimit(first=1.0, longest=60.0)
# One that worked for so long has not failed in a row.
STEADY_SECONDS = 60.0


class TaskForce:
    """Runs some tasks, as often as it is asked: once, or in each term as leader.

    Args:
        specs: the tasks.
        context_of: makes the Context of a run of a task.
        clock: of the pauses.
        observe: told of each run that ended by itself: the task's name, and "success" or "error".
        fail: told when a fatal task has failed; it has to end the run.

    Attributes:
        active: the names of the tasks that run, or wait to be begun again.
    """

    def __init__(
        self,
        specs: Sequence[TaskSpec],
        context_of: Callable[[TaskSpec], Context],
        clock: Clock,
        *,
        observe: Callable[[str, str], None] = lambda name, result: None,
        fail: Callable[[LifecycleError], None],
    ) -> None:
        self.specs = tuple(specs)
        self.active: set[str] = set()
        self._context_of = context_of
        self._clock = clock
        self._observe = observe
        self._fail = fail
        self._hosts: dict[str, Hosted] = {}

    async def run(self) -> None:
        """Until all tasks are done, `end` was called, or it is cancelled."""
        self._hosts = {spec.name: self._host(spec) for spec in self.specs}
        async with anyio.create_task_group() as tasks:
            for host in self._hosts.values():
                tasks.start_soon(host.run)

    async def end(self) -> None:
        """Cancel what runs, wait 5 s, and name and leave what does not heed that."""
        left: list[str] = []

        async def end(name: str, host: Hosted) -> None:
            if not await host.end():
                left.append(name)

        async with anyio.create_task_group() as tasks:
            for name, host in self._hosts.items():
                tasks.start_soon(end, name, host)
        if left:
            logger.error("left where it is, since it does not heed its cancellation: task %s", ", ".join(sorted(left)))

    def _host(self, spec: TaskSpec) -> Hosted:
        async def work() -> None:
            self.active.add(spec.name)
            try:
                await self._work(spec)
            finally:
                self.active.discard(spec.name)

        return Hosted(spec.name, work, self._clock, shield=False)

    async def _work(self, spec: TaskSpec) -> None:
        """Run a task until it returns."""
        guard: Guard[[], None] = Guard(
            TASK,
            lambda: in_run(context := self._context_of(spec), spec.function, context),
            name=spec.name,
            now=self._clock.monotonic,
            observe=lambda result: self._observe(spec.name, result),
        )
        failures = 0
        while True:
            began = self._clock.monotonic()
            try:
                await guard.run("its run")
            except CallFailed as failed:
                if spec.fatal:
                    self._fail(_fatal(spec, failed.error))
                    return
                if self._clock.monotonic() - began >= STEADY_SECONDS:
                    failures = 0
                delay = RESTART.delay(failures, self._clock.random())
                failures += 1
                guard.report(failed, "its run", delay)
            else:
                logger.info("task %s is done", spec.name)
                return
            await self._clock.sleep(delay)


def _fatal(spec: TaskSpec, cause: BaseException) -> LifecycleError:
    error = LifecycleError(f"task {spec.name!r} failed, and is declared as fatal: {say(cause)}")
    error.__cause__ = cause
    return error
