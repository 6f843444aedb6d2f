"""Supervisor: begins some processes of one command, keeps them alive, answers for all, and ends them in order.

It is the parent of full replicas, which share the work as those of several machines do; it has no part in that, and
holds nothing of the operator. The first process is begun alone: what is wrong with the command, it tells, once; the
others follow when it listens.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import anyio.abc

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.registry import GuardedRegistry, ProcessMetrics
from kopylite.serving import Address, Answer, Check, Query, guarded, probe, servers_of
from kopylite.supervision.child import ProcessPlace
from kopylite.supervision.exposition import merged
from kopylite.supervision.process import SupervisedProcess, end_of
from kopylite.supervision.restarts import GIVE_UP, STEADY

if TYPE_CHECKING:
    from kopylite.serving import HttpServer

logger = logging.getLogger("kopylite.supervision")

# The label of the parent's own figures.
PARENT = "parent"

_FAILED = re.compile(r"^\[-\](\S+) failed", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSettings:
    """How a Supervisor works. Times are in seconds.

    Attributes:
        count: how many processes.
        metrics_address, health_address: as those of the manager's Options.
        overtime: how long the processes may take for their end before they are killed.
        hopeless: exit codes of what no restart mends. As long as no process has ever run for 60 s, one ends all.
    """

    count: int
    metrics_address: str
    health_address: str
    overtime: float
    hopeless: frozenset[int] = frozenset()


class Supervisor:
    """Runs several processes of one command, once.

    Args:
        command: makes the command line of a process, which ties itself to this parent by its place.
        settings: how many, and how.
        clock: of all.

    Attributes:
        address: where it listens, of two addresses the first; None before that.

    Raises:
        UsageError: an address is none.
    """

    def __init__(
        self,
        command: Callable[[ProcessPlace], Sequence[str]],
        settings: SupervisorSettings,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        numbers = range(1, settings.count + 1)
        self.processes = [SupervisedProcess(number, settings.count, command) for number in numbers]
        self.address: Address | None = None
        self._settings = settings
        self._clock = clock
        self._stop = anyio.Event()
        self._code = 0
        self._proven = False
        self._ask = guarded(clock.monotonic)
        self._answered: set[int] = set()
        self._registry = GuardedRegistry()
        self._registry.register(ProcessMetrics(self._numbers))
        self._servers: list[HttpServer] = servers_of(
            ("--metrics-address", settings.metrics_address, {"/metrics": self._metrics}),
            (
                "--health-address",
                settings.health_address,
                {f"/{endpoint}": partial(self._probe, endpoint) for endpoint in ("healthz", "readyz")},
            ),
        )

    def stop(self) -> None:
        """Ask all for an orderly end; `run` returns when it is reached. Harmless when repeated."""
        self._stop.set()
        for process in self.processes:
            process.stop()

    async def run(self) -> int:
        """Until it was stopped, or a process cannot be kept alive.

        Returns:
            0; or the exit code of a process that did not end well, less than 0 for one that a signal ended.

        Raises:
            UsageError: an address cannot be listened on.
        """
        async with AsyncExitStack() as stack:
            for server in self._servers:
                await stack.enter_async_context(server)
                self.address = self.address or server.address
                logger.info("listening on http://%s for %s", server.address, " and ".join(server.paths))
            first, *others = self.processes
            async with anyio.create_task_group() as background:
                background.start_soon(self._end_overtime)
                async with anyio.create_task_group() as kept:
                    kept.start_soon(self._keep, first)
                    background.start_soon(self._follow, kept, first, others)
                background.cancel_scope.cancel()
        return self._code

    async def _follow(
        self, kept: anyio.abc.TaskGroup, first: SupervisedProcess, others: Sequence[SupervisedProcess]
    ) -> None:
        await first.listening.wait()
        for process in others if not self._stop.is_set() else ():
            kept.start_soon(self._keep, process)

    async def _keep(self, process: SupervisedProcess) -> None:
        """Begin a process, and again whenever it has ended by itself."""
        clock = self._clock
        while not self._stop.is_set():
            began = clock.monotonic()
            try:
                code = await process.run()
            except OSError as error:
                await self._wait_for_room(process, error)
                continue
            ran = clock.monotonic() - began
            self._proven = self._proven or ran >= STEADY
            if self._stop.is_set():
                self._code = self._code or code
            elif code in self._settings.hopeless and not self._proven:
                self._give_up(code)  # it has said itself why
            elif (pause := process.restarts.ended(ran)) is None:
                text = "process %d has ended %s, and has not worked for long %d times in a row: stopping all"
                logger.error(text, process.number, end_of(code), GIVE_UP)
                self._give_up(code if code >= 0 else 128 - code)
            else:
                text = "process %d has ended %s after %.0f s; it is begun again in %.0f s"
                logger.error(text, process.number, end_of(code), ran, pause)
                await self._pause(pause)

    async def _wait_for_room(self, process: SupervisedProcess, error: OSError) -> None:
        """The machine has no memory, process or descriptor left for one more: those that run go on without it."""
        pause, why = process.restarts.refused(), error.strerror or error
        if not any(each.runs for each in self.processes):
            logger.error("process %d cannot be begun, and none runs: stopping: %s", process.number, why)
            return self._give_up(os.EX_OSERR)
        logger.error("process %d cannot be begun; it is tried again in %.0f s: %s", process.number, pause, why)
        await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._stop.wait()

    def _give_up(self, code: int) -> None:
        self._code = code
        self.stop()

    async def _end_overtime(self) -> None:
        """What has not ended long after a stop is killed: it would hold up the parent for ever."""
        await self._stop.wait()
        await self._clock.sleep(self._settings.overtime)
        for process in self.processes:
            if process.runs:
                text = "process %d has not ended within %.0f s, and is killed"
                logger.error(text, process.number, self._settings.overtime)
                process.kill()

    # What is asked of all

    async def _from_all(self, path: str, accept: str = "") -> dict[int, tuple[int, str]]:
        """Each process's status and text, asked at the same time."""
        found: dict[int, tuple[int, str]] = {}

        async def ask(process: SupervisedProcess) -> None:
            found[process.number] = await process.get(path, accept)

        async with anyio.create_task_group() as tasks:
            for process in self.processes:
                tasks.start_soon(ask, process)
        return dict(sorted(found.items()))

    async def _metrics(self, query: Query) -> Answer:
        """All figures of all processes, and the parent's own. Who does not answer is missing, and `up` says so."""
        answers = await self._from_all("/metrics", query.accept)
        texts = {str(number): text for number, (status, text) in answers.items() if status == 200}
        self._answered = set(map(int, texts))
        own, content_type = self._registry.exposition(query.accept)
        return Answer(200, merged({**texts, PARENT: own.decode()}).encode(), content_type)

    def _numbers(self) -> list[tuple[str, bool, int]]:
        return [(str(each.number), each.number in self._answered, each.restarts.total) for each in self.processes]

    async def _probe(self, endpoint: str, query: Query) -> Answer:
        """Every process is alive, or ready. /readyz/process-2/NAME asks process 2 for one of its own checks.

        One that is just begun (again) is no reason to end all of them, so it is alive, and not ready.
        """
        name, _, check = query.tail.partition("/")
        processes = {f"process-{process.number}": process for process in self.processes}
        if check and name in processes:
            status, text = await processes[name].get(f"/{endpoint}/{quote(check)}")
            return Answer(status or 503, text.encode())
        problems: dict[str, str | None] = {}
        for number, (status, text) in (await self._from_all(f"/{endpoint}")).items():
            begins = endpoint == "healthz" and not self.processes[number - 1].address
            problems[f"process-{number}"] = None if status == 200 or begins else problem_of(endpoint, number, text)
        checks: dict[str, Check] = {name: partial(problems.get, name) for name in problems}
        return probe(endpoint, checks, query, self._ask)


def problem_of(endpoint: str, number: int, text: str) -> str:
    """What the answer of a process says is wrong, in a line."""
    names = _FAILED.findall(text)
    return f"{', '.join(names)}; see /{endpoint}/process-{number}/NAME" if names else text
