from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

from kopylite.cache import SharedCache
from kopylite.client.config import ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.objects import Kind, ObjectKey
from kopylite.reconcile import Request
from kopylite.reconcile.chains import ChangeReason
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import (
    LOW_PRIORITY,
    NORMAL_PRIORITY,
    ChannelSource,
    EnqueueMapped,
    EnqueueObject,
    Event,
    EventType,
    KindSource,
    PeriodicSource,
    predicate,
)
from tests.chaos.faultserver import FaultServer

THING = Kind("example.com/v1", "Thing")


class Asked:
    """Remembers what was asked for, and lets a test wait for it."""

    def __init__(self) -> None:
        self.asks: list[tuple[Request, str, int]] = []
        self._more = asyncio.Event()

    def __call__(self, request: Request, reason: str, priority: int) -> None:
        self.asks.append((request, reason, priority))
        self._more.set()

    @property
    def names(self) -> list[str]:
        return [request.name for request, _, _ in self.asks]

    async def count(self, number: int) -> None:
        with anyio.fail_after(5):
            while len(self.asks) < number:
                await self._more.wait()
                self._more.clear()


async def with_cache(scenario: Callable[[FaultServer, SharedCache, anyio.abc.TaskGroup], Awaitable[None]]) -> None:
    server = FaultServer()
    server.put("a", x=1)
    async with server.running(), HttpTransport(ClientConfig(server=server.url)) as transport:
        cache = SharedCache(transport, Resources(transport))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            await scenario(server, cache, tasks)
            tasks.cancel_scope.cancel()


async def test_a_kind_source_asks_for_what_exists_and_then_for_what_changes() -> None:
    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked, source = Asked(), KindSource(cache, THING, EnqueueObject())
        assert source.name == "Thing.example.com/v1"
        assert not source.synced
        tasks.start_soon(source.run, asked)
        with anyio.fail_after(5):
            await source.wait_synced()
        assert source.synced
        assert asked.asks == [(Request("ns", "a"), "Thing created", LOW_PRIORITY)]
        server.put("b")
        server.delete("a")
        await asked.count(3)
        assert asked.asks[1:] == [(Request("ns", "b"), "Thing created", 0), (Request("ns", "a"), "Thing deleted", 0)]

    await with_cache(scenario)


async def test_a_source_that_has_ended_is_told_nothing_while_another_shares_its_informer() -> None:
    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked, others, ending = Asked(), Asked(), anyio.CancelScope()
        # Narrowed, and nobody reads: no echoes are to be waited for.
        source, other = (KindSource(cache, THING, EnqueueObject(), metadata_only=True) for _ in range(2))
        assert source.informer is other.informer

        async def run() -> None:
            with ending:
                await source.run(asked)

        tasks.start_soon(run)
        tasks.start_soon(other.run, others)
        await asked.count(1)
        ending.cancel()
        await anyio.wait_all_tasks_blocked()
        server.put("b")
        await others.count(2)
        assert (asked.names, others.names) == (["a"], ["a", "b"])

    await with_cache(scenario)


async def test_a_predicate_drops_events_and_one_that_fails_drops_none(caplog: pytest.LogCaptureFixture) -> None:
    @predicate
    def not_b(event: Event) -> bool:
        if event.record.name == "broken":
            raise RuntimeError("oops")
        return event.record.name != "b"

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked = Asked()
        tasks.start_soon(KindSource(cache, THING, EnqueueObject(), predicate=not_b).run, asked)
        for name in ("b", "broken", "c"):
            server.put(name)
        await asked.count(3)
        assert asked.names == ["a", "broken", "c"]

    with caplog.at_level(logging.ERROR):
        await with_cache(scenario)
    assert "ns/broken" in caplog.text


@pytest.mark.parametrize("broken", [ValueError("ambiguous"), SystemExit(1), asyncio.CancelledError()])
async def test_an_answer_of_a_predicate_that_has_no_truth_loses_no_event(
    broken: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Unclear:
        def __bool__(self) -> bool:
            raise broken

    def unclear(event: Event) -> bool:
        return Unclear()  # type: ignore[return-value]

    async def forgets(event: Event) -> bool:
        return False

    hidden: Callable[[Event], bool] = lambda event: forgets(event)  # type: ignore[assignment,return-value]  # noqa: E731

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        for judge in (unclear, hidden):
            asked = Asked()
            tasks.start_soon(KindSource(cache, THING, EnqueueObject(), predicate=predicate(judge)).run, asked)
            await asked.count(1)

    await with_cache(scenario)
    assert "predicate unclear failed" in caplog.text
    assert "a predicate has to be a plain function" in caplog.text


async def test_two_sources_share_an_informer_until_both_are_closed() -> None:
    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        one, two = KindSource(cache, THING, EnqueueObject()), KindSource(cache, THING, EnqueueObject())
        first, second = Asked(), Asked()
        async with anyio.create_task_group() as running:
            running.start_soon(one.run, first)
            await first.count(1)
            running.start_soon(two.run, second)
            await second.count(1)
            running.cancel_scope.cancel()
        server.put("b")
        assert one.informer is two.informer
        one.close()
        assert cache.store_for(THING, "") is not None, "reads stay cached until the last user is gone"
        two.close()
        assert cache.store_for(THING, "") is None
        assert first.names == ["a"], "a source that was stopped asks for nothing more"

    await with_cache(scenario)


async def test_a_kind_source_runs_its_map_function_in_the_background() -> None:
    async def everybody(record: object) -> list[Request]:
        return [Request("ns", "x"), Request("ns", "y")]

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked = Asked()
        tasks.start_soon(KindSource(cache, THING, EnqueueMapped(everybody)).run, asked)
        await asked.count(2)
        assert asked.names == ["x", "y"]
        assert asked.asks[0][1] == "Thing ns/a created via everybody"

    await with_cache(scenario)


async def test_a_source_asks_only_for_the_keys_that_are_admitted_whoever_asks() -> None:
    async def two(record: object) -> list[Request]:
        return [Request("ns", "mine"), Request("ns", "theirs")]

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        server.put("mine")
        for handler in (EnqueueObject(), EnqueueMapped(two)):
            asked, source = Asked(), KindSource(cache, THING, handler, namespace="ns")
            source.admits = lambda request: request.name == "mine"
            assert source.namespace == "ns"
            tasks.start_soon(source.run, asked)
            await asked.count(1)
            await source.wait_synced()
            assert set(asked.names) == {"mine"}

    await with_cache(scenario)


async def test_a_change_is_known_by_the_state_that_it_led_to_and_what_is_no_change_is_not() -> None:
    """The diagnosis of hot loops compares it with what the process wrote itself."""

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked = Asked()
        tasks.start_soon(KindSource(cache, THING, EnqueueObject()).run, asked)
        await asked.count(1)
        server.put("a", x=2)
        server.delete("a")
        await asked.count(3)
        initial, changed, deleted = (reason for _, reason, _ in asked.asks)
        assert isinstance(changed, ChangeReason)
        assert changed.to.uid
        assert changed.to.version.isdigit()
        assert not isinstance(initial, ChangeReason)
        assert not isinstance(deleted, ChangeReason)

    await with_cache(scenario)


async def test_what_is_asked_for_by_hand_runs_the_object_though_its_predicate_drops_the_change() -> None:
    """As the annotation that asks for a run does; what was never meant to come still does not."""

    @predicate
    def only_new_ones_but_b(event: Event) -> bool:
        return event.type is EventType.CREATE and event.record.name != "b"

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked, source = Asked(), KindSource(cache, THING, EnqueueObject(), predicate=only_new_ones_but_b)
        source.asks = lambda event: "by hand" if event.type is not EventType.CREATE else ""
        server.put("b", x=1)
        tasks.start_soon(source.run, asked)
        await asked.count(1)
        server.put("b", x=2)
        server.put("a", x=2)
        server.delete("a")
        server.put("last")
        await asked.count(4)
        assert [(request.name, reason) for request, reason, _ in asked.asks] == [
            ("a", "Thing created"), ("a", "Thing updated"), ("a", "by hand"), ("last", "Thing created"),
        ]  # fmt: skip
        assert asked.asks[2][2] == NORMAL_PRIORITY

    await with_cache(scenario)


def test_a_channel_that_breaks_is_opened_again_and_one_that_ends_ends_the_source(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, opened = VirtualClock(), 0

    async def channel() -> AsyncIterator[ObjectKey]:
        nonlocal opened
        opened += 1
        yield ObjectKey("ns", f"k{opened}")
        if opened < 3:
            raise ConnectionError("gone")

    async def main() -> None:
        asked, source = Asked(), ChannelSource(channel, name="orders", clock=clock)
        assert source.synced
        await source.wait_synced()
        await source.run(asked)
        assert asked.names == ["k1", "k2", "k3"]
        assert asked.asks[0][1] == f"{EventType.GENERIC.value} by orders"

    clock.run(main)
    assert clock.monotonic() > 1.5, "it waits before it opens the channel again"
    assert "channel orders failed on its stream" in caplog.text
    assert "channel orders has ended: it brings no more keys" in caplog.text


def test_a_timer_asks_again_and_again_and_survives_a_round_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    clock, rounds = VirtualClock(), 0

    async def keys() -> list[ObjectKey]:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise ConnectionError("no list today")
        return [ObjectKey("ns", "a"), ObjectKey("ns", "b")]

    async def main() -> None:
        asked, source = Asked(), PeriodicSource(60, keys, name="hourly", clock=clock)
        assert source.synced
        await source.wait_synced()
        with anyio.move_on_after(60 * 10):
            await source.run(asked)
        assert 9 <= rounds <= 11
        assert len(asked.asks) == (rounds - 1) * 2
        assert asked.asks[0] == (Request("ns", "a"), "hourly", LOW_PRIORITY)

    clock.run(main)
    assert "no list today" in caplog.text


def test_a_timer_needs_time() -> None:
    async def keys() -> list[ObjectKey]:
        return []

    with pytest.raises(ValueError, match="above 0"):
        PeriodicSource(0, keys)


def test_a_round_that_hangs_or_gives_something_odd_is_repeated_and_not_left_out() -> None:
    clock, results, moments = VirtualClock(), list[str](), list[float]()

    async def keys() -> list[ObjectKey]:
        moments.append(clock.monotonic())
        if len(moments) == 1:
            await anyio.sleep_forever()
        if len(moments) == 2:
            return None  # type: ignore[return-value]
        return [ObjectKey("ns", "a")]

    async def main() -> None:
        asked, source = Asked(), PeriodicSource(3600, keys, clock=clock, timeout=30.0, observe=results.append)
        with anyio.move_on_after(4200):
            await source.run(asked)
        assert asked.names == ["a"]

    clock.run(main)
    assert results == ["timeout", "error", "success"]
    assert moments[2] - moments[0] < 40.0


def test_a_channel_whose_key_is_none_is_closed_before_it_is_opened_again() -> None:
    clock, story = VirtualClock(), []

    async def channel() -> AsyncIterator[Any]:
        story.append("opened")
        try:
            if len(story) == 1:
                yield "not a key"
        finally:
            story.append("closed")

    async def main() -> None:
        kept = []  # as a traceback or a debugger keeps it

        def opened() -> AsyncIterator[Any]:
            kept.append(channel())
            return kept[-1]

        await ChannelSource(opened, clock=clock).run(Asked())

    clock.run(main)
    assert story == ["opened", "closed", "opened", "closed"]


def test_a_channel_that_brought_something_is_opened_again_soon_however_often_it_breaks() -> None:
    clock, opened = VirtualClock(), 0

    async def channel() -> AsyncIterator[ObjectKey]:
        nonlocal opened
        opened += 1
        yield ObjectKey("ns", f"k{opened}")
        if opened < 7:
            raise ConnectionError("gone")

    async def main() -> None:
        await ChannelSource(channel, clock=clock).run(Asked())

    clock.run(main)
    assert clock.monotonic() <= 6.0


def test_a_round_that_fails_again_and_again_is_asked_for_ever_more_rarely_and_can_be_seen() -> None:
    clock, moments = VirtualClock(), list[float]()

    async def keys() -> list[ObjectKey]:
        moments.append(clock.monotonic())
        await anyio.sleep(1)
        raise ConnectionError("no list today")

    async def main() -> None:
        source = PeriodicSource(0.5, keys, clock=clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.run, Asked())
            await anyio.sleep(1.2)
            [call] = source.active_calls()
            assert call.name == "timer"
            assert source.active_calls(longer_than=5) == []
            await anyio.sleep(600)
            tasks.cancel_scope.cancel()

    clock.run(main)
    pauses = [after - before - 1 for before, after in itertools.pairwise(moments)]
    assert 0.45 <= moments[0] <= 0.55
    assert 0.7 < pauses[0] <= 1.0
    assert all(pause > 1.2 * earlier for earlier, pause in itertools.pairwise(pauses[:6]))
    assert all(40 < pause <= 60 for pause in pauses[6:])


async def test_a_handler_that_has_to_know_something_is_told_of_nothing_before() -> None:
    class Late(EnqueueObject):
        def __init__(self) -> None:
            self.known = anyio.Event()

        async def prepare(self) -> None:
            await self.known.wait()

    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        asked, late = Asked(), Late()
        source = KindSource(cache, THING, late)
        tasks.start_soon(source.run, asked)
        with anyio.fail_after(5):
            await source.informer.wait_synced()
        assert asked.asks == []
        assert not source.synced
        late.known.set()
        with anyio.fail_after(5):
            await source.wait_synced()
        assert asked.names == ["a"]

    await with_cache(scenario)


async def test_only_a_map_function_has_calls_that_take_long() -> None:
    async def scenario(server: FaultServer, cache: SharedCache, tasks: anyio.abc.TaskGroup) -> None:
        hangs = anyio.Event()

        async def map_function(thing: Any) -> list[Request]:
            hangs.set()
            await anyio.sleep_forever()
            return []

        plain, mapped = KindSource(cache, THING, EnqueueObject()), KindSource(cache, THING, EnqueueMapped(map_function))
        assert (plain.active_calls(), mapped.active_calls()) == ([], [])
        tasks.start_soon(mapped.run, Asked())
        with anyio.fail_after(5):
            await hangs.wait()
        assert len(mapped.active_calls()) == 1
        assert mapped.active_calls(longer_than=3600.0) == []

    await with_cache(scenario)


class EvenClock(VirtualClock):
    """Chance is always the same."""

    chance = 0.0

    def random(self) -> float:
        return self.chance


def test_a_channel_that_keeps_breaking_is_opened_more_and_more_rarely() -> None:
    clock, opened = EvenClock(), list[float]()

    def broken() -> AsyncIterator[Request]:
        opened.append(clock.monotonic())
        raise RuntimeError("oops")

    async def main() -> None:
        with anyio.move_on_after(200):
            await ChannelSource(broken, clock=clock).run(Asked())

    clock.run(main)
    pauses = [later - earlier for earlier, later in itertools.pairwise(opened)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 9.0), (0.5, 10.0), (0.99, 10.98)])
def test_the_pause_between_two_rounds_is_a_tenth_shorter_or_longer(chance: float, pause: float) -> None:
    clock, rounds = EvenClock(), list[float]()
    clock.chance = chance

    async def keys() -> list[Request]:
        rounds.append(clock.monotonic())
        return []

    async def main() -> None:
        with anyio.move_on_after(40):
            await PeriodicSource(10.0, keys, clock=clock).run(Asked())

    clock.run(main)
    assert rounds == pytest.approx([pause * turn for turn in range(1, len(rounds) + 1)])
    assert len(rounds) >= 3
