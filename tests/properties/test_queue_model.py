"""QueueState against a model that is too simple to be wrong, over 10,000 random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kopylite.workqueue.state import FAIR_SHARE, QueueState
from tests.sizes import examples

# Ten thousand in the profile `ci`, in parts that parallel workers share.
PARTS = 10
HISTORIES = examples(1_000)

KEYS = "abcde"
PRIORITIES = [0, 0, -100, 7]
# Halves are exact in binary, so times can be compared with ==.
DELAYS = [0.0, 0.0, 0.5, 1.0, 2.5, 8.0]


@dataclass
class Item:
    """A key with a run to come."""

    key: str
    priority: int
    due: float
    # When it was given its time: equal times come in this order.
    given: int
    # Its place among those that are ready, or None while it waits.
    place: int | None = None
    # Nothing brings its time forward.
    held: bool = False


@dataclass
class Model:
    """One list, searched from end to end for everything."""

    items: list[Item] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)
    places: int = 0
    takes: int = 0

    def find(self, key: str) -> Item | None:
        return next((item for item in self.items if item.key == key), None)

    def next_place(self) -> int:
        self.places += 1
        return self.places

    def add(self, key: str, now: float, priority: int, after: float) -> bool:
        item = self.find(key)
        if item is None:
            item = Item(key, priority, now + after, self.next_place(), None if after else self.next_place())
            self.items.append(item)
            return not after
        if priority > item.priority:
            item.priority = priority
            if item.place is not None and key not in self.running:
                item.place = self.next_place()
        if item.place is not None or item.held:
            return False
        if now + after < item.due:
            item.due, item.given = now + after, self.next_place()
        if not after:
            item.due, item.place = now, self.next_place()
        return not after

    def hold(self, key: str, now: float, priority: int, after: float) -> None:
        item = self.find(key)
        if item is not None:
            self.items.remove(item)
            priority = max(priority, item.priority)
        self.items.append(Item(key, priority, now + after, self.next_place(), held=True))

    def drop(self, keys: str) -> None:
        self.items = [item for item in self.items if item.key not in keys]

    def promote(self, now: float) -> int:
        due = sorted((i for i in self.items if i.place is None and i.due <= now), key=lambda i: (i.due, i.given))
        for item in due:
            item.place, item.held = self.next_place(), False
        return len(due)

    def take(self, now: float) -> tuple[str, int, float] | None:
        ready = [item for item in self.items if item.place is not None and item.key not in self.running]
        if not ready:
            return None
        first = {p: min((i for i in ready if i.priority == p), key=place_of) for p in {i.priority for i in ready}}
        chosen = first[max(first)]
        if len(first) > 1:
            self.takes += 1
            if self.takes % FAIR_SHARE == 0:
                chosen = min(first.values(), key=lambda i: (i.due, -i.priority))
        self.items.remove(chosen)
        self.running[chosen.key] = now
        return chosen.key, chosen.priority, now - chosen.due

    def done(self, key: str, now: float) -> tuple[float, bool]:
        item = self.find(key)
        ready = item is not None and item.place is not None
        if item is not None and ready:
            item.place = self.next_place()
        return now - self.running.pop(key), ready


def place_of(item: Item) -> int:
    assert item.place is not None
    return item.place


class History:
    """Applies one step after the other to the machine and to the model, and compares all that can be seen."""

    def __init__(self) -> None:
        self.now = 0.0
        self.state: QueueState[str] = QueueState()
        self.model = Model()
        # Keys that were added and have not begun a run since.
        self.owed: set[str] = set()

    def step(self, what: int, argument: int) -> None:
        key = KEYS[argument % len(KEYS)]
        if what == 1:
            self.take()
        elif what == 2:
            running = sorted(self.model.running)
            if running:
                self.done(running[argument % len(running)])
        elif what == 3:
            self.now += 0.5 * (argument % 8)
            assert self.state.promote(self.now) == self.model.promote(self.now)
        elif what == 4:
            priority, after = PRIORITIES[argument // 8 % 4], DELAYS[2 + argument // 32 % 4]
            self.owed.add(key)
            self.state.hold(key, self.now, priority=priority, after=after)
            self.model.hold(key, self.now, priority, after)
        elif what == 8 and argument % 4 == 0:
            keys = KEYS[: 1 + argument % len(KEYS)]
            self.owed -= {*keys}
            self.state.drop(keys.__contains__)
            self.model.drop(keys)
        elif what >= 5:
            priority, after = PRIORITIES[argument // 8 % 4], DELAYS[argument // 32 % 6]
            self.owed.add(key)
            became_ready = self.state.add(key, self.now, priority=priority, after=after)
            assert became_ready == self.model.add(key, self.now, priority, after)
        self.compare()

    def take(self) -> bool:
        taken, expected = self.state.take(self.now), self.model.take(self.now)
        assert taken == expected
        if taken is not None:
            self.owed.remove(taken[0])
        return taken is not None

    def done(self, key: str) -> None:
        assert self.state.done(key, self.now) == self.model.done(key, self.now)

    def compare(self) -> None:
        state, model = self.state, self.model
        ready = [item for item in model.items if item.place is not None]
        waiting = [item for item in model.items if item.place is None]
        assert (state.ready, state.waiting) == (len(ready), len(waiting))
        assert state.next_time() == min((item.due for item in waiting), default=None)
        assert state.running() == model.running
        assert state.takeable() == any(item.key not in model.running for item in ready)
        assert state.ready_by_priority() == Counter(item.priority for item in ready)

    def finish(self) -> None:
        """Let everything run that was asked for: nothing may be lost."""
        for _ in range(2):
            for key in sorted(self.model.running):
                self.done(key)
            self.now += 100.0
            assert self.state.promote(self.now) == self.model.promote(self.now)
            while self.take():
                self.compare()
        for key in sorted(self.model.running):
            self.done(key)
        assert not self.owed
        assert not self.state.ready
        assert not self.state.waiting
        assert self.state.oldest_ready() is None


def steps(script: bytes) -> Iterator[tuple[int, int]]:
    """Each pair of bytes is a step; zeros are none, so a failing history shrinks to its essence."""
    for what, argument in zip(script[::2], script[1::2], strict=False):
        if what % 9:
            yield what % 9, argument


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_queue_does_what_the_model_does_and_loses_nothing_in_ten_thousand_histories(part: int) -> None:
    finished = 0

    @seed(part)
    @given(st.binary(min_size=40, max_size=140))
    @settings(max_examples=HISTORIES, suppress_health_check=list(HealthCheck), database=None)
    def every_history(script: bytes) -> None:
        nonlocal finished
        history = History()
        for what, argument in steps(script):
            history.step(what, argument)
        history.finish()
        finished += 1

    every_history()
    assert finished >= HISTORIES
