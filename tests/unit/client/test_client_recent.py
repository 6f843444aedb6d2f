from __future__ import annotations

import anyio
import pytest

from kopylite.client import recent
from kopylite.client.recent import LATE, MAX_AGE, RecentWrites
from kopylite.errors import ConnectionFailed
from kopylite.objects import Kind, ObjectKey
from kopylite.testing.clock import VirtualClock
from tests.unit.client.memcache import MemoryCache

CM = Kind("v1", "ConfigMap")
KEY = ObjectKey("shop", "a")


def obj(version: str, uid: str = "u", name: str = "a") -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version}}


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cache = MemoryCache(CM)
        self.store = self.cache.store
        self.server = "0"  # its version
        self.asked: list[str] = []
        self.answers = anyio.Event()  # the server answers when it is set
        self.answers.set()
        self.recent = RecentWrites(self.cache, self.clock, self.ask)

    async def ask(self, kind: Kind, key: ObjectKey) -> str:
        self.asked.append(str(key) if key.name else key.namespace)
        await self.answers.wait()
        if self.server == "away":
            raise ConnectionFailed("no")
        return self.server

    async def settled(self, key: ObjectKey = KEY) -> bool:
        return await self.recent.settled(CM, key, self.store)


async def test_what_is_not_cached_is_not_remembered() -> None:
    world = World()
    world.recent.written(Kind("v1", "Secret"), KEY, "u", "7")
    world.recent.deleted(Kind("v1", "Secret"), KEY, "u")
    assert not len(world.recent)


async def test_a_cache_that_is_ahead_of_the_answer_needs_no_memory() -> None:
    world = World()
    world.store.see(obj("7"))
    world.recent.written(CM, KEY, "u", "7")
    assert not len(world.recent)


async def test_a_read_waits_once_for_the_cache_and_then_is_told_to_ask_the_server() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.written(CM, KEY, "u", "7")
    assert not await world.settled()
    assert not await world.settled()
    assert world.store.waits == ["7"], "the second reader does not wait again"
    assert await world.settled(ObjectKey("shop", "other"))


async def test_an_entry_goes_when_the_cache_arrives() -> None:
    world = World()
    world.recent.written(CM, KEY, "u", "7")
    world.store.on_wait = lambda: world.store.see(obj("7"))
    assert await world.settled()
    assert not len(world.recent)


async def test_a_newer_event_of_another_object_confirms_too() -> None:
    world = World()
    world.recent.written(CM, KEY, "u", "7")
    world.store.see(obj("10", name="b"))
    assert await world.settled(), "events come in the order of versions"
    assert not len(world.recent)


async def test_an_older_answer_does_not_replace_a_newer_one() -> None:
    world = World()
    world.recent.written(CM, KEY, "u", "10")
    world.recent.written(CM, KEY, "u", "9")
    world.store.see(obj("9"))
    assert not await world.settled()


async def test_a_deleted_uid_is_not_shown_and_a_recreated_one_is() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.deleted(CM, KEY, "u")
    assert not await world.settled()
    world.store.see(obj("9", uid="new"))
    assert await world.settled()
    assert not len(world.recent)


async def test_a_cache_that_has_not_seen_the_creation_yet_does_not_end_the_memory_of_a_deletion() -> None:
    world = World()
    world.recent.written(CM, KEY, "u", "5")
    world.recent.deleted(CM, KEY, "u")
    assert await world.settled(), "not there: that is right"
    world.store.see(obj("5"))
    assert not await world.settled(), "the creation comes late: it is not shown"
    world.store.see_gone(KEY, "6")
    assert await world.settled()
    assert not len(world.recent)


async def test_a_deletion_of_unknown_version_is_remembered_for_ten_minutes() -> None:
    world = World()
    world.recent.deleted(CM, KEY, "u")
    assert await world.settled()
    assert len(world.recent)
    world.store.see(obj("5"))
    assert not await world.settled()
    world.store.see_gone(KEY, "6")
    world.clock.advance(MAX_AGE + 1)
    assert await world.settled()
    assert not len(world.recent)


async def test_an_older_object_of_the_name_is_not_shown_after_create_and_delete() -> None:
    world = World()
    world.store.see(obj("3", uid="old"))
    world.recent.written(CM, KEY, "u", "5")
    world.recent.deleted(CM, KEY, "u")
    assert not await world.settled()


async def test_a_write_that_no_cache_will_ever_confirm_is_given_up() -> None:
    world = World()
    world.recent.written(CM, KEY, "u", "1000")
    world.store.see(obj("7"))  # the server was restored from a backup
    assert not await world.settled()
    world.clock.advance(MAX_AGE + 1)
    assert await world.settled()
    assert not len(world.recent)


async def test_all_of_a_namespace_waits_for_each_write_in_it() -> None:
    world = World()
    world.recent.written(CM, KEY, "u", "7")
    assert await world.recent.all_settled(CM, "elsewhere", world.store)
    assert not await world.recent.all_settled(CM, "shop", world.store)
    assert not await world.recent.all_settled(CM, "", world.store)
    world.store.see(obj("7"))
    assert await world.recent.all_settled(CM, "", world.store)


async def test_confirmed_writes_that_nobody_reads_are_swept() -> None:
    world = World()
    for number in range(1, 5_000):
        world.recent.written(CM, ObjectKey("shop", f"n{number}"), "u", str(number))
        world.store.version = str(number)
    assert len(world.recent) < 2_000


async def test_memory_is_bounded_and_the_promise_holds_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_PENDING", 100)
    world = World()
    for number in range(1, 5_000):
        world.recent.written(CM, ObjectKey("shop", f"n{number}"), "u", str(number))
    assert len(world.recent) <= 2_000
    first = ObjectKey("shop", "n1")
    assert not await world.settled(first), "merged into one version that the cache must reach"
    assert not await world.recent.all_settled(CM, "elsewhere", world.store)
    world.store.version = "5000"
    assert await world.settled(first)


async def test_readers_that_come_while_one_waits_wait_with_it() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.written(CM, KEY, "u", "7")
    answers: list[bool] = []

    async def read() -> None:
        answers.append(await world.settled())

    def arrive_when_both_wait() -> None:
        if len(world.store.waits) == 2:
            world.store.see(obj("7"))

    world.store.on_wait = arrive_when_both_wait
    async with anyio.create_task_group() as readers:
        readers.start_soon(read)
        readers.start_soon(read)
    assert answers == [True, True]


@pytest.mark.parametrize("key", [ObjectKey("shop", ""), ObjectKey("", "")], ids=str)
async def test_what_nobody_knows_is_asked_of_the_server_once_and_believed_when_the_cache_is_there(
    key: ObjectKey,
) -> None:
    world = World()
    world.store.see(obj("5"))
    world.server = "8"
    world.recent.doubted(CM, key, late=False)
    assert not await world.recent.all_settled(CM, "shop", world.store)
    assert not await world.settled()
    assert world.asked == ["shop"]
    assert world.store.waits == [], "a bookmark may take a minute"
    world.store.version = "7"
    assert not await world.settled()
    world.store.version = "8"
    assert await world.settled()
    assert await world.recent.all_settled(CM, "", world.store)
    assert world.asked == ["shop"]
    assert not len(world.recent)


async def test_the_doubt_about_one_object_touches_no_other_and_a_read_of_it_solves_it() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.doubted(CM, KEY, late=False)
    assert await world.settled(ObjectKey("shop", "b"))
    assert not await world.settled()
    doubt = world.recent.doubt(CM, KEY)
    assert doubt is not None
    doubt.solve("6")
    assert not await world.settled()
    world.store.version = "6"
    assert await world.settled()
    assert world.asked == []


async def test_a_list_asks_for_the_one_object_that_is_in_doubt_and_waits_for_its_event() -> None:
    world = World()
    world.store.see(obj("5"))
    world.server = "8"
    world.recent.doubted(CM, KEY, late=False)
    world.store.on_wait = lambda: world.store.see(obj("8"))
    assert await world.recent.all_settled(CM, "shop", world.store)
    assert world.asked == ["shop/a"], "the version of the namespace comes to the cache with a bookmark only"
    assert world.store.waits == ["8"]
    assert not len(world.recent)


async def test_lists_that_come_while_one_asks_wait_for_its_answer() -> None:
    world = World()
    world.store.see(obj("5"))
    world.server, world.answers = "8", anyio.Event()
    world.recent.doubted(CM, KEY, late=False)
    world.store.on_wait = lambda: world.store.see(obj("8"))
    settled: list[bool] = []

    async def read() -> None:
        settled.append(await world.recent.all_settled(CM, "", world.store))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert settled == []
        world.answers.set()
    assert settled == [True] * 3
    assert world.asked == ["shop/a"]


async def test_one_that_asks_and_is_cancelled_leaves_nobody_waiting() -> None:
    world = World()
    world.store.see(obj("5"))
    world.answers = anyio.Event()
    world.recent.doubted(CM, KEY, late=False)
    settled: list[bool] = []

    async def read() -> None:
        settled.append(await world.recent.all_settled(CM, "", world.store))

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as asker:
                asker.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
    assert settled == [False], "it goes to the server itself"


async def test_an_object_that_the_server_has_not_is_judged_by_the_version_of_all() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.doubted(CM, KEY, late=False)
    world.server = ""
    assert not await world.recent.all_settled(CM, "shop", world.store)
    world.server = "9"
    assert not await world.recent.all_settled(CM, "shop", world.store)
    assert world.asked == ["shop/a", "shop"]
    world.store.see_gone(KEY, "9")
    assert await world.recent.all_settled(CM, "shop", world.store)


async def test_many_doubts_are_cleared_by_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_LOOKS", 3)
    world = World()
    world.server = "8"
    for number in range(4):
        world.recent.doubted(CM, ObjectKey("shop", str(number)), late=False)
    assert not await world.recent.all_settled(CM, "shop", world.store)
    assert world.asked == ["shop"]
    world.store.version = "8"
    assert await world.recent.all_settled(CM, "shop", world.store)
    assert world.asked == ["shop"]


async def test_where_the_server_has_no_such_object_the_version_of_the_collection_decides() -> None:
    world = World()
    world.store.see(obj("5"))
    world.server = "9"
    world.recent.doubted(CM, KEY, late=False)
    doubt = world.recent.doubt(CM, KEY)
    assert doubt is not None
    doubt.missing = True
    assert not await world.settled()
    world.store.see_gone(KEY, "9")
    assert await world.settled()


async def test_a_lost_write_may_come_late() -> None:
    world = World()
    world.store.see(obj("5"))
    world.server = "5"
    world.recent.doubted(CM, KEY, late=True)
    assert world.recent.doubt(CM, KEY) is None, "what is read now tells nothing"
    assert not await world.recent.all_settled(CM, "shop", world.store)
    assert world.asked == []
    world.clock.advance(LATE)
    assert await world.recent.all_settled(CM, "shop", world.store)


async def test_a_doubt_heals_when_the_server_cannot_be_asked() -> None:
    world = World()
    world.server = "away"
    world.recent.doubted(CM, ObjectKey("shop", ""), late=True)
    for _ in range(10):
        world.clock.advance(30.0)
        assert not await world.settled()
    world.clock.advance(MAX_AGE)
    assert await world.settled()
    assert not len(world.recent)


async def test_a_deletion_that_never_shows_is_given_up() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.deleted(CM, KEY, "u", "5")
    assert not await world.settled()
    world.clock.advance(MAX_AGE + 1)
    assert await world.settled(), "the server was restored from a backup that has it"


async def test_a_late_answer_does_not_bring_a_deleted_object_back() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.deleted(CM, KEY, "u", "5")
    world.recent.written(CM, KEY, "u", "6")
    world.store.see(obj("6"))
    assert not await world.settled()
    world.store.see_gone(KEY, "7")
    assert await world.settled()


async def test_a_cache_that_begins_with_an_older_state_is_not_believed_before_it_has_caught_up() -> None:
    world = World()
    world.cache.kinds.clear()
    world.recent.written(CM, KEY, "u", "7")
    world.cache.kinds.add(CM.group_kind)
    world.store.see(obj("5"))
    assert not await world.settled()
    assert not await world.settled(ObjectKey("shop", "b")), "nor about others: nobody knows what was written to them"
    world.recent.written(CM, ObjectKey("shop", "b"), "v", "20")
    world.store.see(obj("7"))
    assert not await world.settled(ObjectKey("shop", "b"))
    world.store.version = "20"
    assert await world.settled()
    world.recent.written(CM, ObjectKey("shop", "b"), "v", "30")
    assert await world.settled(), "once it is believed, each write concerns its own object"


async def test_a_deletion_before_a_cache_began_is_asked_of_the_server() -> None:
    world = World()
    world.cache.kinds.clear()
    world.recent.deleted(CM, KEY, "u")
    world.cache.kinds.add(CM.group_kind)
    world.store.see(obj("5"))
    world.server = "6"
    assert not await world.settled()
    world.store.see_gone(KEY, "6")
    assert await world.settled()


async def test_a_kind_that_comes_back_has_to_catch_up_again() -> None:
    world = World()
    world.store.see(obj("5"))
    assert await world.settled()
    world.cache.gone = True
    world.recent.written(CM, KEY, "u", "9")
    world.cache.gone = False
    world.store.see(obj("8"))
    assert not await world.settled()
    world.store.see(obj("9"))
    assert await world.settled()


async def test_writes_where_nothing_is_cached_leave_other_caches_alone() -> None:
    world = World()
    world.store.see(obj("5"))
    assert await world.settled()
    world.cache.only = "shop"
    world.recent.written(CM, ObjectKey("elsewhere", "x"), "u", "99")
    world.recent.deleted(CM, ObjectKey("elsewhere", "x"), "u")
    assert await world.settled()


async def test_a_second_cache_that_is_behind_is_not_believed_because_the_first_one_is_there() -> None:
    world = World()
    world.store.see(obj("7"))
    assert await world.settled()
    world.recent.written(CM, KEY, "u", "7")
    second = MemoryCache(CM).store
    second.see(obj("5"))
    world.cache.store = second
    assert not await world.recent.settled(CM, KEY, second)
    second.see(obj("7"))
    assert await world.recent.settled(CM, KEY, second)


async def test_namespaces_that_are_remembered_for_later_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_FLOORS", 10)
    world = World()
    world.cache.kinds.clear()
    for number in range(1, 100):
        world.recent.written(CM, ObjectKey(f"n{number}", "a"), "u", str(number))
    assert len(world.recent._floors[CM.group_kind]) <= 10
    world.cache.kinds.add(CM.group_kind)
    world.store.version = "50"
    assert not await world.settled()
    world.store.version = "99"
    assert await world.settled()


async def test_a_deletion_of_the_next_object_does_not_bring_the_one_before_back() -> None:
    """Deleted, made anew by somebody else, deleted again by name, while the cache saw none of it."""
    world = World()
    world.store.see(obj("5", uid="old"))
    world.recent.deleted(CM, KEY, "old")
    world.recent.deleted(CM, KEY, "new")
    assert not await world.settled()


async def test_a_deletion_of_an_object_that_no_cache_has_seen_does_not_show_an_older_one() -> None:
    world = World()
    world.recent.written(CM, KEY, "old", "5")
    world.store.see(obj("5", uid="old"))
    world.recent.deleted(CM, KEY, "new")
    assert not await world.settled()
    world.server = "9"
    doubt = world.recent.doubt(CM, KEY)
    assert doubt is not None, "the next read of the object tells"
    doubt.solve("9")
    world.store.see(obj("9", uid="newest"))
    assert await world.settled()


async def test_a_write_after_a_lost_one_does_not_end_the_doubt_while_that_may_still_come() -> None:
    world = World()
    world.store.see(obj("5"))
    world.recent.doubted(CM, KEY, late=True)
    world.recent.written(CM, KEY, "u", "6")
    world.store.see(obj("6"))
    assert not await world.settled()
    world.clock.advance(LATE)
    doubt = world.recent.doubt(CM, KEY)
    assert doubt is not None
    doubt.solve("7")
    assert not await world.settled()
    world.store.see(obj("7"))
    assert await world.settled()
