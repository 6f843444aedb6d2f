"""Visits every state that a world can come to in so many steps, breadth first, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, Self


class World(Protocol):
    """A machine of kopylite with what surrounds it, and what it promises."""

    def actions(self) -> Iterable[Hashable]:
        """What may happen now."""

    def act(self, action: Hashable) -> None:
        """Let it happen. Raises AssertionError: a promise is broken."""

    def check(self) -> None:
        """What has to be so in every state. Raises AssertionError."""

    def settle(self) -> None:
        """What has to come of this state when nothing goes wrong any more. Raises AssertionError."""

    def key(self) -> Hashable:
        """Equal of two worlds from which the same can follow."""

    def copy(self) -> Self:
        """One that goes its own way from here."""


@dataclass(frozen=True)
class Explored:
    """What a search has seen: different states, steps taken between them, and how deep it went."""

    states: int
    steps: int
    depth: int


class Broken(AssertionError):
    """A promise is broken; says by which steps."""


def explore(start: Callable[[], Iterable[World]], depth: int, settles: int | None = None) -> Explored:
    """Every interleaving of up to `depth` steps; of up to `settles` (None: of all) it is seen what comes of it.

    Raises:
        Broken: with the shortest steps that lead there.
    """
    seen: set[Hashable] = set()
    layer: list[tuple[World, tuple[Hashable, ...]]] = []
    steps = 0
    for world in start():
        _check(world, (), settles=True)
        if _is_new(world, seen):
            layer.append((world, ()))
    for reached in range(1, depth + 1):
        following: list[tuple[World, tuple[Hashable, ...]]] = []
        for world, path in layer:
            for action in world.actions():
                steps += 1
                after = world.copy()
                _act(after, path, action)
                if _is_new(after, seen):
                    _check(after, (*path, action), settles=settles is None or reached <= settles)
                    if reached < depth:
                        following.append((after, (*path, action)))
        layer = following
    return Explored(len(seen), steps, depth)


def _is_new(world: World, seen: set[Hashable]) -> bool:
    before = len(seen)
    seen.add(world.key())
    return len(seen) > before


def _act(world: World, path: tuple[Hashable, ...], action: Hashable) -> None:
    try:
        world.act(action)
    except Exception as error:
        raise _told((*path, action), error) from error


def _check(world: World, path: tuple[Hashable, ...], *, settles: bool) -> None:
    try:
        world.check()
        if settles:
            world.settle()
    except Exception as error:
        raise _told(path, error) from error


def _told(path: tuple[Hashable, ...], error: Exception) -> Broken:
    return Broken(f"{error or type(error).__name__}, after:\n" + "\n".join(f"  {step}" for step in path))
