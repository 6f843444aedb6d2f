"""The work queue: 3 keys, 2 workers. Adds of two priorities, now and later, holds, time, takes, ends of runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Self

from kopylite.workqueue.delays import DelayHeap
from kopylite.workqueue.state import FAIR_SHARE, QueueState

WORKERS = 2
ADDS = [(0, 0), (1, 0), (0, 2), (1, 1)]  # priority, after
HOLDS = [(0, 1)]

# Of a key: whether it runs, its time, whether it is held, its priority; its place, its rank, since when it is parked.
Signature = tuple[bool, int, bool, int, tuple[int, int, float], int, float]


class QueueWorld:
    """The machine, and what is owed: `owed` has each key with a run to come, its time, whether held, its priority.

    That is the promise in small: a key that was added runs after that, not twice at once, not before its time.
    """

    def __init__(self, keys: str = "abc") -> None:
        self.keys = keys
        self.now = 0
        self.takes = 0
        self.state: QueueState[str] = QueueState()
        self.owed: dict[str, tuple[int, bool, int]] = {}
        self.running: set[str] = set()

    def actions(self) -> Iterable[Hashable]:
        known = set()
        for key in self.keys:
            signature = self._signature(key)
            if signature not in known:  # keys that differ by nothing but their name lead to the same
                known.add(signature)
                yield from (("add", key, priority, after) for priority, after in ADDS)
                yield from (("hold", key, priority, after) for priority, after in HOLDS)
        yield "time"
        if len(self.running) < WORKERS:
            yield "take"
        yield from (("done", key) for key in self.keys if key in self.running)

    def act(self, action: Hashable) -> None:
        match action:
            case "time":
                self.now += 1
                self.state.promote(self.now)
                late = {k: (due, False, p) for k, (due, _, p) in self.owed.items() if due <= self.now}
                self.owed |= late
            case "take":
                self._take()
            case ("add", str(key), int(priority), int(after)):
                due, held, old = self.owed.get(key, (self.now + after, False, priority))
                if not held and due > self.now:
                    due = min(due, self.now + after)
                self.owed[key] = due, held, max(old, priority)
                ready = self.state.add(key, self.now, priority=priority, after=after)
                assert not ready or due <= self.now, f"{key} is said to be ready before its time"
            case ("hold", str(key), int(priority), int(after)):
                old = self.owed[key][2] if key in self.owed else priority
                self.owed[key] = self.now + after, True, max(old, priority)
                self.state.hold(key, self.now, priority=priority, after=after)
            case ("done", str(key)):
                self.running.remove(key)
                _, again = self.state.done(key, self.now)
                assert again == (key in self.owed and self.owed[key][0] <= self.now), f"{key}: wrongly ready again"
            case _:
                raise AssertionError(f"{action} is none")

    def _take(self) -> None:
        ready = {key for key, (due, _, _) in self.owed.items() if due <= self.now and key not in self.running}
        levels = {self.owed[key][2] for key in ready}
        taken = self.state.take(self.now)
        if taken is None:
            assert not ready, f"{ready} are ready, and nothing is handed out"
            return
        assert taken[0] not in self.running, f"{taken[0]} runs twice at once"
        assert taken[0] in ready, f"{taken[0]} is handed out, and has no run to come by now"
        assert taken[1] == self.owed[taken[0]][2], f"{taken[0]} has lost its priority"
        if len(levels) > 1:
            self.takes += 1
        fair = len(levels) > 1 and self.takes % FAIR_SHARE == 0
        assert fair or taken[1] == max(levels), "what is urgent waits for what is not"
        del self.owed[taken[0]]
        self.running.add(taken[0])

    def check(self) -> None:
        state, times = self.state, [due for due, _, _ in self.owed.values()]
        waiting = [due for due in times if due > self.now]
        assert state.waiting == len(waiting), "a key that waits is lost, or one is there twice"
        assert state.ready == len(times) - len(waiting), "a key that is ready is lost, or one is there twice"
        assert state.next_time() == min(waiting, default=None), "the next time is another one"
        assert state.running().keys() == self.running
        assert sum(state.ready_by_priority().values()) == state.ready

    def settle(self) -> None:
        """From here, when all time has passed, each owed key runs once, and nothing is left."""
        world = self.copy()
        for key in list(world.running):
            world.act(("done", key))
        owed, ran = set(world.owed), set[str]()
        world.now += 10
        world.state.promote(world.now)
        world.owed = {key: (due, False, priority) for key, (due, _, priority) in world.owed.items()}
        while world.state.takeable():
            world._take()
            ran |= world.running
            for key in list(world.running):
                world.act(("done", key))
        assert ran == owed, f"{owed - ran} never run"
        assert not world.state.ready
        assert not world.state.waiting

    def _signature(self, key: str) -> Signature:
        state, place = self.state, (-1, -1, 0.0)
        for priority, level in state._levels.items():
            if key in level:
                place = (priority, list(level).index(key), self.now - level[key])
        due, held, priority = self.owed.get(key, (self.now - 99, False, -1))
        serial = state.delays._entries[key][1] if key in state.delays._entries else 0
        rank = sum(entry[1] < serial for entry in state.delays._entries.values()) if serial else -1
        parked = self.now - state._parked[key] if key in state._parked else -1.0
        return key in self.running, due - self.now, held, priority, place, rank, parked

    def key(self) -> Hashable:
        return self.takes % FAIR_SHARE, *sorted(map(self._signature, self.keys))

    def copy(self) -> Self:
        twin = type(self)(self.keys)
        twin.now, twin.takes, twin.owed, twin.running = self.now, self.takes, dict(self.owed), set(self.running)
        new, old = twin.state, self.state
        new._priority, new._held, new._order = dict(old._priority), set(old._held), list(old._order)
        new._levels = {priority: OrderedDict(level) for priority, level in old._levels.items()}
        new._parked, new._running, new._takes = dict(old._parked), dict(old._running), old._takes
        heap: DelayHeap[str] = DelayHeap()
        heap._heap, heap._entries = list(old.delays._heap), dict(old.delays._entries)
        heap._serial = old.delays._serial
        heap.earliest = old.delays.earliest
        new.delays = heap
        return twin
