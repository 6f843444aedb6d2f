"""Threads: blocking functions of the user beside the event loop, and the way back into it.

A thread cannot be stopped. So whoever waits for one goes on waiting when it is cancelled: a key whose thread is still
at work never runs a second time. Only the end of the process (`abandon`) does not wait. The threads are daemons: one
that never returns keeps no process alive.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context as Variables
from contextvars import ContextVar, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import anyio

from kopylite.boundary import ActiveCall, cancelled_from_outside, ends_process, name_of
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import UsageError

T = TypeVar("T")

THREADS: ContextVar[Threads | None] = ContextVar("kopylite_threads", default=None)
"""The threads of the controller that runs the present task."""

UNBEGUN: set[object] = set()
"""What threads were given and have not looked at yet: a virtual clock stands still meanwhile."""


class Calls:
    """What a thread wants done in the event loop: carried out by the task that waits for it, one after the other.

    So a call has the context variables of the run, is cancelled with it, and ends with it: from then on each one raises
    CancelledError in the thread, whatever becomes of the event loop. Made in the event loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._of_loop = threading.get_ident()
        self._lock = threading.Lock()
        self._asked: deque[tuple[Callable[[], Awaitable[Any]], Future[Any]]] = deque()
        self._over = False
        self.wake: Callable[[], None] = lambda: None

    def call(self, function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
        """In the thread: await an async function in the event loop, and return what it returns.

        Raises:
            UsageError: this is no thread, but the event loop itself.
            asyncio.CancelledError: the run was cancelled, or is over.
        """
        if threading.get_ident() == self._of_loop:
            raise UsageError(
                f"{name_of(function)} was called in the event loop, which would wait for itself: a synchronous client "
                "is for the thread of its reconcile. What `mutate` needs, read before it"
            )
        answer: Future[T] = Future()
        with self._lock:
            if self._over:
                raise asyncio.CancelledError("the run of this thread was cancelled, or is over")
            self._asked.append((partial(function, *args, **kwargs), answer))
            self._loop.call_soon_threadsafe(self.wake)
        return answer.result()

    async def carry_out(self) -> None:
        """In the event loop: do what was asked up to now."""
        while self._asked:
            function, answer = self._asked.popleft()
            try:
                result = await function()
            except BaseException as error:
                cancelled = isinstance(error, asyncio.CancelledError) and cancelled_from_outside()
                # An exception belongs to one task at a time: this one is the thread's.
                answer.set_exception(asyncio.CancelledError("the run was cancelled") if cancelled else error)
                if cancelled or ends_process(error):
                    raise
            else:
                answer.set_result(result)

    def end(self) -> None:
        """Carry out nothing more."""
        with self._lock:
            self._over = True
        while self._asked:
            self._asked.popleft()[1].set_exception(asyncio.CancelledError("the run was cancelled"))


class _Job(Generic[T]):
    """One function in a thread. `run` is called there, everything else in the event loop."""

    def __init__(self, function: Callable[[], T], name: str, owner: object, began: float) -> None:
        self.name, self.owner, self.began = name, owner, began
        self.done = False
        self.changed = anyio.Event()
        # Of the wait for a thread whose run was cancelled; `abandon` ends it.
        self.waiting = anyio.CancelScope(shield=True)
        self._function = function
        self._variables: Variables = copy_context()
        self._loop = asyncio.get_running_loop()
        self._result: T
        self._error: BaseException | None = None

    def run(self, ended: Callable[[], None]) -> bool:
        """Returns whether the event loop could be told."""
        UNBEGUN.discard(self)
        try:
            self._result = self._variables.run(self._function)
        except BaseException as error:
            self._error = error
        try:
            self._loop.call_soon_threadsafe(ended)
        except RuntimeError:  # it is closed
            return False
        return True

    def outcome(self) -> T:
        try:
            if self._error is not None:
                raise self._error
            return self._result
        finally:
            self._error = None  # it holds on to this frame


class Threads:
    """The threads of one controller, made when they are needed and kept for the next function.

    Args:
        name: what they are called.
        clock: of the ages of calls.
    """

    def __init__(self, name: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._name = name
        self._clock = clock
        self._jobs: SimpleQueue[Callable[[], bool] | None] = SimpleQueue()
        self._active: set[_Job[Any]] = set()
        self._idle = 0
        self._made = 0
        self._abandoned = False

    async def run(self, function: Callable[[], T], name: str, *, owner: object = None, calls: Calls | None = None) -> T:
        """Call a function in a thread.

        Cancelled, it waits until the function has returned, and then is cancelled whatever came out of it.

        Args:
            name: of the function, for people.
            owner: of the call: whoever asks for its calls in progress.
            calls: what the function may have done in the event loop.
        """
        job = _Job(function, name, owner, self._clock.monotonic())
        if calls is not None:
            calls.wake = lambda: job.changed.set()
        self._active.add(job)
        self._start(job)
        try:
            while not job.done:
                await job.changed.wait()
                job.changed = anyio.Event()
                if calls is not None:
                    await calls.carry_out()
        except GeneratorExit:  # nobody waits any more
            self._end(job, calls)
            raise
        except BaseException:
            if calls is not None:
                calls.end()
            if not self._abandoned:
                with job.waiting:
                    while not job.done:
                        await job.changed.wait()
                        job.changed = anyio.Event()
            self._end(job, calls)
            if job.done:
                with suppress(asyncio.CancelledError):
                    job.outcome()  # what it raises says more than that it was cancelled
            raise
        self._end(job, calls)
        return job.outcome()

    def active(self, owner: object = None) -> list[ActiveCall]:
        """The functions that threads are at work on, the oldest first; of one owner, or all."""
        now = self._clock.monotonic()
        jobs = [job for job in self._active if owner is None or job.owner is owner]
        calls = [ActiveCall("thread", job.name, "", now - job.began) for job in jobs if not job.done]
        return sorted(calls, key=lambda call: -call.seconds)

    def abandon(self) -> None:
        """The process ends: from here on no thread is waited for by a run that is cancelled."""
        self._abandoned = True
        for job in self._active:
            job.waiting.cancel()

    def close(self) -> None:
        """Let go of the threads that do nothing; one that is at work ends with the process."""
        for _ in range(self._made):
            self._jobs.put(None)

    def _start(self, job: _Job[Any]) -> None:
        if self._idle:
            self._idle -= 1
        else:
            self._made += 1
            thread = threading.Thread(target=self._work, name=f"kopylite-{self._name}-{self._made}", daemon=True)
            thread.start()
        UNBEGUN.add(job)
        self._jobs.put(partial(job.run, partial(self._ended, job)))

    def _ended(self, job: _Job[Any]) -> None:
        self._idle += 1
        job.done = True
        job.changed.set()

    def _end(self, job: _Job[Any], calls: Calls | None) -> None:
        self._active.discard(job)
        if calls is not None:
            calls.end()

    def _work(self) -> None:
        while (run := self._jobs.get()) is not None:
            if not run():
                return
