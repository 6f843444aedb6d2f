"""Lifespans: what an App does before its work, and what it does afterwards, in reverse.

Each function has a task of its own. So a limit on it can be kept whatever scopes and task groups it holds open while
the App works, and what cancels the run does not cut its end short.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from kopylite.boundary import in_fresh_context, name_of, say, show
from kopylite.clock import Clock
from kopylite.errors import LifecycleError
from kopylite.lifecycle.hosted import CLEANUP_SECONDS, Hosted
from kopylite.lifecycle.spec import LifecycleHook
from kopylite.reconcile.context import Context, in_run
from kopylite.reconcile.state import SharedState

logger = logging.getLogger("kopylite.lifecycle")

# A start that takes longer is told of, again and again.
SLOW_SECONDS = 10.0


class Lifespans:
    """The hooks of one App, around one run.

    Args:
        hooks: in the order in which they begin.
        context_of: makes the Context of a hook.
        state: gets what lifespans yield.
        clock: of their threads.
        observe: told of each hook that failed: its stage and its name.
        fail: told why the run has to end: a start that failed, or a lifespan that ended while it was needed.

    Attributes:
        began: every start is done, and no end has begun.
        starting: which start is going on; "" none.
    """

    def __init__(
        self,
        hooks: Sequence[LifecycleHook],
        context_of: Callable[[LifecycleHook], Context],
        state: SharedState,
        clock: Clock,
        *,
        observe: Callable[[str, str], None] = lambda stage, name: None,
        fail: Callable[[LifecycleError], None],
    ) -> None:
        self.began = False
        self.starting = ""
        self._hooks = tuple(hooks)
        self._context_of = context_of
        self._state = state
        self._clock = clock
        self._observe = observe
        self._fail = fail
        self._entering = anyio.CancelScope()

    def stop(self) -> None:
        """Begin nothing more; the start that is going on is cancelled."""
        self._entering.cancel()

    @asynccontextmanager
    async def lived(self) -> AsyncIterator[None]:
        """Around the App's work. Entered also when a start has failed or was stopped: `fail` was told then.

        Every end gets its time, also when the run is cancelled.
        """
        entered: list[_Phase] = []
        async with anyio.create_task_group() as hosts:
            try:
                with self._entering:
                    self.began = await self._enter(hosts, entered)
                yield
            finally:
                self.began = False
                with anyio.CancelScope(shield=True):
                    for phase in reversed(entered):
                        await self._leave(phase, hosts)

    async def _enter(self, hosts: TaskGroup, entered: list[_Phase]) -> bool:
        """Begin one after the other; those in `entered` have an end to come. Returns whether all have begun."""
        for hook in self._hooks:
            phase = _Phase(hook, self._context_of(hook), self._state, self._clock)
            entered.append(phase)
            if hook.stage == "on_stop":
                continue
            self.starting = str(hook)
            hosts.start_soon(self._host, phase)
            with anyio.move_on_after(hook.timeout):
                await self._wait_begun(phase)
            self.starting = ""
            if not phase.begun:
                self._give_up(hook, phase.host.error, f"did not end within {hook.timeout:g} s (its timeout)")
                return False
        return True

    async def _wait_begun(self, phase: _Phase) -> None:
        began = self._clock.monotonic()
        while not phase.reached.is_set():
            with anyio.move_on_after(SLOW_SECONDS):
                await phase.reached.wait()
                return
            logger.warning(
                "%s still runs after %.0f s: nothing works before it has ended",
                phase.hook,
                self._clock.monotonic() - began,
            )

    async def _host(self, phase: _Phase) -> None:
        """Run a start, and a lifespan to its end."""
        await phase.host.run()
        phase.reached.set()
        if phase.hook.stage == "lifespan" and phase.begun and not phase.leave.is_set():
            self._give_up(phase.hook, phase.host.error, "ended while the app was at work")

    async def _leave(self, phase: _Phase, hosts: TaskGroup) -> None:
        """End one, within its limit. Nothing that it does comes out."""
        hook = phase.hook
        if hook.stage == "on_stop":
            phase.begun = True
            hosts.start_soon(phase.host.run)
        if hook.stage == "on_start" or not phase.begun:
            await self._end(phase)
            return
        if phase.host.ended.is_set():
            return  # it was told of when it happened
        phase.leave.set()
        with anyio.move_on_after(hook.stop_timeout):
            await phase.host.ended.wait()
        if phase.host.ended.is_set():
            if (error := phase.host.error) is not None:
                self._observe(hook.stage, name_of(hook.function))
                logger.error("%s failed at the end: %s; the end goes on", hook, say(error), exc_info=error)
            return
        self._observe(hook.stage, name_of(hook.function))
        logger.error("%s did not end within %g s, and is cancelled", hook, hook.stop_timeout)
        await self._end(phase)

    async def _end(self, phase: _Phase) -> None:
        if not await phase.host.end():
            logger.error("%s does not heed its cancellation for %g s: left where it is", phase.hook, CLEANUP_SECONDS)

    def _give_up(self, hook: LifecycleHook, cause: BaseException | None, why: str) -> None:
        self._observe(hook.stage, name_of(hook.function))
        error = LifecycleError(f"{hook} {why if cause is None else 'failed: ' + say(cause)}")
        error.__cause__ = cause
        self._fail(error)


class _Phase:
    """One hook in one run.

    Attributes:
        begun: its start has succeeded, or it has none.
        reached: its start is over, well or badly.
        leave: its end shall begin.
    """

    def __init__(self, hook: LifecycleHook, context: Context, state: SharedState, clock: Clock) -> None:
        self.hook = hook
        self.begun = False
        self.reached = anyio.Event()
        self.leave = anyio.Event()
        self._context = context
        self._state = state
        self.host = Hosted(name_of(hook.function), self._live, clock, shield=True)

    async def _live(self) -> None:
        await in_fresh_context(in_run, self._context, self._span if self.hook.stage == "lifespan" else self._call)

    async def _call(self) -> None:
        await self.hook.function(self._context)
        self.begun = True

    async def _span(self) -> None:
        async with _manager_of(self.hook.function, self._context) as shared:
            if shared is not None:
                self._state[type(shared)] = shared
            self.begun = True
            self.reached.set()
            await self.leave.wait()


def _manager_of(function: Callable[[Context], Any], context: Context) -> AbstractAsyncContextManager[Any]:
    made = function(context)
    if inspect.isasyncgen(made):
        return asynccontextmanager(lambda: made)()
    if not isinstance(made, AbstractAsyncContextManager):
        raise TypeError(f"it has to yield, or to return an async context manager, and returned {show(made)}")
    return made
