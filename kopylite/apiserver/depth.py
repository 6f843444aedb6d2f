"""Room on the stack for objects that nest deep, while the server works, and for nobody else in its process.

A real server stores objects that are deeper than Python's own recursion limit lets us read them. The limit is the
interpreter's, and an operator beside an embedded server must meet the same one as in production: so it is raised for
each step that the server takes between two awaits, and put back after it.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

# Bodies may nest 1,000 deep (request.bodies.MAX_DEPTH), and some ways through an object take six frames a level.
LIMIT: Final = 8000


@contextmanager
def deep_stack() -> Iterator[None]:
    """For work that does not await.

    The limit is one for all threads, so it stays until the last of those that work has ended.
    """
    _working.begin()
    try:
        yield
    finally:
        _working.end()


class _Working:
    """How many need the deep stack now, and the limit before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = 0

    def begin(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, LIMIT))
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                sys.setrecursionlimit(self._before)


_working = _Working()


@types.coroutine
def deep(work: Awaitable[T]) -> Generator[Any, Any, T]:
    """Await `work`, each of its steps with a deep stack."""
    steps: Any = work if hasattr(work, "send") else work.__await__()
    resume, value = steps.send, None
    while True:
        try:
            with deep_stack():
                waits_for = resume(value)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            resume, value = steps.send, (yield waits_for)
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:
            resume, value = steps.throw, error


async def deep_stream(stream: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same chunks, each made with a deep stack."""
    try:
        while True:
            try:
                chunk = await deep(anext(stream))
            except StopAsyncIteration:
                return
            yield chunk
    finally:
        await stream.aclose()
