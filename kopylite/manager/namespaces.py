"""Namespaces: the one owner of which namespaces are in scope now. Carries out what ScopeState decides."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from kopylite.cache import Delta, Informer, SharedCache
from kopylite.clock import Clock
from kopylite.errors import Forbidden, RequestTimeout
from kopylite.manager.scope import NamespaceRule, ScopeState, ScopeSteps, names_of
from kopylite.objects import Kind
from kopylite.reconcile import Request

logger = logging.getLogger("kopylite.manager")

NAMESPACE = Kind("v1", "Namespace", plural="namespaces", namespaced=False)
# How long the caches of a namespace may fill before the next one begins beside it.
START_SECONDS = 10.0
# How long a list without a namespace waits at the start for the namespaces themselves.
KNOWN_SECONDS = 2.0
# Two hundred namespaces are a few lines.
SAY_SECONDS = 1.0


class Follower(Protocol):
    """Something that works in every namespace in scope."""

    def begin(self, namespace: str) -> None:
        """Work there too."""

    def end(self, namespace: str) -> None:
        """Work there no more, and forget all that is of it."""


class Namespaces:
    """Which namespaces are in scope, for those who follow it.

    With globs or labels an informer of namespaces says which there are. Until it is in sync, nothing is known: lists
    over the whole scope wait for it, and fail rather than leave something out.

    Args:
        rule: the scope that is asked for.
        cache: of all informers; it has one of namespaces, if that is needed.

    Attributes:
        opened: set when it is known which namespaces there are, and each of these was tried to begin in.
    """

    def __init__(self, rule: NamespaceRule, cache: SharedCache, clock: Clock) -> None:
        self.rule = rule
        self._cache = cache
        self._clock = clock
        self._state = ScopeState(rule)
        self._followers: dict[Follower, None] = {}
        self._informer = self._watch() if rule.live else None
        # Those that were there at the start, and those whose caches were in sync once: others hold nobody up.
        self._first: set[str] = set(rule.names)
        self._joined: set[str] = set()
        # Those whose caches are in sync, or were refused.
        self._tried: set[str] = set()
        self._tasks: TaskGroup | None = None
        self._starts: dict[str, anyio.CancelScope] = {}
        self._known = False
        self.opened = anyio.Event()
        # What is to be told, and from when on.
        self._untold: list[ScopeSteps] = []
        self._say_at = 0.0
        # Set when there is something to decide; and replaced by a new one, after it was set, at each change.
        self._wake = anyio.Event()
        self._changed = anyio.Event()

    @property
    def now(self) -> tuple[str, ...]:
        """Where the followers work."""
        return tuple(self._state.begun)

    @property
    def in_scope(self) -> Callable[[Request], bool] | None:
        """Whether a key is in scope at the moment; None: all keys always are."""
        if not self.rule.live:
            return None
        begun = self._state.begun
        return lambda request: not request.namespace or request.namespace in begun

    def follow(self, follower: Follower) -> None:
        """Tell it from now on where to begin and to end; where it has to be now it knows by `now`.

        Who came first is told first of a beginning, and last of an end.
        """
        self._followers[follower] = None

    def leave(self, follower: Follower) -> None:
        """Tell it nothing more."""
        self._followers.pop(follower, None)

    async def listed(self) -> Sequence[str]:
        """The namespaces that a list over the whole scope is about.

        Raises:
            RequestTimeout: they are not known yet; says why.
        """
        if self._informer is not None and not self._informer.has_state:
            with anyio.move_on_after(KNOWN_SECONDS):
                await self._informer.wait_synced()
            if not self._informer.has_state:
                why = self._informer.statistics().problem or "their list has not come"
                raise RequestTimeout(f"which namespaces are in scope ({self.rule}) is not known yet: {why}")
        return tuple(self._state.wanted)

    async def run(self) -> None:
        """Follow the cluster's namespaces until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._note_known)
            for name in self._state.begun:
                self._start(name)
            while True:
                known = self._informer is None or self._informer.has_state
                self._wake = anyio.Event()
                steps = self._state.next(self._clock.monotonic())
                for name in steps.end:
                    self._end(name)
                    await anyio.lowlevel.checkpoint()
                for name in steps.begin:
                    for follower in [*self._followers]:
                        follower.begin(name)
                    self._start(name)
                    await anyio.lowlevel.checkpoint()
                if known and not self._known:
                    self._known = True
                    self._first |= {*self._state.wanted}
                self._change()
                self._untold.append(steps)
                tell_after = self._say(self._clock.monotonic())
                with anyio.move_on_after(min((s for s in (steps.after, tell_after) if s is not None), default=None)):
                    await self._wake.wait()

    async def wait_settled(self, wait: Callable[[frozenset[str]], Awaitable[None]]) -> None:
        """Wait until the scope is known, and for what `wait` waits for. That is begun anew when the scope changes.

        Args:
            wait: has to leave out what is of some namespaces; see `excused`.
        """
        await self.opened.wait()
        done = False

        async def run(tasks: TaskGroup) -> None:
            nonlocal done
            await wait(self.excused())
            done = True
            tasks.cancel_scope.cancel()

        while not done:
            changed = self._changed
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, tasks)
                await changed.wait()
                tasks.cancel_scope.cancel()

    def excused(self) -> frozenset[str]:
        """The namespaces that keep nothing from being ready.

        These are those that RBAC refuses, unless it refuses all: the log names the rules, and they join when they may.
        And those that came later, until they are in sync.
        """
        refused = self._refused()
        late = self._state.begun.keys() - self._first - self._joined - refused
        return frozenset(late if refused == self._state.begun.keys() else late | refused)

    def counts(self) -> Mapping[str, int]:
        """How many namespaces are in scope, by state; empty: all of the cluster are."""
        if not self.rule.limited:
            return {}
        refused = len(self._refused())
        working = len(self._joined & self._state.begun.keys() - self._refused())
        return {"working": working, "refused": refused, "starting": len(self._state.wanted) - working - refused}

    def _refused(self) -> set[str]:
        begun = self._state.begun
        return {
            informer.scope.namespace
            for informer in self._cache.informers
            if informer.scope.namespace in begun
            and not informer.synced
            and (problem := informer.problem) is not None
            and isinstance(problem.error, Forbidden)
        }

    def _watch(self) -> Informer:
        informer = self._cache.acquire(NAMESPACE, labels=self.rule.labels, metadata_only=True)
        informer.add_handler(self._tell)
        return informer

    async def _note_known(self) -> None:
        """Also where no namespace matches, so that nothing else tells of it."""
        if self._informer is not None:
            await self._informer.wait_synced()
            self._wake.set()

    def _tell(self, delta: Delta) -> None:
        if delta.new is not None:
            self._state.seen(delta.new.name)
        elif delta.old is not None:
            self._state.gone(delta.old.name)
        self._wake.set()

    def _end(self, name: str) -> None:
        for names in (self._first, self._tried, self._joined):
            names.discard(name)
        if (start := self._starts.pop(name, None)) is not None:
            start.cancel()
        for follower in reversed([*self._followers]):
            follower.end(name)

    def _start(self, name: str) -> None:
        assert self._tasks is not None
        scope = self._starts[name] = anyio.CancelScope()
        self._tasks.start_soon(partial(self._settle, name, scope))

    async def _settle(self, name: str, scope: anyio.CancelScope) -> None:
        """Make room for the next namespace when the caches of this one are in sync or refused; then see it join."""
        with scope:
            informers = [one for one in self._cache.informers if one.scope.namespace == name]
            with anyio.move_on_after(START_SECONDS):
                for informer in informers:
                    await informer.wait_tried()
            self._state.settled(name)
            self._tried.add(name)
            self._wake.set()
            for informer in informers:
                await informer.wait_synced()
            self._joined.add(name)
            self._change()

    def _say(self, now: float) -> float | None:
        """Tell of what has begun and ended, once a second; after how many seconds there is more to be told."""
        if now < self._say_at:
            return self._say_at - now
        ended = {name for steps in self._untold for name in steps.end}
        begun = {name for steps in self._untold for name in steps.begin}
        self._untold.clear()
        if ended:
            logger.info("not in scope any more, and let go: %s", names_of(ended))
        if begun:
            logger.info("in scope now: %s", names_of(begun))
        if ended or begun:
            self._say_at = now + SAY_SECONDS
        return None

    def _change(self) -> None:
        if self._known and self._first <= self._tried:
            self.opened.set()
        self._changed.set()
        self._changed = anyio.Event()
