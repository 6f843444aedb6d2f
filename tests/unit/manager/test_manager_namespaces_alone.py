"""Namespaces over an API server in this process, in virtual time: who is told what, and what is waited for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from kopylite import Kind, Request
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.cache import Informer, SharedCache
from kopylite.client import Client, Resources
from kopylite.devcluster.faults import refusal
from kopylite.errors import RequestTimeout
from kopylite.manager.namespaces import NAMESPACE, Namespaces
from kopylite.manager.scope import NamespaceRule
from kopylite.objects import ObjectKey
from kopylite.sweep.transport import Link, MemoryTransport
from kopylite.testing.clock import VirtualClock

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
PROD = NamespaceRule(labels="tier=prod")
# Longer than any pause between two tries.
LONG = 120.0


class World:
    """Namespaces, their followers, and the server that they are about.

    Attributes:
        forbidden: the paths of collections that are refused; `hanging`: that are never answered.
        story: what the followers were told, in order.
    """

    def __init__(self, rule: NamespaceRule, server: ApiServer, clock: VirtualClock) -> None:
        transport = MemoryTransport(Link(server, "test"), "test", clock)
        self.clock = clock
        self.client = Client(transport, clock=clock)
        self.cache = SharedCache(transport, Resources(transport, clock), clock=clock)
        self.namespaces = Namespaces(rule, self.cache, clock)
        self.forbidden: set[str] = set()
        self.hanging: set[str] = set()
        self.story: list[str] = []
        self.asked: list[str] = []
        self.accepted: dict[str, str] = {}
        server.world.hooks.before.append(self._before)

    async def _before(self, request: HttpRequest) -> Response | None:
        self.asked.append(request.path)
        if request.method == "GET":
            self.accepted[request.path] = request.headers["accept"]
        if request.method == "GET" and request.path in self.hanging:
            await anyio.sleep_forever()
        return refusal(403) if request.method == "GET" and request.path in self.forbidden else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.cache.run)
            tasks.start_soon(self.namespaces.run)
            yield
            tasks.cancel_scope.cancel()

    async def make(self, *names: str, tier: str = "prod") -> None:
        for name in names:
            metadata = {"name": name, "labels": {"tier": tier}}
            await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    async def move(self, name: str, tier: str) -> None:
        """Into the scope of tier=prod, or out of it."""
        await self.client.patch(NAMESPACE, name, patch={"metadata": {"labels": {"tier": tier}}})
        await self.clock.sleep(0.1)

    def counts(self) -> tuple[int, int, int]:
        """How many work, are refused, and start."""
        counts = self.namespaces.counts()
        return counts["working"], counts["refused"], counts["starting"]


class Mirror:
    """A follower with a cache of the ConfigMaps of each namespace."""

    def __init__(self, world: World, name: str = "mirror") -> None:
        self.name = name
        self._world = world
        self._held: dict[str, Informer] = {}
        for namespace in world.namespaces.now:
            self._held[namespace] = world.cache.acquire(CONFIG_MAP, namespace=namespace)
        world.namespaces.follow(self)

    def begin(self, namespace: str) -> None:
        self._world.story.append(f"{self.name} begins {namespace}")
        self._held[namespace] = self._world.cache.acquire(CONFIG_MAP, namespace=namespace)

    def end(self, namespace: str) -> None:
        self._world.story.append(f"{self.name} ends {namespace}")
        self._world.cache.release(self._held.pop(namespace))


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def lived(rule: NamespaceRule, play: Callable[[World], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with ApiServer(ApiServerOptions(listen=False), clock=clock) as server:
            await play(World(rule, server, clock))

    clock.run(main)


def test_namespaces_with_names_are_in_scope_from_the_start_and_nobody_asks_for_them() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        world.hanging.add(maps("b"))
        assert world.namespaces.now == ("a", "b")
        assert world.namespaces.in_scope is None
        assert await world.namespaces.listed() == ("a", "b")
        async with world.running():
            await world.clock.sleep(1)
            assert world.counts() == (1, 0, 1)
            assert not world.namespaces.opened.is_set(), "b may still come"
            await world.namespaces.opened.wait()
            assert world.clock.monotonic() == 10, "but not for longer"
            assert world.namespaces.excused() == frozenset(), "what was named is waited for all the same"
        assert {*world.asked} == {maps("a"), maps("b")}
        assert not world.story, "it knew them by `now`"

    lived(NamespaceRule(names=("a", "b")), play)


def test_where_everything_is_in_scope_nothing_is_counted_and_all_is_known() -> None:
    async def play(world: World) -> None:
        assert world.namespaces.counts() == {}
        assert world.namespaces.in_scope is None
        async with world.running():
            with anyio.fail_after(0.1):
                await world.namespaces.opened.wait()

    lived(NamespaceRule(), play)


def test_who_follows_first_is_told_first_of_a_beginning_and_last_of_an_end_and_who_left_nothing() -> None:
    async def play(world: World) -> None:
        _, left, _ = (Mirror(world, name) for name in ("first", "left", "last"))
        await world.make("a")
        await world.make("out", tier="test")
        async with world.running():
            await world.clock.sleep(0.5)
            assert world.story == ["first begins a", "left begins a", "last begins a"]
            in_scope = world.namespaces.in_scope
            assert in_scope is not None
            assert [in_scope(Request(name, "x")) for name in ("a", "b", "out", "")] == [True, False, False, True]
            world.namespaces.leave(left)
            world.namespaces.leave(left)
            world.story.clear()
            await world.make("b")
            await world.move("a", "test")
            assert world.story == ["first begins b", "last begins b", "last ends a", "first ends a"]
            assert world.namespaces.now == ("b",)
            assert [in_scope(Request(name, "x")) for name in ("a", "b")] == [False, True]
            left.end("a")

    lived(PROD, play)


def test_a_list_over_the_whole_scope_waits_two_seconds_to_know_it_and_then_says_why_it_does_not() -> None:
    async def play(world: World) -> None:
        world.hanging.add("/api/v1/namespaces")
        with pytest.raises(RequestTimeout, match=r"labelled tier=prod\) is not known yet: their list has not come"):
            await world.namespaces.listed()
        assert world.clock.monotonic() == 2
        world.hanging.clear()
        world.forbidden.add("/api/v1/namespaces")
        async with world.running():
            with pytest.raises(RequestTimeout, match=r"is not known yet: 403 Forbidden: a fault of the test"):
                await world.namespaces.listed()
            world.forbidden.clear()
            await world.make("a", "b")
            await world.clock.sleep(LONG)
            assert await world.namespaces.listed() == ("a", "b")

    lived(PROD, play)


def test_a_list_over_the_whole_scope_goes_on_as_soon_as_it_is_known() -> None:
    async def play(world: World) -> None:
        await world.make("a")
        async with world.running():
            before = world.clock.monotonic()
            assert await world.namespaces.listed() == ("a",)
            assert world.clock.monotonic() < before + 1
            assert "PartialObjectMetadata" in world.accepted["/api/v1/namespaces"], "a name and labels are enough"

    lived(PROD, play)


def test_eight_namespaces_begin_at_a_time_and_one_that_hangs_makes_room_after_ten_seconds() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        names = [f"n{number}" for number in range(10)]
        world.hanging |= {maps(name) for name in names[:8]}
        await world.make(*names)
        async with world.running():
            await world.clock.sleep(9)
            assert world.namespaces.now == tuple(names[:8])
            assert world.counts() == (0, 0, 10)
            assert not world.namespaces.opened.is_set()
            await world.clock.sleep(2)
            assert world.namespaces.now == tuple(names)
            assert world.counts() == (2, 0, 8)
            assert world.namespaces.opened.is_set(), "each was tried"

    lived(PROD, play)


def test_where_no_namespace_matches_the_scope_is_known_too() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        async with world.running():
            await world.namespaces.opened.wait()
            assert world.clock.monotonic() < 1
            assert await world.namespaces.listed() == ()
            assert world.counts() == (0, 0, 0)

    lived(PROD, play)


def test_a_namespace_that_is_refused_keeps_nobody_waiting_unless_all_are_and_joins_when_it_may() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        await world.make("a", "b")
        world.forbidden |= {maps("a"), maps("b")}
        async with world.running():
            await world.namespaces.opened.wait()
            assert world.counts() == (0, 2, 0)
            assert world.namespaces.excused() == frozenset(), "somebody has to notice"
            world.forbidden.discard(maps("b"))
            await world.clock.sleep(LONG)
            assert world.counts() == (1, 1, 0)
            assert world.namespaces.excused() == {"a"}
            world.forbidden.clear()
            await world.clock.sleep(LONG)
            assert world.counts() == (2, 0, 0)
            assert world.namespaces.excused() == frozenset()

    lived(PROD, play)


def test_one_that_comes_late_is_waited_for_from_when_it_was_in_sync_once_and_anew_when_it_comes_again() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        await world.make("a")
        async with world.running():
            await world.namespaces.opened.wait()
            world.hanging.add(maps("late"))
            await world.make("late")
            await world.clock.sleep(1)
            assert world.namespaces.excused() == {"late"}
            assert world.counts() == (1, 0, 1)
            world.hanging.clear()
            await world.move("late", "test")
            await world.move("late", "prod")
            assert world.counts() == (2, 0, 0)
            assert world.namespaces.excused() == frozenset()
            for name in ("a", "late"):
                await world.move(name, "test")
                world.hanging.add(maps(name))
                await world.move(name, "prod")
            await world.clock.sleep(LONG)
            assert world.namespaces.now == ("a", "late")
            assert world.namespaces.excused() == {"a", "late"}, "each is a new one"

    lived(PROD, play)


def test_other_tasks_have_a_turn_between_two_namespaces() -> None:
    async def play(world: World) -> None:
        turn, seen = 0, list[int]()

        class Noting:
            def begin(self, namespace: str) -> None:
                seen.append(turn)

            end = begin

        async def turns(told: int) -> None:
            nonlocal turn
            while len(seen) < told:
                turn += 1
                await asyncio.sleep(0)

        world.namespaces.follow(Noting())
        await world.make("a", "b", "c")
        async with world.running():
            await world.namespaces.opened.wait()
            [informer] = world.cache.informers
            records = [record for name in "abc" if (record := informer.store.get(ObjectKey("", name))) is not None]
            for told, word in ((6, "DELETED"), (9, "ADDED")):
                for record in records:
                    informer.changed(word, record)
                await turns(told)
                assert len({*seen[-3:]}) == 3

    lived(PROD, play)


def test_nothing_goes_on_for_a_namespace_that_has_gone() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        async with world.running():
            await world.namespaces.opened.wait()
            before = len(asyncio.all_tasks())
            world.hanging.add(maps("a"))
            await world.make("a")
            await world.clock.sleep(1)
            await world.move("a", "test")
            assert len(asyncio.all_tasks()) == before

    lived(PROD, play)


def test_who_waits_for_the_scope_to_settle_waits_anew_whenever_it_changes() -> None:
    async def play(world: World) -> None:
        Mirror(world)
        waits: list[tuple[frozenset[str], tuple[str, ...]]] = []
        settled = anyio.Event()

        async def wait(excused: frozenset[str]) -> None:
            waits.append((excused, world.namespaces.now))
            await settled.wait()

        over: list[float] = []

        async def waiter() -> None:
            await world.namespaces.wait_settled(wait)
            over.append(world.clock.monotonic())

        await world.make("a")
        async with world.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(waiter)
            await world.clock.sleep(0.001)
            assert not waits, "it does not know the scope"
            await world.clock.sleep(1)
            assert waits[-1:] == [(frozenset(), ("a",))]
            world.hanging.add(maps("b"))
            await world.make("b")
            await world.clock.sleep(1)
            assert waits[-1:] == [(frozenset({"b"}), ("a", "b"))]
            await world.clock.sleep(100)
            assert not over
            seen = len(waits)
            settled.set()
            await world.clock.sleep(0.1)
            assert len(over) == 1
            assert len(waits) == seen

    lived(PROD, play)


def test_what_begins_and_ends_is_told_in_lines_at_least_a_second_apart(caplog: pytest.LogCaptureFixture) -> None:
    def told() -> list[str]:
        found = [record.getMessage() for record in caplog.records if record.name == "kopylite.manager"]
        caplog.clear()
        return found

    async def play(world: World) -> None:
        await world.make("a")
        async with world.running():
            await world.clock.sleep(0.5)
            assert told() == ["in scope now: a"]
            await world.make("b")
            await world.make("c")
            await world.move("a", "test")
            assert told() == []
            await world.clock.sleep(1)
            assert told() == ["not in scope any more, and let go: a", "in scope now: b, c"]
            await world.clock.sleep(LONG)
            await world.make("d")
            await world.clock.sleep(0.1)
            assert told() == ["in scope now: d"], "at once, after a pause"
            await world.clock.sleep(LONG)
            assert told() == []

    with caplog.at_level(logging.INFO, "kopylite.manager"):
        lived(PROD, play)
