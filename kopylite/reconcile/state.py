"""SharedState: what the parts of an App have in common while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, cast

from kopylite.boundary import show
from kopylite.errors import UsageError

T = TypeVar("T")


class SharedState:
    """A pool, a session, settings: one thing of each class, found by its class, so type checkers know what it is.

        ctx.state[Pool] = await Pool.connect()      # in on_start; or let a lifespan yield it
        ctx.state[Pool].acquire()                   # in a reconcile, a task, a health check: of type Pool

    Each run of a Manager has its own for each App, so nothing of an earlier run, or of another test, is in it. Several
    things of one class go into a dataclass of your own.
    """

    __slots__ = ("_things",)

    def __init__(self) -> None:
        self._things: dict[type[Any], object] = {}

    def __getitem__(self, kind: type[T]) -> T:
        """The thing of a class.

        Raises:
            UsageError: nobody has put one here, or it is gone again.
        """
        try:
            return cast("T", self._things[kind])
        except KeyError:
            pass
        there = f"there are {', '.join(map(_name, self._things))}" if self._things else "it is empty"
        raise UsageError(
            f"ctx.state has no {_name(kind)}: {there}. Put it there before the work begins: in @app.on_start, by "
            f"ctx.state[{_name(kind)}] = ..., or let an @app.lifespan yield it"
        )

    def __setitem__(self, kind: type[T], thing: T) -> None:
        """Share a thing under its class, or under one that it inherits from.

        Raises:
            UsageError: `kind` is no class, the thing is not of it, or there is one already.
        """
        if not isinstance(kind, type):
            raise UsageError(f"ctx.state has its things by their classes, as in ctx.state[Pool]; {show(kind)} is none")
        if not isinstance(thing, kind):
            raise UsageError(f"ctx.state[{_name(kind)}] takes a {_name(kind)}, not {show(thing)}")
        if kind in self._things:
            raise UsageError(
                f"ctx.state has a {_name(kind)} already, which others may be using: put several into a dataclass of "
                f"your own, or take the first one away: del ctx.state[{_name(kind)}]"
            )
        self._things[kind] = thing

    def __delitem__(self, kind: type[Any]) -> None:
        """Take a thing away. Nothing is closed by that.

        Raises:
            UsageError: there is none.
        """
        self[kind]
        del self._things[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._things

    def __iter__(self) -> Iterator[type[Any]]:
        return iter([*self._things])

    def __len__(self) -> int:
        return len(self._things)

    def __repr__(self) -> str:
        return f"<SharedState of {', '.join(map(_name, self._things)) or 'nothing'}>"


def _name(kind: object) -> str:
    return str(getattr(kind, "__name__", show(kind)))
