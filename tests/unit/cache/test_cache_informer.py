"""Handlers of an Informer. What its stream does is in tests/chaos/test_cache_faults.py."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from kopylite.cache import Delta, Informer, Scope
from kopylite.cache.informer import BATCH, SAME_TROUBLE, UNSYNCED_AFTER
from kopylite.cache.part import ShardPart
from kopylite.cache.steps import Replacement
from kopylite.client.listwatch import ListWatch
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import ConnectionFailed, Forbidden
from kopylite.objects import GroupKind, Kind, ObjectKey, Shard
from kopylite.observers import InformerObserver
from kopylite.testing import VirtualClock
from tests.unit.cache.things import spaces, thing


async def unreachable(again: bool) -> ListWatch:
    raise ConnectionFailed("there is no server in this test")


def new_informer(clock: Clock = SYSTEM_CLOCK) -> Informer:
    scope = Scope(Kind("example.com/v1", "Thing"))
    return Informer(scope, unreachable, clock=clock, observer=InformerObserver(), unstreamed=set())


@asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await anyio.lowlevel.checkpoint()
        yield
        tasks.cancel_scope.cancel()


def names(deltas: list[Delta]) -> list[str]:
    return [(delta.new or delta.old).name for delta in deltas]  # type: ignore[union-attr]


async def first_state(informer: Informer, count: int) -> None:
    """Give it a state, as its reflector would."""
    records = [thing(f"t{number}") for number in range(count)]
    await informer.replace(Replacement(spaces(records), "1", True))


async def test_every_handler_hears_everything_in_order_and_the_store_knows_it_first() -> None:
    informer = new_informer()
    first: list[Delta] = []
    second: list[bool] = []
    informer.add_handler(first.append)
    informer.add_handler(
        lambda delta: second.append(delta.new is None or informer.store.get(delta.new.key) is delta.new)
    )
    for word, record in (("ADDED", thing("a", 1)), ("MODIFIED", thing("a", 2)), ("DELETED", thing("a", 3))):
        informer.changed(word, record)
    assert [(d.old and d.old.resource_version, d.new and d.new.resource_version) for d in first] == [
        (None, "1"), ("1", "2"), ("3", None),
    ]  # fmt: skip
    assert second == [True, True, True]


async def test_a_handler_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    informer = new_informer()
    told: list[Delta] = []

    def broken(delta: Delta) -> None:
        raise RuntimeError("oops")

    informer.add_handler(broken)
    informer.add_handler(told.append)
    with caplog.at_level(logging.ERROR):
        informer.changed("ADDED", thing("a"))
        informer.changed("DELETED", thing("a"))
    assert names(told) == ["a", "a"]
    assert "oops" in caplog.text
    assert caplog.text.count("a handler failed on Record(ns/a,") == 2, "an object that came, and one that went"


async def test_a_late_handler_is_told_of_what_is_there_as_initial_creates() -> None:
    informer = new_informer()
    async with running(informer):
        await first_state(informer, BATCH * 2 + 1)
        told: list[Delta] = []
        handle = informer.add_handler(told.append)
        assert not handle.synced
        with anyio.fail_after(5):
            await handle.wait_synced()
        assert len(told) == BATCH * 2 + 1
        assert all(delta.old is None and delta.initial for delta in told)


async def test_a_late_handler_has_been_told_at_once_where_there_is_nothing_to_tell() -> None:
    informer = new_informer()
    async with running(informer):
        assert not informer.add_handler(lambda delta: None).synced, "nobody knows yet what there is"
        await first_state(informer, 0)
        assert informer.add_handler(lambda delta: None).synced


async def test_a_late_handler_that_goes_is_told_of_nothing_more() -> None:
    informer = new_informer()
    async with running(informer):
        await first_state(informer, 3)
        told: list[Delta] = []

        def once(delta: Delta) -> None:
            told.append(delta)
            informer.remove_handler(handle)

        handle = informer.add_handler(once)
        with anyio.fail_after(5):
            await informer.add_handler(lambda delta: None).wait_synced()
        assert names(told) == ["t0"]


async def test_a_list_is_taken_in_and_told_of_with_a_turn_for_others_after_each_batch() -> None:
    informer, turns = new_informer(), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with running(informer), anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        await anyio.lowlevel.checkpoint()
        before = turns
        await first_state(informer, BATCH * 3 + 1)
        assert 3 <= turns - before <= 6
        before = turns
        await informer.add_handler(lambda delta: None).wait_synced()
        assert 4 <= turns - before <= 8
        tasks.cancel_scope.cancel()


async def test_a_late_handler_hears_of_each_object_in_order_though_changes_come_in_between() -> None:
    informer = new_informer()
    async with running(informer):
        await first_state(informer, 3)
        told: list[Delta] = []
        handle = informer.add_handler(told.append)
        informer.changed("MODIFIED", thing("t0", 5))
        informer.changed("DELETED", thing("t1", 6))
        informer.changed("ADDED", thing("new", 7))
        with anyio.fail_after(5):
            await handle.wait_synced()
        assert names(told) == ["t0", "new", "t2"]
        assert [delta.initial for delta in told] == [True, False, True]
        assert told[0].old is None
        assert told[0].new is not None
        assert told[0].new.resource_version == "5"


async def test_a_handler_that_was_there_before_the_first_state_has_been_told_when_that_is_there() -> None:
    informer = new_informer()
    handle = informer.add_handler(lambda delta: None)
    assert not handle.synced
    await first_state(informer, 2)
    assert handle.synced


async def test_a_removed_handler_hears_nothing_more() -> None:
    informer = new_informer()
    async with running(informer):
        await first_state(informer, 3)
        told: list[Delta] = []
        handle = informer.add_handler(told.append)
        informer.remove_handler(handle)
        informer.remove_handler(handle)
        informer.changed("ADDED", thing("new", 7))
        await anyio.sleep(0.01)
        assert told == []


async def test_a_handler_may_remove_itself_without_hiding_an_event_from_others() -> None:
    informer = new_informer()
    told: list[Delta] = []
    once = informer.add_handler(lambda delta: informer.remove_handler(once))
    informer.add_handler(told.append)
    informer.changed("ADDED", thing("a"))
    informer.changed("ADDED", thing("b"))
    assert names(told) == ["a", "b"]


async def test_statistics_say_what_is_there_and_what_is_wrong() -> None:
    informer = new_informer()
    async with running(informer):
        with anyio.fail_after(5):
            while informer.problem is None:  # noqa: ASYNC110  (it has no event)
                await anyio.sleep(0.001)
        statistics = informer.statistics()
        assert statistics.problem == "ConnectionFailed: there is no server in this test"
        assert not statistics.synced
        assert statistics.last_event_age is None
        await first_state(informer, 4)
        statistics = informer.statistics()
        assert (statistics.objects, statistics.handlers, statistics.synced) == (4, 0, True)
        assert statistics.body_bytes == sum(len(record.body) for record in informer.store.list())
        assert statistics.last_event_age is not None


def test_how_long_ago_something_came_is_told_and_a_bookmark_counts_as_an_event() -> None:
    clock, scope = VirtualClock(), Scope(Kind("example.com/v1", "Thing"))
    informer = Informer(scope, unreachable, clock=clock, observer=InformerObserver(), unstreamed=set())

    def ages() -> tuple[float | None, float | None]:
        now = informer.statistics()
        return now.last_byte_age, now.last_event_age

    clock.advance(10)
    assert ages() == (None, None)
    informer._state.heard = clock.monotonic()  # as the reflector does
    clock.advance(5)
    assert ages() == (5, None), "bytes that were no event"
    informer.advanced("7")
    clock.advance(2)
    assert ages() == (7, 7), "it came with the bytes"
    assert informer.statistics().version == "7"


async def test_a_watch_that_has_not_worked_for_a_minute_is_not_in_sync_and_says_since_when() -> None:
    clock = VirtualClock()
    informer = new_informer(clock)
    await first_state(informer, 1)
    assert (informer.statistics().problem_age, informer.synced) == (0.0, True)
    clock.advance(1000)
    informer._state.failed(ConnectionFailed("away"), clock.monotonic(), 0.5)  # as the reflector does
    for passed, synced in ((UNSYNCED_AFTER, True), (1, False)):
        clock.advance(passed)
        assert informer.synced is synced
    assert informer.statistics().problem_age == UNSYNCED_AFTER + 1


def test_the_same_trouble_is_news_again_when_it_may_have_another_cause() -> None:
    clock, news = VirtualClock(), []
    informer = new_informer(clock)
    clock.advance(1000)
    for passed in (0, SAME_TROUBLE / 2, SAME_TROUBLE / 2, SAME_TROUBLE - 1):
        clock.advance(passed)
        news.append(informer._is_news(ConnectionFailed("away")))
    assert news == [True, False, True, False]


def test_reads_rely_on_a_cache_only_that_leaves_nothing_out() -> None:
    kind = Kind("example.com/v1", "Thing")
    part = ShardPart(Shard(0, 2))
    assert Scope(kind).whole
    assert Scope(kind, "ns").whole, "it is all of its namespace"
    for narrowed in ({"labels": "a=b"}, {"fields": "metadata.name=a"}, {"metadata_only": True}, {"part": part}):
        assert not Scope(kind, "ns", **narrowed).whole


def test_a_scope_is_named_by_all_that_narrows_it() -> None:
    kind = Kind("example.com/v1", "Thing")
    assert str(Scope(kind)) == str(kind)
    assert str(Scope(kind, "ns", "a=b", "c=d")) == f"{kind} namespace ns a=b c=d"
    part = ShardPart(Shard(0, 2), GroupKind("example.com", "Owner"))
    assert str(Scope(kind, part=part)) == f"{kind} {part}"
    assert "owned by Owner of shard" in str(part)


async def test_a_whole_state_is_as_new_as_the_list_that_brought_it_and_wakes_who_waits_for_that() -> None:
    informer = new_informer()
    woken: list[bool] = []

    async def reader() -> None:
        woken.append(await informer.store.wait_newer(ObjectKey("ns", "t0"), "50", 60))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader)
            await anyio.lowlevel.checkpoint()
            await informer.replace(Replacement(spaces([thing("t0", 7)]), "50", True))
    assert woken == [True]
    assert (informer.store.newest(), informer.statistics().version) == ("50", "50")


async def test_a_kind_that_goes_is_waited_for_anew_and_its_objects_are_deleted() -> None:
    informer = new_informer()
    told: list[Delta] = []
    informer.add_handler(told.append)
    await first_state(informer, 1)
    await informer.replace(Replacement({}, "", False, gone=True))
    assert not informer.has_state
    assert [delta.new is None for delta in told] == [False, True]
    with anyio.move_on_after(0) as waiting:
        await informer.wait_synced()
    assert waiting.cancelled_caught
    await first_state(informer, 1)
    await informer.wait_synced()


async def test_who_waits_for_a_try_is_woken_by_its_failure_and_by_its_success() -> None:
    for happens in ("failure", "success"):
        informer = new_informer()
        with anyio.move_on_after(0) as waiting:
            await informer.wait_tried()
        assert waiting.cancelled_caught
        if happens == "failure":
            informer.failed()
        else:
            await first_state(informer, 1)
        await informer.wait_tried()
        assert informer.has_state is (happens == "success")


async def test_what_leaves_the_part_is_deleted_and_what_enters_it_is_new() -> None:
    shard = Shard(0, 2)
    uids = {shard.holds(uid): uid for uid in (f"{number}-of-some-length" for number in range(99))}
    scope = Scope(Kind("example.com/v1", "Thing"), part=ShardPart(shard))
    informer = Informer(scope, unreachable, clock=SYSTEM_CLOCK, observer=InformerObserver(), unstreamed=set())
    told: list[Delta] = []
    informer.add_handler(told.append)
    informer.changed("ADDED", thing("a", 1, uid=uids[True]))
    informer.changed("ADDED", thing("b", 2, uid=uids[False]))
    informer.changed("MODIFIED", thing("a", 3, uid=uids[False]))
    assert [(delta.old and delta.old.name, delta.new and delta.new.name) for delta in told] == [
        (None, "a"),
        ("a", None),
    ]
    assert (informer.wants(thing(uid=uids[True])), informer.wants(thing(uid=uids[False]))) == (True, False)
    assert new_informer().wants(thing(uid=uids[False])), "without a part everything is wanted"
    assert (informer.store.partial, new_informer().store.partial) == (True, False)


async def test_a_kind_that_is_not_streamed_is_remembered_for_all_informers() -> None:
    unstreamed: set[Kind] = {Kind("example.com/v1", "Thing")}
    scope = Scope(Kind("example.com/v1", "Thing"))
    informer = Informer(scope, unreachable, clock=SYSTEM_CLOCK, observer=InformerObserver(), unstreamed=unstreamed)
    await first_state(informer, 1)
    assert unstreamed == {scope.kind}
    other = Informer(
        Scope(Kind("v1", "Pod")), unreachable, clock=SYSTEM_CLOCK, observer=InformerObserver(), unstreamed=unstreamed
    )
    await first_state(other, 1)
    assert unstreamed == {scope.kind}


@pytest.mark.parametrize(
    ("error", "lines"), [(ConnectionFailed("away"), ["Thing"]), (Forbidden("no rule"), ["Thing", "Other"])]
)
def test_what_stops_many_informers_is_told_once(
    error: Exception, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is away is one trouble; what it refuses is one for each kind, whatever the namespaces."""
    clock = VirtualClock()
    told: dict[Hashable, float] = {}

    async def refused(again: bool) -> ListWatch:
        raise error

    async def main() -> None:
        with anyio.move_on_after(20):
            async with anyio.create_task_group() as tasks:
                for kind, namespace in (("Thing", "a"), ("Thing", "b"), ("Other", "a")):
                    scope = Scope(Kind("example.com/v1", kind), namespace)
                    informer = Informer(
                        scope, refused, clock=clock, observer=InformerObserver(), unstreamed=set(), told=told
                    )
                    tasks.start_soon(informer.run)

    clock.run(main)
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [next(word for word in ("Thing", "Other") if line.startswith(word)) for line in warned] == lines
