"""Hosted: a long-lived function of the user in a task of its own, which can be ended whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from kopylite.boundary import PATIENCE, Patience, cancelled_from_outside, ends_process
from kopylite.clock import Clock
from kopylite.reconcile.threads import THREADS, Threads

# For what was cancelled to clean up.
CLEANUP_SECONDS = 5.0


class Hosted:
    """Runs one function, once, and keeps what it raised.

    Args:
        name: for its threads.
        function: awaits the user's with `in_fresh_context`, which can leave it.
        clock: of its threads.
        shield: what cancels the run does not reach it: only `end` does.

    Attributes:
        ended: set when it is over.
        error: what it raised; None: nothing, or only its own cancellation.
    """

    def __init__(self, name: str, function: Callable[[], Awaitable[None]], clock: Clock, *, shield: bool) -> None:
        self.ended = anyio.Event()
        self.error: BaseException | None = None
        self._function = function
        self._scope = anyio.CancelScope(shield=shield)
        self._threads = Threads(name, clock)
        self._patience = Patience()
        self._task: asyncio.Task[object] | None = None

    async def run(self) -> None:
        """Until it is over. Only cancellation from outside, and what ends the process, comes out."""
        self._task = asyncio.current_task()
        THREADS.set(self._threads)
        PATIENCE.set(self._patience)
        try:
            with self._scope:
                await self._function()
        except asyncio.CancelledError as error:
            if cancelled_from_outside():
                raise
            self.error = error
        except BaseException as error:
            if ends_process(error):
                raise
            self.error = error
        finally:
            self._threads.close()
            self.ended.set()

    async def end(self) -> bool:
        """Cancel it, and wait 5 s; then leave it where it waits.

        Returns:
            Whether it heeded its cancellation.
        """
        self._scope.cancel()
        if self._task is None:
            return True
        with anyio.move_on_after(CLEANUP_SECONDS):
            await self.ended.wait()
            return True
        self._threads.abandon()
        self._patience.over = True
        self._task.cancel()  # anyio's own cancellation stops at the shields of user code
        await self.ended.wait()
        return False
