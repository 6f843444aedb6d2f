"""WatchState against a model of a server that goes wrong in any order.

The driver here is a loop of ten lines: no sockets, no tasks, time is a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.cache.backoff import LONGEST_RETRY_AFTER
from kopylite.cache.record import BadFrame, Bookmark, Frame, Page, Record
from kopylite.cache.steps import FindKind, ListPage, OpenWatch, Probe, Sleep, Snapshot, Verdict
from kopylite.cache.store import Store
from kopylite.cache.watchstate import WatchState
from kopylite.errors import (
    ApiError,
    BadRequest,
    ConnectionFailed,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    KindNotFound,
    StreamBroken,
    TooManyRequests,
)

FAULTS = [
    "break", "clean", "refuse", "forbid", "expire", "expire http", "garbage", "silent", "busy", "internal",
    "no kind", "reset", "replay", "invalid",
]  # fmt: skip


def record(name: str, version: int, uid: str) -> Record:
    return Record("ns", name, uid, str(version), 1, None, (), (), None, b"{}")


@dataclass
class Server:
    """Objects, their history, and what will go wrong next."""

    version: int = 100_000
    objects: dict[str, Record] = field(default_factory=dict)
    history: list[tuple[int, str, Record]] = field(default_factory=list)
    snapshots: dict[int, list[Record]] = field(default_factory=dict)
    served: bool = True
    streaming: bool = True

    def change(self, name: str) -> None:
        self.version += 1
        old = self.objects.get(name)
        self.objects[name] = record(name, self.version, old.uid if old else f"u{self.version}")
        self.history.append((self.version, "MODIFIED" if old else "ADDED", self.objects[name]))

    def delete(self, name: str) -> None:
        old = self.objects.pop(name, None)
        if old is not None:
            self.version += 1
            self.history.append((self.version, "DELETED", record(name, self.version, old.uid)))

    def page(self, step: ListPage) -> Page:
        """Two objects of the state that the first page showed."""
        version, _, at = step.continue_token.partition(":")
        state = self.snapshots.setdefault(int(version or self.version), list(self.objects.values()))
        begin, end = int(at or 0), int(at or 0) + 2 if step.limit else len(state)
        shown = version or str(self.version)
        return Page(state[begin:end], shown, f"{shown}:{end}" if end < len(state) else "")

    def reset(self) -> None:
        """Restored from a backup of long ago."""
        self.version -= 500
        self.objects = {name: record(name, self.version, f"r{self.version}") for name in list(self.objects)[:1]}
        self.history.clear()
        self.snapshots.clear()


@dataclass
class Driver:
    """Does what the state says, against the model."""

    server: Server
    state: WatchState
    store: Store = field(default_factory=Store)
    now: float = 0.0
    requests: int = 0
    live: int | None = None  # the version up to which the open watch has sent, if one is open

    def step(self, fault: str | None) -> None:
        """One step; with a fault, unless it is a pause."""
        if self.live is not None:
            self.read(fault)
            return
        step = self.state.next(0.5)
        if isinstance(step, Sleep):
            assert 0 < step.seconds <= LONGEST_RETRY_AFTER
            self.now += step.seconds
            return
        self.requests += 1
        try:
            self.take(step, fault)
        except (ApiError, StreamBroken, ConnectionFailed, KindNotFound) as error:
            self.live = None
            self.state.failed(error, self.now, 0.5)

    def take(self, step: object, fault: str | None) -> None:
        server, state = self.server, self.state
        if isinstance(step, OpenWatch):
            state.opening(step, self.now)
        raise_fault(fault)
        if isinstance(step, FindKind):
            if step.again and not server.served:
                self.replace(state.kind_missing(KindNotFound("gone"), self.now, 0.5))
            else:
                state.found()
        elif not server.served:
            raise KindNotFound("404")
        elif isinstance(step, ListPage):
            self.replace(state.listed(server.page(step)))
        elif isinstance(step, Probe):
            state.probed(str(server.version), self.now)
        elif isinstance(step, OpenWatch):
            if step.initial and not server.streaming:
                raise Invalid("sendInitialEvents is forbidden")
            state.opened(self.now)
            if step.initial:
                for item in server.objects.values():
                    self.receive(("ADDED", item))
                self.receive(("BOOKMARK", Bookmark(str(server.version), True)))
            self.live = server.version if step.initial else int(step.version)

    def read(self, fault: str | None) -> None:
        """What the open watch brings."""
        state, server = self.state, self.server
        assert self.live is not None
        self.now += 1
        try:
            if fault == "clean":
                self.live = None
                state.closed(self.now, 0.5)
            elif fault == "silent" or server.version < self.live:  # a watch from the future brings nothing
                self.live = None
                self.now = state.deadline()
                state.silent(self.now, 0.5)
            elif fault == "replay" and server.history:
                _, word, item = server.history[0]
                self.receive((word, item))
            elif fault == "no kind":
                raise StreamBroken("the server closes the watches of a kind that goes")
            else:
                raise_fault(fault)
                if not server.served:
                    raise StreamBroken("gone")
                for version, word, item in server.history:
                    if version > self.live:
                        self.receive((word, item))
                        self.live = version
        except (ApiError, StreamBroken, ConnectionFailed) as error:
            self.live = None
            state.failed(error, self.now, 0.5)

    def receive(self, frame: Frame) -> None:
        verdict = self.state.received(frame)
        word, content = frame
        if verdict is Verdict.REPLACE:
            self.replace(self.state.snapshot())
        elif verdict is Verdict.APPLY:
            assert isinstance(content, Record)
            if word == "DELETED":
                self.store.remove(content.key, content)
            else:
                self.store.put(content)

    def replace(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            for _ in self.store.replace(snapshot.records, snapshot.initial):
                pass


def raise_fault(fault: str | None) -> None:
    errors = {
        "break": StreamBroken("reset by peer"),
        "refuse": ConnectionFailed("refused"),
        "forbid": Forbidden("no"),
        "expire": Expired("too old"),
        "expire http": Expired("too old"),
        "garbage": BadFrame("garbage"),
        "busy": TooManyRequests("slow down", retry_after=1000.0),
        "internal": InternalError("oops"),
        "invalid": BadRequest("what?"),
    }
    if fault in errors:
        raise errors[fault]


actions = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from("abcde")),
        st.tuples(st.just("delete"), st.sampled_from("abcde")),
        st.tuples(st.just("step"), st.none()),
        st.tuples(st.just("step"), st.sampled_from(FAULTS)),
        st.tuples(st.just("serve"), st.booleans()),
    ),
    max_size=60,
)


@settings(max_examples=400, deadline=None)
@given(actions, st.booleans())
def test_whatever_goes_wrong_the_store_ends_up_equal_to_the_server(
    steps: list[tuple[str, object]], streaming: bool
) -> None:
    server = Server(streaming=streaming)
    driver = Driver(server, WatchState())
    for word, what in steps:
        if word == "change":
            server.change(str(what))
        elif word == "delete":
            server.delete(str(what))
        elif word == "serve":
            server.served = bool(what)
            for name in [] if what else list(server.objects):
                server.delete(name)
        elif what == "reset":
            server.reset()
            driver.step("break")
        else:
            driver.step(None if what is None else str(what))
    server.served = True
    server.change("last")
    for _ in range(40):
        driver.step(None)
    assert {item.name: item.resource_version for item in driver.store.list()} == {
        name: item.resource_version for name, item in server.objects.items()
    }
    assert driver.state.problem(driver.now) is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=4), st.booleans())
def test_no_fault_that_stays_makes_a_hot_loop(faults: list[str], streaming: bool) -> None:
    server = Server(streaming=streaming)
    server.change("a")
    driver = Driver(server, WatchState())
    for _ in range(12):
        driver.step(None)
    count, begin = 0, driver.now
    driver.requests = 0
    while driver.now - begin < 3600 and count < 5000:
        driver.step(faults[count % len(faults)])
        count += 1
    # At 30 s on average half an hour of retries makes 120 requests; each may be a probe, a list and a watch.
    assert driver.requests < 700
