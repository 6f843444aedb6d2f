from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterable

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.cache import Delta, Record
from kopylite.errors import RegistrationError
from kopylite.objects import Kind, ObjectKey, OwnerReference, Shard
from kopylite.reconcile import Request
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import LOW_PRIORITY, EnqueueMapped, EnqueueObject, EnqueueOwner, event_of
from kopylite.triggers.handlers import MAPPERS
from tests.leftovers import Loops
from tests.sizes import examples
from tests.unit.cache.things import thing

Asked = list[tuple[Request, str, int]]

OWNER = Kind("example.com/v1", "MyApp", namespaced=True)


def owner(
    name: str, api_version: str = "example.com/v1", kind: str = "MyApp", controller: bool = True
) -> OwnerReference:
    return OwnerReference(api_version, kind, name, f"uid-{name}", controller)


def asked_by(handler: EnqueueObject | EnqueueOwner, delta: Delta) -> Asked:
    asked: Asked = []
    handler.handle(event_of(delta), "Thing", lambda *ask: asked.append(ask))
    return asked


def test_an_object_asks_for_itself_and_says_why() -> None:
    assert asked_by(EnqueueObject(), Delta(None, thing("a"))) == [(Request("ns", "a"), "Thing created", 0)]
    assert asked_by(EnqueueObject(), Delta(thing("a"), None)) == [(Request("ns", "a"), "Thing deleted", 0)]


def test_what_is_no_news_has_low_priority() -> None:
    assert asked_by(EnqueueObject(), Delta(None, thing(), True))[0][2] == LOW_PRIORITY
    assert asked_by(EnqueueObject(), Delta(thing(version=1), thing(version=1)))[0][2] == LOW_PRIORITY
    assert asked_by(EnqueueObject(), Delta(thing(version=1), thing(version=2)))[0][2] == 0
    assert asked_by(EnqueueOwner(OWNER), Delta(None, thing(owners=(owner("x"),)), True))[0][2] == LOW_PRIORITY


def test_owners_match_by_group_and_kind_of_any_version() -> None:
    references = (
        owner("right"),
        owner("newer", "example.com/v2"),
        owner("elsewhere", "other.com/v1"),
        owner("core", "v1"),
        owner("stranger", kind="Other"),
        owner("broken", "a/b/c"),
        owner("", "example.com/v1"),
    )
    asked = asked_by(EnqueueOwner(OWNER), Delta(None, thing(owners=references)))
    assert {request.name for request, _, _ in asked} == {"right", "newer"}
    assert asked[0][1] == "Thing ns/a created"


def test_only_controllers_count_unless_every_owner_is_wanted() -> None:
    delta = Delta(None, thing(owners=(owner("x", controller=False), owner("y"))))
    assert [request.name for request, _, _ in asked_by(EnqueueOwner(OWNER), delta)] == ["y"]
    assert {request.name for request, _, _ in asked_by(EnqueueOwner(OWNER, controller_only=False), delta)} == {"x", "y"}


def test_an_update_asks_for_the_owners_of_both_states_once_each() -> None:
    delta = Delta(thing(version=1, owners=(owner("x"), owner("y"))), thing(version=2, owners=(owner("y"), owner("z"))))
    assert sorted(request.name for request, _, _ in asked_by(EnqueueOwner(OWNER), delta)) == ["x", "y", "z"]


def test_a_cluster_scoped_owner_has_no_namespace() -> None:
    handler = EnqueueOwner(Kind("example.com/v1", "MyApp", namespaced=False))
    delta = Delta(None, thing(owners=(owner("x"),)))
    assert asked_by(handler, delta)[0][0] == Request("", "x")


def test_an_owner_of_which_nothing_says_the_scope_is_refused_and_not_guessed() -> None:
    with pytest.raises(RegistrationError, match="nothing says whether"):
        EnqueueOwner(Kind("example.com/v1", "MyApp"))


def test_a_namespaced_owner_owns_nothing_outside_of_its_namespace() -> None:
    assert asked_by(EnqueueOwner(OWNER), Delta(None, thing(namespace="", owners=(owner("x"),)))) == []


def test_a_sharded_handler_asks_for_the_owners_of_its_shard_alone_and_the_shards_together_for_all() -> None:
    names = [f"{letter}-of-some-length" for letter in "abcdefghijklmnopqrst"]
    delta = Delta(None, thing(owners=tuple(owner(name) for name in names)))
    asked = [[ask[0].name for ask in asked_by(EnqueueOwner(OWNER, shard=Shard(index, 3)), delta)] for index in range(3)]
    assert all(asked), "each has some of twenty"
    assert sorted(itertools.chain(*asked)) == sorted(names)
    assert all(Shard(index, 3).holds(f"uid-{name}") for index in range(3) for name in asked[index])


# Map functions


class Mapping:
    """Maps a thing to what its labels say; fails as long as it is told to."""

    def __init__(self) -> None:
        self.failing = 0
        self.calls: list[tuple[str, str]] = []
        self.running: set[ObjectKey] = set()

    async def users_of(self, record: Record) -> Iterable[Request]:
        self.calls.append((record.name, record.resource_version))
        await asyncio.sleep(0.01)
        if self.failing > 0:
            self.failing -= 1
            raise RuntimeError("the server is away")
        return [Request("ns", name) for name in (record.labels or {}).values()]


def using(name: str, version: int, *users: str) -> Record:
    return thing(name, version, labels={str(number): user for number, user in enumerate(users)})


def run_mapped(deltas: list[Delta], mapping: Mapping) -> Asked:
    """Hand over all deltas at once and let the function run for an hour."""
    clock = VirtualClock()
    asked: Asked = []

    async def main() -> None:
        handler = EnqueueMapped(mapping.users_of, clock=clock)
        for delta in deltas:
            handler.handle(event_of(delta), "ConfigMap", lambda *ask: asked.append(ask))
        with anyio.move_on_after(3600):
            await handler.run("ConfigMap", lambda *ask: asked.append(ask))
        assert len(handler) == 0

    clock.run(main)
    return asked


def test_a_map_function_is_asked_for_the_old_and_the_new_state() -> None:
    asked = run_mapped([Delta(using("c", 1, "x", "y"), using("c", 2, "y", "z"))], Mapping())
    assert sorted(request.name for request, _, _ in asked) == ["x", "y", "z"]
    assert asked[0][1] == "ConfigMap ns/c updated via users_of"


def test_a_map_function_that_fails_is_called_again_and_nothing_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    mapping = Mapping()
    mapping.failing = 5
    asked = run_mapped([Delta(using("c", 1, "x"), None)], mapping)
    assert [request.name for request, _, _ in asked] == ["x"]
    assert len(mapping.calls) == 6
    assert "users_of failed on ConfigMap ns/c: RuntimeError: the server is away" in caplog.text


def test_an_object_whose_map_function_failed_leaves_no_timer_at_the_end(watched_loops: Loops) -> None:
    clock, mapping = VirtualClock(), Mapping()
    mapping.failing = 99

    async def main() -> None:
        handler = EnqueueMapped(mapping.users_of, clock=clock)
        handler.handle(event_of(Delta(using("c", 1, "x"), None)), "ConfigMap", lambda *ask: None)
        with anyio.move_on_after(10):
            await handler.run("ConfigMap", lambda *ask: None)

    clock.run(main)
    assert len(mapping.calls) > 1
    assert watched_loops.taken() == []


def test_events_that_come_meanwhile_are_merged_to_the_first_old_and_the_newest_state() -> None:
    states = [using("c", version, f"u{version}") for version in range(1, 101)]
    mapping = Mapping()
    asked = run_mapped([Delta(old, new) for old, new in itertools.pairwise(states)], mapping)
    assert {request.name for request, _, _ in asked} == {"u1", "u100"}
    assert len(mapping.calls) == 2


def test_initial_objects_are_mapped_with_low_priority() -> None:
    assert run_mapped([Delta(None, using("c", 1, "x"), True)], Mapping())[0][2] == LOW_PRIORITY


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "y", "z"]), st.floats(0, 0.3)), max_size=12),
    st.integers(0, 2**16),
)
def test_whatever_fails_the_users_of_the_last_state_and_of_each_state_that_was_mapped_before_run(
    steps: list[tuple[str, str, float]], seed: int
) -> None:
    clock, dice = VirtualClock(), random.Random(seed)
    told: dict[str, set[str]] = {name: set() for name in "abc"}  # who was asked to run since the object's last change
    running: set[str] = set()

    async def users_of(record: Record) -> Iterable[Request]:
        assert record.name not in running, "never twice at once for one object"
        running.add(record.name)
        await asyncio.sleep(dice.random() / 10)
        running.discard(record.name)
        if dice.random() < 0.5:
            raise RuntimeError("no")
        return [Request("ns", f"{record.name}-{user}") for user in (record.labels or {}).values()]

    def enqueue(request: Request, reason: str, priority: int) -> None:
        told[request.name[0]].add(request.name[2:])

    async def main() -> None:
        handler = EnqueueMapped(users_of, clock=clock)
        present: dict[str, Record] = {}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handler.run, "Thing", enqueue)
            expected: dict[str, set[str]] = {name: set() for name in "abc"}
            for version, (name, user, pause) in enumerate(steps, start=1):
                old = present.pop(name, None)
                if user:
                    present[name] = using(name, version, user)
                if old is not None or user:
                    handler.handle(event_of(Delta(old, present.get(name))), "Thing", enqueue)
                    told[name].clear()
                    last = present.get(name) or old
                    expected[name] = set((last.labels or {}).values()) if last else set()
                await asyncio.sleep(pause)
            await asyncio.sleep(1000)
            assert all(expected[name] <= told[name] for name in "abc")
            assert len(handler) == 0
            tasks.cancel_scope.cancel()

    clock.run(main)


def test_map_functions_that_never_return_are_cancelled_called_again_and_stop_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One for each task that calls them: without a limit nothing would ever be mapped again."""
    clock, calls, asked, results = VirtualClock(), dict[str, int](), list[tuple[Request, str, int]](), list[str]()

    async def users_of(record: Record) -> Iterable[Request]:
        calls[record.name] = calls.get(record.name, 0) + 1
        if record.name.startswith("hangs") and calls[record.name] == 1:
            await anyio.sleep_forever()
        return [Request("ns", record.name)]

    async def main() -> None:
        handler = EnqueueMapped(users_of, clock=clock, timeout=30.0, observe=results.append)
        names = [*(f"hangs-{number}" for number in range(MAPPERS)), "good"]
        for name in names:
            handler.handle(event_of(Delta(None, thing(name))), "ConfigMap", lambda *ask: asked.append(ask))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handler.run, "ConfigMap", lambda *ask: asked.append(ask))
            await anyio.sleep(29.0)
            assert len(handler.active_calls(longer_than=28.0)) == MAPPERS
            await anyio.sleep(10.0)
            assert {request.name for request, _, _ in asked} == set(names)
            assert handler.active_calls() == []
            tasks.cancel_scope.cancel()

    clock.run(main)
    assert sorted(results) == ["success"] * (MAPPERS + 1) + ["timeout"] * MAPPERS
    assert "map function users_of failed on ConfigMap ns/hangs-0: TimeoutError: cancelled after 30 s" in caplog.text


@pytest.mark.parametrize("odd", [None, 5, "text", [None], ["name"], [("ns", "name")], [Request("ns", "")]])
def test_a_map_function_that_returns_something_else_is_told_so_and_called_again(
    odd: object, caplog: pytest.LogCaptureFixture
) -> None:
    mapping, answers = Mapping(), [odd, [Request("ns", "x")]]

    async def users_of(record: Record) -> Iterable[Request]:
        return answers.pop(0)  # type: ignore[return-value]

    mapping.users_of = users_of  # type: ignore[method-assign]
    assert [request.name for request, _, _ in run_mapped([Delta(None, thing("c"))], mapping)] == ["x"]
    assert "map function users_of failed on ConfigMap ns/c" in caplog.text


def test_a_map_function_that_awaits_what_was_cancelled_loses_no_event_and_no_task() -> None:
    clock, asked, left = VirtualClock(), list[tuple[Request, str, int]](), [MAPPERS + 1]

    async def users_of(record: Record) -> Iterable[Request]:
        if left[0] > 0:
            left[0] -= 1
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
        return [Request("ns", "x")]

    async def main() -> None:
        handler = EnqueueMapped(users_of, clock=clock)
        handler.handle(event_of(Delta(None, thing("c"))), "ConfigMap", lambda *ask: asked.append(ask))
        with anyio.move_on_after(60):
            await handler.run("ConfigMap", lambda *ask: asked.append(ask))

    clock.run(main)
    assert [request.name for request, _, _ in asked] == ["x"]


def test_a_map_function_that_succeeded_begins_anew_with_its_back_off() -> None:
    clock, moments = VirtualClock(), list[float]()

    async def users_of(record: Record) -> Iterable[Request]:
        moments.append(clock.monotonic())
        if len(moments) in (8, 10):
            return []
        raise RuntimeError("the server is away")

    async def main() -> None:
        handler = EnqueueMapped(users_of, clock=clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handler.run, "ConfigMap", lambda *ask: None)
            for version in (1, 2):
                handler.handle(event_of(Delta(None, using("c", version))), "ConfigMap", lambda *ask: None)
                await anyio.sleep(100)
            tasks.cancel_scope.cancel()

    clock.run(main)
    assert moments[7] - moments[6] > 5, "seven failures in a row"
    assert moments[9] - moments[8] < 0.2, "the first one since"


def test_what_one_task_maps_is_not_said_to_wait() -> None:
    clock = VirtualClock()

    async def users_of(record: Record) -> Iterable[Request]:
        await anyio.sleep(10)
        return []

    async def main() -> None:
        handler = EnqueueMapped(users_of, clock=clock)
        for number in range(MAPPERS + 3):
            handler.handle(event_of(Delta(None, thing(f"t{number}"))), "ConfigMap", lambda *ask: None)
        assert len(handler) == MAPPERS + 3
        with anyio.move_on_after(5):
            await handler.run("ConfigMap", lambda *ask: None)
        assert len(handler) == 3

    clock.run(main)


def test_one_change_tells_its_reason_and_more_than_one_only_that_there_were_some() -> None:
    """Who watches for hot loops goes by the reason of a single change; of two, nobody can say which it was."""
    clock, asked = VirtualClock(), list[str]()

    async def users_of(record: Record) -> Iterable[Request]:
        return [Request("ns", record.name)]

    async def main() -> None:
        handler = EnqueueMapped(users_of, clock=clock)

        def alone(request: Request, reason: str, priority: int) -> None:
            asked.append(f"{request.name} alone")

        def together(request: Request, reason: str, priority: int) -> None:
            asked.append(f"{request.name} together")

        handler.handle(event_of(Delta(None, thing("once"))), "ConfigMap", alone)
        for version in (1, 2):
            handler.handle(event_of(Delta(None, thing("twice", version))), "ConfigMap", alone)
        with anyio.move_on_after(5):
            await handler.run("ConfigMap", together)

    clock.run(main)
    assert sorted(asked) == ["once alone", "twice together"]
