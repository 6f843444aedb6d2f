"""Long work in small steps, which several may wait for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

# Work that can be left after each step; what it returns is the result.
NodeSteps = Generator[None, None, T]


class Shared(Generic[T]):
    """Work that is done once: whoever waits for it takes the next step, and all get the result, or its error."""

    def __init__(self, steps: NodeSteps[T]) -> None:
        self._steps = steps
        self._results: list[T] = []
        self._error: Exception | None = None

    def wait(self) -> NodeSteps[T]:
        while not self._results:
            if self._error is not None:
                raise self._error
            try:
                next(self._steps)
            except StopIteration as end:
                self._results.append(end.value)
            except Exception as error:
                self._error = error
            else:
                yield
        return self._results[0]


def joined(values: Mapping[str, T], encode: Callable[[str, T], bytes], between: bytes = b"") -> NodeSteps[bytes]:
    """What `encode` makes of each name and value, a step each."""
    parts = []
    for name, value in values.items():
        parts.append(encode(name, value))
        yield
    return between.join(parts)
