"""Room on the stack for objects that nest deep, while the server works, and for nobody else in its process.

A real server stores objects that are deeper than Python's own recursion limit lets us read them. The limit is the
interpreter's, and an operator beside an embedded server must meet the same one as in production: so it is raised for
each step that the server takes between two awaits, and put back after it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

# Bodies may nest 1,000 deep (request.bodies.MAX_DEPTH), and some ways through an object take six frames a level.
LIMIT: Final = 8000


@contextmanager
def deep_stack() -> Iterator[None]:
    """For work that does not await."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


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
