"""Pool: runs pieces of work in forks of this process, some at a time, and hands their results back as they come."""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from kopylite.clock import SYSTEM_CLOCK
from kopylite.sweep.runs import begin_process

W = TypeVar("W")
R = TypeVar("R")

# A run takes a second of a processor; one that hangs is ended after so many, and after so many of the wall clock.
CPU_SECONDS = 30
WALL_SECONDS = 900.0


@dataclass(slots=True)
class _Child(Generic[W]):
    work: W
    pid: int
    began: float
    data: bytearray


@dataclass(frozen=True, slots=True)
class Died:
    """A fork that ended without a result, and why."""

    why: str


class Pool(Generic[W, R]):
    """Forks for one kind of work.

    Args:
        do: called in a fork; its result is pickled.
        jobs: at the same time.
    """

    def __init__(self, do: Callable[[W], R], jobs: int) -> None:
        self._do = do
        self._jobs = jobs

    def run(self, works: Iterable[W], tick: Callable[[], bool] = lambda: True) -> Iterator[tuple[W, R | Died]]:
        """Do all, and yield each with its result as it comes.

        Args:
            tick: called now and then; from when it returns False, nothing more is begun.
        """
        waiting, goes_on = iter(works), True
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    goes_on = goes_on and tick()
                    while goes_on and len(selector.get_map()) < self._jobs:
                        work = next(waiting, None)
                        if work is None:
                            goes_on = False
                        else:
                            self._begin(work, selector)
                    if not selector.get_map():
                        return
                    yield from self._collect(selector)
            finally:
                for key in list(selector.get_map().values()):
                    os.kill(key.data.pid, signal.SIGKILL)
                    self._end(selector, key)

    def _begin(self, work: W, selector: selectors.BaseSelector) -> None:
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the fork touches none of their things
            pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._work(work, writing)
        os.close(writing)
        child: _Child[W] = _Child(work, pid, SYSTEM_CLOCK.monotonic(), bytearray())
        selector.register(reading, selectors.EVENT_READ, child)

    def _work(self, work: W, writing: int) -> None:
        """In the fork; never returns."""
        code = 1
        try:
            begin_process(CPU_SECONDS)
            result: object = self._do(work)
            code = 0
        except BaseException:
            result = Died(traceback.format_exc())
        try:
            data = memoryview(pickle.dumps(result))
            while data:
                data = data[os.write(writing, data) :]
        finally:
            os._exit(code)

    def _collect(self, selector: selectors.BaseSelector) -> Iterator[tuple[W, R | Died]]:
        for key, _ in selector.select(0.2):
            child: _Child[W] = key.data
            if chunk := os.read(key.fd, 1 << 20):
                child.data += chunk
                continue
            status = self._end(selector, key)
            yield child.work, self._result(child, status)
        for key in list(selector.get_map().values()):
            if SYSTEM_CLOCK.monotonic() - key.data.began > WALL_SECONDS:
                os.kill(key.data.pid, signal.SIGKILL)

    def _end(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> int:
        selector.unregister(key.fileobj)
        os.close(key.fd)
        return os.waitpid(key.data.pid, 0)[1]

    def _result(self, child: _Child[W], status: int) -> R | Died:
        if child.data:
            result: R | Died = pickle.loads(bytes(child.data))  # from a fork of this process
            return result
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number in (signal.SIGXCPU, signal.SIGKILL):
            return Died(f"it did not end within {CPU_SECONDS} s of a processor")
        if number:
            return Died(f"its process ended by signal {number}")
        return Died(f"its process ended with exit code {os.WEXITSTATUS(status)}, as by os._exit")
