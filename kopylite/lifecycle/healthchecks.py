"""HealthChecks: asks the checks of an App, each within its limit and one call at a time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import anyio

from kopylite.boundary import CHECK, CallFailed, Guard, name_of, say, show
from kopylite.clock import Clock
from kopylite.lifecycle.spec import CheckSpec, Endpoint
from kopylite.reconcile.context import Context, in_run
from kopylite.reconcile.threads import Threads


class HealthChecks:
    """The checks of one App, in one run.

    Args:
        specs: the checks.
        context_of: makes the Context of a call.
        clock: of their limits.
        observe: told of each call: the check's name, and "success", "error" or "timeout".
    """

    def __init__(
        self,
        specs: Sequence[CheckSpec],
        context_of: Callable[[CheckSpec], Context],
        clock: Clock,
        observe: Callable[[str, str], None] = lambda name, result: None,
    ) -> None:
        self._threads = Threads("checks", clock)
        self._threads.abandon()  # the limit of a check is kept: nobody waits for its thread beyond that
        self._checks = [_Check(spec, partial(context_of, spec), clock, self._threads, observe) for spec in specs]

    def names(self, endpoint: Endpoint) -> list[str]:
        """Of the checks of an endpoint."""
        return [check.spec.name for check in self._checks if check.spec.endpoint == endpoint]

    async def ask(self, endpoint: Endpoint, names: Iterable[str]) -> dict[str, str | None]:
        """Ask some checks, all at the same time: what is wrong, by their names; None: nothing is."""
        wanted, answers = set(names), dict[str, str | None]()

        async def ask(check: _Check) -> None:
            answers[check.spec.name] = await check.ask()

        async with anyio.create_task_group() as tasks:
            for check in self._checks:
                if check.spec.endpoint == endpoint and check.spec.name in wanted:
                    tasks.start_soon(ask, check)
        return answers

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.close()


class _Check:
    """One check. Who asks while it is being asked gets the same answer: probes may come from a whole network."""

    def __init__(
        self,
        spec: CheckSpec,
        context: Callable[[], Context],
        clock: Clock,
        threads: Threads,
        observe: Callable[[str, str], None],
    ) -> None:
        self.spec = spec
        self._context = context
        self._clock = clock
        self._threads = threads
        self._since: float | None = None
        # Of its thread, which goes on when nobody waits for it any more.
        self._busy_since: float | None = None
        self._over = anyio.Event()
        self._answer: str | None = None
        self._guard: Guard[[], object] = Guard(
            CHECK,
            self._call,
            name=spec.name,
            now=clock.monotonic,
            timeout=spec.timeout,
            observe=lambda result: observe(spec.name, result),
        )

    async def ask(self) -> str | None:
        """What is wrong; None: nothing is."""
        if self._since is not None:
            with anyio.move_on_after(self.spec.timeout):
                await self._over.wait()
                return self._answer
            return f"still being asked, for {self._clock.monotonic() - self._since:.0f} s"
        if (busy := self._busy_since) is not None:
            return f"its thread has been at work for {self._clock.monotonic() - busy:.0f} s"
        self._since, self._over = self._clock.monotonic(), anyio.Event()
        self._answer = "the check was cancelled"
        try:
            self._answer = _verdict(await self._guard.run("a probe"))
        except CallFailed as failed:
            self._guard.report(failed, "a probe")
            self._answer = say(failed.error)
        finally:
            self._since = None
            self._over.set()
        return self._answer

    async def _call(self) -> object:
        context = self._context()
        return await in_run(context, self._called, context)

    async def _called(self, context: Context) -> object:
        function: Callable[[Context], Any] = self.spec.function
        plain = function if inspect.isroutine(function) or hasattr(function, "func") else type(function).__call__
        if inspect.iscoroutinefunction(plain):
            return await function(context)
        self._busy_since = self._clock.monotonic()
        found = await self._threads.run(partial(self._in_thread, function, context), name_of(function))
        return await found if isinstance(found, Awaitable) else found

    def _in_thread(self, function: Callable[[Context], Any], context: Context) -> Any:
        try:
            return function(context)
        finally:
            self._busy_since = None


def _verdict(answer: object) -> str | None:
    if answer is None or answer is True:
        return None
    if isinstance(answer, str):
        return answer or "it says what is wrong with an empty text; None means that nothing is"
    return (
        "it says no" if answer is False else f"it returned {show(answer)}; a check returns None, True, False or a text"
    )
