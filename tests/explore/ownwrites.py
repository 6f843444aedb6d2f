"""Recent writes: one object, two caches that are late by any amount, and every fate of a write and its answer."""

from __future__ import annotations

import builtins
from collections.abc import Coroutine, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from weakref import ref

from msgspec.structs import replace

from kopylite.client.recent import ASK_PAUSE, LATE, RecentWrites
from kopylite.objects import Kind, ObjectKey
from kopylite.testing import VirtualClock

KIND = Kind("v1", "ConfigMap")
KEY = ObjectKey("shop", "a")
T = TypeVar("T")
# (uid, version); None: it is not there.
State = tuple[str, int] | None
FATES = ("answered", "lost", "never came")


@dataclass(frozen=True)
class Held:
    """What a cache holds of the object."""

    key: ObjectKey
    uid: str
    resource_version: str
    body: bytes = b""


@dataclass(eq=False)
class LateStore:
    """A cache that has applied the first `applied` changes of the history."""

    world: OwnWritesWorld
    applied: int = 1
    version: int = 1
    partial: bool = False

    def get(self, key: ObjectKey) -> Held | None:
        state = self.world.history[self.applied - 1][1]
        return None if state is None else Held(KEY, state[0], str(state[1]))

    def list(
        self, namespace: str = "", labels: str | None = None, index: Mapping[str, str] | None = None
    ) -> Iterable[Held]:
        found = self.get(KEY)
        return [] if found is None else [found]

    def find_in(self, kind: Kind, bodies: Iterable[bytes], index: Mapping[str, str]) -> builtins.list[bytes]:
        raise AssertionError("no index here")

    def newest(self) -> str:
        return str(self.version)

    async def wait_newer(self, key: ObjectKey, version: str, timeout: float) -> bool:
        return False  # it is late


@dataclass(eq=False)
class OwnWritesWorld:
    """The server's history of the object, the caches, and what the client knows of its own writes.

    Attributes:
        own: the place in the history of the client's last change; reads may not be older.
        late: a write whose answer was lost, which the server may yet carry out, and until when.
    """

    history: list[tuple[int, State]] = field(default_factory=lambda: [(1, ("u1", 1))])
    clock: VirtualClock = field(default_factory=VirtualClock)
    own: int = 0
    late: tuple[str, float] | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        self.stores = {"shop": LateStore(self), "": LateStore(self)}
        self.recent = RecentWrites(self, self.clock, self._ask)

    def store_for(self, kind: Kind, namespace: str) -> LateStore | None:
        return self.stores[namespace]

    def follows(self, kind: Kind, namespace: str) -> bool:
        return True

    async def _ask(self, kind: Kind, key: ObjectKey) -> str:
        self.asked += 1
        version, state = self.history[-1]
        if key.name:
            return "" if state is None else str(state[1])
        return str(version)

    def actions(self) -> Iterable[Hashable]:
        present = self.history[-1][1]
        verbs = ["create"] if present is None else ["patch", "delete", "evict"]
        yield from (("write", verb, fate) for verb in verbs for fate in FATES)
        yield ("other", "create" if present is None else "patch")
        if present is not None:
            yield ("other", "delete")
        if self.late is not None and self.clock.monotonic() < self.late[1]:
            yield "late"
        for name, store in self.stores.items():
            if store.applied < len(self.history):
                yield ("catch up", name)
            elif store.version < self.history[-1][0]:
                yield ("bookmark", name)
        yield "time"
        yield "read"

    def act(self, action: Any) -> None:
        match action:
            case ("write", verb, fate):
                self._write(verb, fate)
            case ("other", verb):
                self._change(verb)
            case "late":
                assert self.late is not None
                verb, self.late = self.late[0], None
                if (self.history[-1][1] is None) == (verb == "create"):
                    self._change(verb)
                    self.own = len(self.history) - 1
            case ("catch up", name):
                store = self.stores[name]
                store.applied += 1
                store.version = self.history[store.applied - 1][0]
            case ("bookmark", name):
                self.stores[name].version = self.history[-1][0]
            case "time":
                self.clock.advance(LATE / 2)
            case "read":
                run(self.recent.settled(KIND, KEY, self.stores["shop"]))

    def _write(self, verb: str, fate: str) -> None:
        recent, before = self.recent, self.history[-1][1]
        if fate == "never came":
            recent.doubted(KIND, KEY, late=True)
            self.late = verb, self.clock.monotonic() + LATE
            return
        self._change(verb)
        self.own = len(self.history) - 1
        version, state = self.history[-1]
        if fate == "lost":
            recent.doubted(KIND, KEY, late=True)
        elif verb == "delete":
            assert before is not None
            recent.deleted(KIND, KEY, before[0])
        elif verb == "evict":
            recent.doubted(KIND, KEY, late=False)  # its answer does not say what was written
        else:
            assert state is not None
            recent.written(KIND, KEY, state[0], str(version))

    def _change(self, verb: str) -> None:
        version, before = self.history[-1][0] + 1, self.history[-1][1]
        match verb:
            case "create":
                self.history.append((version, (f"u{version}", version)))
            case "patch":
                assert before is not None
                self.history.append((version, (before[0], version)))
            case _:
                self.history.append((version, None))

    def check(self) -> None:
        """Through either cache, a read is never older than an own write; a list neither."""
        for name in self.stores:
            for everything in (False, True):
                world = self.copy()
                store = world.stores[name]
                ask = world.recent.all_settled(KIND, name, store) if everything else None
                trusted = run(ask or world.recent.settled(KIND, KEY, store))
                if trusted and self.own:
                    shown = store.get(KEY)
                    states = [state for _, state in self.history[self.own :]]
                    seen = None if shown is None else (shown.uid, int(shown.resource_version))
                    assert seen in states, f"a read shows {seen}, after an own write; since then there was {states}"

    def settle(self) -> None:
        """When the caches have caught up, they are asked again, and the server no more."""
        world = self.copy()
        for _ in range(3):
            world.clock.advance(LATE + ASK_PAUSE)
            for store in world.stores.values():
                store.applied, store.version = len(world.history), world.history[-1][0]
            for name, store in world.stores.items():
                run(world.recent.all_settled(KIND, name, store))
        world.asked = 0
        for name, store in world.stores.items():
            assert run(world.recent.settled(KIND, KEY, store)), f"the cache {name!r} is never trusted again"
        assert not world.asked

    def key(self) -> Hashable:
        """Versions and times by their distance to now."""
        newest, now = self.history[-1][0], self.clock.monotonic()
        from_here = min(self.own or 10**6, *(store.applied - 1 for store in self.stores.values()))
        uids: dict[str, int] = {}
        past = tuple(
            state and (uids.setdefault(state[0], len(uids)), newest - state[1]) for _, state in self.history[from_here:]
        )

        def doubt(entry: Any) -> Hashable:
            version = newest - int(entry.version) if entry.version else None
            asks, uid = max(entry.asks_from - now, -1.0), uids.get(entry.deleted_uid, -1) if entry.deleted_uid else None
            mine = uids.get(entry.written_uid, -1) if entry.written_uid else None
            return version, uid, mine, entry.unsure, asks, entry.missing, entry.tried

        pending = tuple(
            (str(scope), doubt(entry)) for kept in self.recent._pending.values() for scope, entry in kept.items()
        )
        stores = tuple((len(self.history) - s.applied, newest - s.version) for s in self.stores.values())
        trusted = tuple(sorted(name for kept in self.recent._trusted.values() for name in kept))
        late = self.late and (self.late[0], max(self.late[1] - now, -1.0))
        return past, self.own and len(self.history) - self.own, pending, stores, trusted, late

    def copy(self) -> Self:
        twin = type(self)(list(self.history), VirtualClock(), self.own, self.late)
        twin.clock.advance(self.clock.monotonic())
        for name, store in self.stores.items():
            twin.stores[name].applied, twin.stores[name].version = store.applied, store.version
        old, new = self.recent, twin.recent
        new._pending = {kind: {k: replace(e) for k, e in kept.items()} for kind, kept in old._pending.items()}
        new._floors = {kind: {k: replace(e) for k, e in kept.items()} for kind, kept in old._floors.items()}
        new._latest = old._latest.copy()
        new._trusted = {kind: {name: ref(twin.stores[name]) for name in kept} for kind, kept in old._trusted.items()}
        return twin


def run(work: Coroutine[Any, Any, T]) -> T:
    """The value of what waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("it waits")
