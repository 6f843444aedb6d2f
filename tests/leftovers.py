"""Nothing left over: what a test leaves behind is named, with the place where it was made, and fails the test.

In an event loop, at its end (of `asyncio.Runner`: that is pytest-asyncio, `asyncio.run`, `VirtualClock.run`, the
portals of anyio): tasks, timers, futures that somebody waits for, asynchronous generators that were not closed.
In the process, at the end of the test: open files and sockets, threads, handlers and filters of loggers, handlers of
signals, hooks of `sys`, `gc` and `warnings`, collectors of prometheus, variables of the environment, the folder.

    @pytest.mark.leaves("why this test has to leave something")     # the way out
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import prometheus_client

# Seconds that threads and the other end of a socket have to go away by themselves.
PATIENCE = 5.0
# Turns of the loop that a task has which was cancelled and not awaited, as aiohttp's servers do with their handlers.
TURNS = 5
# Frames of these are not where something was made.
_INNER = ("/asyncio/", "/anyio/", "/threading.py", "/leftovers.py", "/concurrent/futures/", "/contextlib.py")
_SITES = 3
# uvloop closes a connection that is given up in its handshake, and lets the handshake's timer run out (it holds the
# protocol and no socket; open sockets are looked for by number).
_UVLOOPS_OWN = "SSLProtocol._start_handshake.<locals>.<lambda>"

# Functions, and where in their byte code: the lines are only worked out for what is told.
Site = tuple[tuple[CodeType, int], ...]


def site() -> Site:
    """The innermost frames of the caller outside of the machinery. Cheap: made for every future."""
    frame: FrameType | None = sys._getframe(1)
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < _SITES:
        if not _is_inner(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


@functools.cache
def _is_inner(filename: str) -> bool:
    return any(part in filename for part in _INNER)


def spelled(made: Site | None) -> str:
    if not made:
        return "made out of sight"
    return "made at " + " < ".join(
        f"{_short(code.co_filename)}:{_line(code, at)} {code.co_qualname}" for code, at in made
    )


def _line(code: CodeType, at: int) -> int | None:
    return next((line for start, end, line in code.co_lines() if start <= at < end), None)


def _short(filename: str) -> str:
    parts = Path(filename).parts
    for root in ("kopylite", "tests", "site-packages", "samples"):
        if root in parts[:-1]:
            return "/".join(parts[len(parts) - 1 - parts[::-1].index(root) :])
    return filename


class LoopWatch:
    """What was made in one event loop, and where."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], Site] = weakref.WeakKeyDictionary()
        self.timers: dict[int, tuple[weakref.ref[asyncio.TimerHandle], Site, Any]] = {}
        self.futures: weakref.WeakKeyDictionary[asyncio.Future[Any], Site] = weakref.WeakKeyDictionary()
        self._create_future = loop.create_future
        self._call_later, self._call_at = loop.call_later, loop.call_at
        loop.create_future = self.create_future
        loop.call_at = self.call_at
        if not isinstance(loop, asyncio.BaseEventLoop):  # that one's call_later uses its call_at
            loop.call_later = self.call_later
        loop.set_task_factory(self.create_task)

    def create_task(self, loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        self.tasks[task] = site()
        return task

    def create_future(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._create_future()
        # asyncio never completes the future for the end of a stdin that is no pipe.
        if not sys._getframe(1).f_code.co_filename.endswith("asyncio/subprocess.py"):
            self.futures[future] = site()
        return future

    def call_later(self, delay: float, callback: Any, *args: Any, **options: Any) -> asyncio.TimerHandle:
        return self._timer(self._call_later, delay, callback, args, options)

    def call_at(self, when: float, callback: Any, *args: Any, **options: Any) -> asyncio.TimerHandle:
        return self._timer(self._call_at, when, callback, args, options)

    def _timer(
        self, call: Callable[..., Any], when: float, callback: Any, args: Any, options: Any
    ) -> asyncio.TimerHandle:
        def fired(*given: Any) -> None:
            self.timers.pop(id(fired), None)
            callback(*given)

        handle: asyncio.TimerHandle = call(when, fired, *args, **options)
        self.timers[id(fired)] = weakref.ref(handle), site(), callback
        return handle

    def left(self) -> Iterator[str]:
        """What is left, in words. Called before the loop cancels its tasks."""
        for _ in range(TURNS):
            tasks = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
            if not any(task.cancelling() for task in tasks):
                break
            self.loop.run_until_complete(asyncio.sleep(0))
        for task in tasks:
            yield f"task {task.get_name()} {_doing(task)}, {spelled(self.tasks.get(task))}"
        for handle, made, callback in list(self.timers.values()):
            timer = handle()
            name = getattr(callback, "__qualname__", callback)
            if timer is not None and not timer.cancelled() and name != _UVLOOPS_OWN:
                yield f"timer for {name}, {spelled(made)}"
        if not tasks:  # else they wait for these
            yield from self._waiters()
        yield from self._generators()

    def _waiters(self) -> Iterator[str]:
        if any(not future.done() for future in list(self.futures)):
            gc.collect()
        for future, made in list(self.futures.items()):
            if not future.done():
                yield f"future that nobody completes, {spelled(made)}"

    def _generators(self) -> Iterator[str]:
        generators = getattr(self.loop, "_asyncgens", ())
        if any(generator.ag_frame is not None for generator in list(generators)):
            gc.collect()
        for generator in list(generators):
            frame = generator.ag_frame
            if frame is not None:
                yield f"asynchronous generator {generator.__qualname__} at line {frame.f_lineno}, not closed"


def _doing(task: asyncio.Task[Any]) -> str:
    coro: Any = task.get_coro()
    inner = coro
    while (deeper := getattr(inner, "cr_await", None)) is not None and hasattr(deeper, "cr_frame"):
        inner = deeper
    frame = getattr(inner, "cr_frame", None)
    place = f" at {_short(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else ""
    return f"of {getattr(coro, '__qualname__', coro)}{place}"


class Loops:
    """Watches every loop of an asyncio.Runner; what they leave is kept until `taken`."""

    def __init__(self) -> None:
        self.watched: weakref.WeakKeyDictionary[Any, LoopWatch] = weakref.WeakKeyDictionary()
        self._left: list[str] = []
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        runners: Any = asyncio.runners
        lazy_init, cancel_all = asyncio.Runner._lazy_init, runners._cancel_all_tasks  # type: ignore[attr-defined]

        def watching_init(runner: Any) -> None:
            lazy_init(runner)
            if runner._loop not in self.watched:
                self.watched[runner._loop] = LoopWatch(runner._loop)

        def reporting_cancel(loop: Any, *rest: Any) -> None:
            watch = self.watched.pop(loop, None)
            if watch is not None:
                self._left += watch.left()
            cancel_all(loop, *rest)

        runner: Any = asyncio.Runner
        runner._lazy_init, runners._cancel_all_tasks = watching_init, reporting_cancel

        def undo() -> None:
            runner._lazy_init, runners._cancel_all_tasks = lazy_init, cancel_all

        self._undo.append(undo)

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def taken(self) -> list[str]:
        left, self._left = self._left, []
        return left


class Process:
    """The process at one moment: only what a test should put back."""

    def __init__(self, others: Iterable[Any] = ()) -> None:
        """`others` are the event loops that were there before: what they open belongs to what lives in them."""
        self.others = list(others)
        self.files = open_files()
        self.threads = set(threading.enumerate())
        self.state = dict(process_state())
        self.environment = environment()

    def left(self) -> list[str]:
        """What is there now and was not then, or is other than it was."""
        now = dict(process_state())
        changed = [
            f"{name} was {self.state.get(name)!r} and is {now.get(name)!r}"
            for name in sorted({*self.state, *now})
            if self.state.get(name) != now.get(name)
        ]
        variables = {os.fsdecode(name) for name, _ in self.environment.items() ^ environment().items()}
        changed += [f"environment variable {name}" for name in sorted(variables - {"PYTEST_CURRENT_TEST"})]
        return changed + self._slow()

    def _slow(self) -> list[str]:
        """Files, sockets and threads, which may take their time to go."""
        deadline, collected = time.monotonic() + PATIENCE, False
        while True:
            theirs = {fd for loop in self.others for fd in watched_files(loop)}
            more = [name for fd, name in open_files().items() if fd not in theirs and self.files.get(fd) != name]
            pooled = {thread for loop in self.others for thread in executors_threads(loop)}
            new = [one for one in threading.enumerate() if one not in self.threads and one not in pooled]
            threads = [one for one in new if not _is_pooled(one)]
            found = [f"open {name}" for name in more] + [f"thread {one.name} ({_target(one)})" for one in threads]
            if not found or time.monotonic() > deadline:
                return found
            if not collected:
                gc.collect()
                collected = True
            time.sleep(0.01)


def watched_files(loop: Any) -> list[int]:
    """The descriptors that an event loop reads and writes: the connections of a cluster that tests share, for one."""
    return [] if loop.is_closed() else list(getattr(getattr(loop, "_selector", None), "_fd_to_key", ()))


def executors_threads(loop: Any) -> set[threading.Thread]:
    """The workers of a loop's default executor, as long as the loop is open."""
    return set() if loop.is_closed() else set(getattr(getattr(loop, "_default_executor", None), "_threads", ()))


def _is_pooled(thread: threading.Thread) -> bool:
    """A worker of a loop that is open still: of a cluster that tests share."""
    loop = getattr(thread, "loop", None)
    return loop is not None and not loop.is_closed()


def _target(thread: threading.Thread) -> str:
    target = getattr(thread, "_target", None)
    return str(getattr(target, "__qualname__", type(thread).__qualname__))


def open_files() -> dict[int, str]:
    """The open descriptors by number. Empty where there is no /proc."""
    found: dict[int, str] = {}
    try:
        folder = os.open("/proc/self/fd", os.O_RDONLY)
    except FileNotFoundError:
        return found
    try:
        for name in os.listdir(folder):
            try:
                found[int(name)] = os.readlink(name, dir_fd=folder)
            except FileNotFoundError:
                continue  # just closed by another thread
    finally:
        os.close(folder)
    del found[folder]
    return found


def environment() -> dict[Any, Any]:
    """As the interpreter keeps it, in bytes: to decode all of it takes as long as all else that is looked at."""
    variables: Any = os.environ
    return dict(variables._data)


def _is_pytests(handler: logging.Handler) -> bool:
    return type(handler).__module__.startswith("_pytest")


def process_state() -> Iterator[tuple[str, Any]]:
    """(name, what can be compared) of all that a test could change for those after it."""
    for name, logger in [("root", logging.root), *logging.root.manager.loggerDict.items()]:
        if isinstance(logger, logging.Logger):
            handlers = logger.handlers and [one for one in logger.handlers if not _is_pytests(one)]
            if handlers:
                yield f"handlers of logger {name}", handlers
            if logger.filters:
                yield f"filters of logger {name}", list(logger.filters)
            if logger.level and name.startswith(("kopylite", "aiohttp", "asyncio")):
                yield f"level of logger {name}", logger.level
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD):
        yield f"handler of {number.name}", signal.getsignal(number)
    yield "sys.excepthook", sys.excepthook
    yield "sys.unraisablehook", sys.unraisablehook
    yield "threading.excepthook", threading.excepthook
    yield "warnings.showwarning", warnings.showwarning
    yield "coroutine origin tracking", sys.get_coroutine_origin_tracking_depth()
    yield "asynchronous generator hooks", tuple(sys.get_asyncgen_hooks())
    yield "gc.callbacks", [one for one in gc.callbacks if "hypothesis" not in str(getattr(one, "__module__", ""))]
    yield "prometheus collectors", list(prometheus_client.REGISTRY._collector_to_names)
    yield "current folder", os.getcwd()
