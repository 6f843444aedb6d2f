"""Work on large objects, and expressions that take long, kept off the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import RunVar

from kopylite.apiserver.depth import deep_stack
from kopylite.apiserver.schema.cel.budget import TakesLong, quickly
from kopylite.apiserver.slices import Slices

T = TypeVar("T")
E = TypeVar("E")

# What is about more bytes of JSON than this has a thread of its own, where the interpreter takes turns between it and
# the event loop: each step of a write (owners, defaults, validation) takes about a microsecond a byte.
LARGE: Final = 16 * 1024
# How many such threads work at a time: each that does lets the event loop wait for another 5 ms.
THREADS: Final = 4
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("kopylite_apiserver_aside")


async def aside(work: Callable[[], T], size: int = 0) -> T:
    """The result of `work`; in a thread if it is about more than LARGE bytes, or expressions of CEL make it slow.

    Args:
        work: changes nothing that others see. May be called twice if it evaluates expressions.
        size: of the objects that it looks at, in bytes of JSON.
    """
    if size <= LARGE:
        slices = Slices()
        try:
            with quickly():
                result = work()
        except TakesLong:
            pass
        else:
            await slices.turn()
            return result
    return await anyio.to_thread.run_sync(_deeply, work, limiter=_threads())


def portions(items: Iterable[E], weight: Callable[[E], int]) -> Iterator[list[E]]:
    """The items in order, as many together as weigh no more than LARGE; at least one."""
    portion: list[E] = []
    total = 0
    for item in items:
        total += weight(item)
        if portion and total > LARGE:
            yield portion
            portion, total = [], weight(item)
        portion.append(item)
    if portion:
        yield portion


def size_of(obj: Any) -> int:
    """The size of an object, in bytes of JSON."""
    return len(msgspec.json.encode(obj))


def _threads() -> anyio.CapacityLimiter:
    """Of this event loop, and of the server alone: an operator beside it has its own."""
    try:
        return _LIMITER.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _LIMITER.set(limiter)
        return limiter


def _deeply(work: Callable[[], T]) -> T:
    with deep_stack():
        return work()
