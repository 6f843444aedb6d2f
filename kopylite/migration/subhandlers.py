"""Sub-handlers: functions that a handler registers while it runs, and that run after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from kopylite.errors import UsageError
from kopylite.migration.filters import Filters


@dataclass(frozen=True, slots=True)
class SubHandler:
    """One of them, with what its declaration says."""

    function: Callable[..., Any]
    param: Any = None
    filters: Filters = field(default_factory=Filters)


_COLLECTING: ContextVar[list[SubHandler] | None] = ContextVar("kopylite_migration_collecting", default=None)


@contextmanager
def collected() -> Iterator[list[SubHandler]]:
    """What is registered inside, also in a thread that has this context."""
    found: list[SubHandler] = []
    token = _COLLECTING.set(found)
    try:
        yield found
    finally:
        _COLLECTING.reset(token)


def subhandler(*, param: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """kopf.subhandler and kopf.on.this: the function runs when the handler has returned.

    Each runs again when one of them, or a later handler of its object, has failed, so it must bear that.
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        register(function, param=param, **options)
        return function

    return decorator


def register(function: Callable[..., Any] | None = None, *, fn: Any = None, param: Any = None, **options: Any) -> Any:
    """kopf.register."""
    collecting = _COLLECTING.get()
    if collecting is None:
        raise UsageError("a sub-handler is registered outside of a handler; call the function there")
    chosen = function or fn
    filters = Filters(**{name: options[name] for name in Filters.__annotations__ if name in options})  # type: ignore[typeddict-item]
    collecting.append(SubHandler(chosen, param, filters))
    return chosen


async def execute(*, fns: Iterable[Any] | Mapping[str, Any] | None = None, **_: Any) -> None:
    """kopf.execute: these functions run when the handler has returned, and not at once."""
    functions: Iterable[Any] = (fns.values() if isinstance(fns, Mapping) else fns) or ()
    for each in functions:
        register(each)
