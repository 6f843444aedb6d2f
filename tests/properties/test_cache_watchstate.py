"""WatchState against a model of a server that goes wrong in any order, and against a model of itself.

The driver here is a loop of ten lines: no sockets, no tasks, time is a number. Every step that the machine takes is
compared with what `Expected` says, which was written from the rules and shares no code with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.cache.backoff import LONGEST_RETRY_AFTER
from kopylite.cache.record import BadFrame, Bookmark, Page, Record, WatchFrame
from kopylite.cache.states import Listing, Streaming, Waiting
from kopylite.cache.steps import (
    ClosedEarly,
    FetchPage,
    FindKind,
    OpenWatch,
    Probe,
    Replacement,
    Silence,
    Sleep,
    Verdict,
    WatchStep,
    WentBack,
)
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
from tests.sizes import examples

FAULTS = [
    "break", "clean", "ended", "refuse", "forbid", "expire", "expire http", "garbage", "silent", "busy", "internal",
    "no kind", "reset", "replay", "invalid", "lived", "delivers and breaks", "delivers garbage", "404",
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

    def page(self, step: FetchPage) -> Page:
        """Two objects of the state that the first page showed."""
        version, _, at = step.continue_token.partition(":")
        state = self.snapshots.setdefault(int(version or self.version), list(self.objects.values()))
        begin, end = int(at or 0), int(at or 0) + 2 if step.limit else len(state)
        first = version or str(self.version)
        # Later pages of this server show where it is by then: only the first page's version misses nothing.
        return Page(state[begin:end], str(self.version), f"{first}:{end}" if end < len(state) else "")

    def reset(self) -> None:
        """Restored from a backup of long ago."""
        self.version -= 500
        self.objects = {name: record(name, self.version, f"r{self.version}") for name in list(self.objects)[:1]}
        self.history.clear()
        self.snapshots.clear()


@dataclass
class Expected:
    """What has to come next, by the rules; each rule is one line of facts, and knows nothing of states.

    Attributes:
        task: find, list, probe or watch.
        again: discovery has answered before.
        version: where a watch has to begin.
        token, first, whole: of the list in progress.
        refused: the server does not stream initial states.
        broken: initial streams in a row that did not end.
        strikes: unreadable or refused in the open watch, since the last event.
        pause: whether a Sleep may come (None), must not (False) or must (True).
    """

    task: str = "find"
    again: bool = False
    version: str = ""
    token: str = ""
    first: str = ""
    whole: bool = False
    refused: bool = False
    broken: int = 0
    strikes: int = 0
    pause: bool | None = False
    delivered: bool = False
    opened: float | None = None
    initial: bool = False

    def check(self, step: WatchStep) -> None:
        if isinstance(step, Sleep):
            assert self.pause is not False, "it sleeps without a reason"
            self.pause = False
            return
        assert self.pause is not True, "it does not wait"
        self.pause = False
        if self.task == "find":
            assert step == FindKind(self.again)
        elif self.task == "probe":
            assert step == Probe()
        elif self.task == "watch":
            assert isinstance(step, OpenWatch)
            assert (step.version, step.initial) == (self.version, False)
        elif self.token or self.whole or self.refused or self.broken >= 2:
            assert step == FetchPage(0 if self.whole else 500, self.token)
        else:
            assert isinstance(step, OpenWatch)
            assert (step.version, step.initial) == ("", True)
        if isinstance(step, OpenWatch):
            self.initial, self.opened, self.delivered = step.initial, None, False

    def find(self, there: bool) -> None:
        self.task, self.again = ("list" if there else "find"), True
        self.pause = None if there else True
        self.token, self.whole = "", False
        if there:
            self.pause = False

    def page(self, page: Page) -> None:
        self.first = self.first if self.token else page.resource_version
        self.token = page.continue_token
        if not self.token:
            self.whole_state(self.first)

    def whole_state(self, version: str) -> None:
        self.task, self.version, self.broken, self.strikes = "watch", version, 0, 0
        self.token, self.whole, self.initial, self.delivered = "", False, False, False

    def event(self, version: str) -> None:
        self.version, self.strikes, self.delivered = version, 0, True

    def probe(self, older: bool) -> None:
        self.task = "list" if older else "watch"
        if older:
            self.strikes, self.pause = 0, None

    def fail(self, error: Exception, now: float) -> None:
        is_open, self.opened_at = self.opened is not None, self.opened
        age = now - self.opened if self.opened is not None else 0.0
        self.opened = None
        connection = isinstance(error, StreamBroken | ConnectionFailed)
        refusal = isinstance(error, Invalid | BadRequest)
        self.pause = None
        if isinstance(error, KindNotFound):
            self.task, self.token, self.whole, self.again = "find", "", False, True
        elif self.task == "list" and self.initial:
            self.refused = self.refused or refusal
            self.broken += not refusal and not isinstance(error, ConnectionFailed | TooManyRequests)
        elif self.task == "list" and self.whole:
            self.whole, self.token = False, ""
        elif self.task == "list" and self.token and (refusal or isinstance(error, Expired)):
            self.whole, self.token = True, ""
        elif self.task == "watch":
            if isinstance(error, BadFrame) or (is_open and isinstance(error, ApiError)):
                self.strikes += not isinstance(error, TooManyRequests)
            if refusal or isinstance(error, Expired | WentBack) or self.strikes == 3 or not self.version:
                self.task, self.strikes = "list", 0
            elif connection and not isinstance(error, ClosedEarly):
                self.task = "probe"
                if is_open and not isinstance(error, Silence) and (self.delivered or age >= 5):
                    self.pause = False
        self.initial = False


@dataclass
class Driver:
    """Does what the state says, against the models."""

    server: Server
    state: WatchState
    store: Store = field(default_factory=Store)
    now: float = 0.0
    requests: int = 0
    live: int | None = None  # the version up to which the open watch has sent, if one is open
    expected: Expected = field(default_factory=Expected)

    def step(self, fault: str | None) -> None:
        """One step; with a fault, unless it is a pause."""
        if self.live is not None:
            self.read(fault)
            return
        step = self.state.next(0.5)
        self.expected.check(step)
        if isinstance(step, Sleep):
            assert 0 < step.seconds <= LONGEST_RETRY_AFTER
            self.now += step.seconds
            return
        self.requests += 1
        try:
            self.take(step, fault)
        except (ApiError, StreamBroken, ConnectionFailed, KindNotFound) as error:
            self.failed(error)

    def failed(self, error: Exception) -> None:
        self.live = None
        self.state.failed(error, self.now, 0.5)
        self.expected.fail(error, self.now)

    def take(self, step: WatchStep, fault: str | None) -> None:
        server, state = self.server, self.state
        if isinstance(step, OpenWatch):
            state.opening(step, self.now)
        raise_fault(fault)
        if isinstance(step, FindKind):
            gone = step.again and not server.served
            self.expected.find(not gone)
            if gone:
                self.replace(state.kind_missing(KindNotFound("gone"), self.now, 0.5))
            else:
                state.found()
        elif not server.served or fault == "404":
            raise KindNotFound("404")
        elif isinstance(step, FetchPage):
            page = server.page(step)
            self.replace(state.listed(page))
            self.expected.page(page)
        elif isinstance(step, Probe):
            self.expected.probe(server.version < int(state.version))
            state.probed(str(server.version), self.now, 0.5)
        elif isinstance(step, OpenWatch):
            self.open(step)

    def open(self, step: OpenWatch) -> None:
        server, state = self.server, self.state
        if step.initial and not server.streaming:
            raise Invalid("sendInitialEvents is forbidden")
        state.opened(self.now)
        self.expected.opened = self.now
        if step.initial:
            for item in server.objects.values():
                self.receive(("ADDED", item))
            self.receive(("BOOKMARK", Bookmark(str(server.version), True)))
        self.live = server.version if step.initial else int(step.version)

    def read(self, fault: str | None) -> None:
        """What the open watch brings."""
        state, server = self.state, self.server
        assert self.live is not None
        self.now += {"lived": 7, "clean": 0.5}.get(fault or "", 1.0)
        try:
            if fault in ("clean", "ended"):
                self.live = None
                error = state.closed(self.now, 0.5)
                age, delivered = self.now - (self.expected.opened or 0.0), self.expected.delivered
                assert (error is None) == (delivered or age >= 1)
                if error is not None:
                    self.expected.fail(error, self.now)
                self.expected.opened = None
            elif fault == "silent" or server.version < self.live:  # a watch from the future brings nothing
                self.live = None
                self.now = state.deadline()
                self.expected.fail(state.silent(self.now, 0.5), self.now)
            elif fault == "replay" and server.history:
                _, word, item = server.history[0]
                self.receive((word, item))
            elif fault == "no kind":
                raise StreamBroken("the server closes the watches of a kind that goes")
            else:
                self.deliver(fault)
        except (ApiError, StreamBroken, ConnectionFailed) as error:
            self.failed(error)

    def deliver(self, fault: str | None) -> None:
        assert self.live is not None
        raise_fault(fault)
        if not self.server.served:
            raise StreamBroken("gone")
        for version, word, item in list(self.server.history):
            if version > self.live:
                self.live = version
                self.receive((word, item))
        if fault == "lived":
            raise StreamBroken("a load balancer cuts idle connections")
        if fault == "delivers and breaks":
            raise StreamBroken("reset by peer")
        if fault == "delivers garbage":
            raise BadFrame("garbage")

    def receive(self, frame: WatchFrame) -> None:
        word, content = frame
        collecting = self.expected.initial
        verdict = self.state.received(frame)
        if verdict is Verdict.REPLACE:
            assert isinstance(content, Bookmark)
            self.replace(self.state.snapshot())
            self.expected.whole_state(content.resource_version)
            self.expected.opened = self.now
        elif verdict is Verdict.APPLY:
            assert isinstance(content, Record)
            assert not collecting
            if content.resource_version != self.expected.version:
                self.expected.event(content.resource_version)
            if word == "DELETED":
                self.store.remove(content.key, content)
            else:
                self.store.put(content)

    def replace(self, snapshot: Replacement | None) -> None:
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


@settings(max_examples=examples(400))
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


# What may happen to one open watch: events first or not, and then an end.
ENDS = ["break", "clean", "ended", "garbage", "internal", "busy", "expire", "invalid", "silent", "lived"]


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(ENDS)), max_size=15), st.booleans())
def test_each_end_of_a_watch_leads_where_the_rules_say(ends: list[tuple[bool, str]], streaming: bool) -> None:
    """As above, but every fault meets an open watch: what counts in a row is counted in a row."""
    server = Server(streaming=streaming)
    server.change("a")
    driver = Driver(server, WatchState())
    for delivers, end in [*ends, (True, "break")]:
        while driver.live is None:
            driver.step(None)
        if delivers:
            server.change("a")
            driver.step(None)
        driver.step(end)
    while driver.live is None:
        driver.step(None)
    driver.step(None)
    assert [item.resource_version for item in driver.store.list()] == [str(server.version)]


# What may happen to one try of an initial state.
TRIES = ["break", "refuse", "forbid", "busy", "garbage", "silent", "expire", "internal", None]


def is_listing(driver: Driver) -> bool:
    """Whether the next step is to ask for a page, or to open an initial stream."""
    state = driver.state.state
    if isinstance(state, Waiting) and state.seconds == 0:
        state = state.then
    return driver.live is None and isinstance(state, Listing | Streaming)


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(TRIES), max_size=15), st.booleans())
def test_each_end_of_a_list_leads_where_the_rules_say(tries: list[str | None], streaming: bool) -> None:
    """Faults meet the lists and initial streams, with changes between the pages; a list that came is forced again."""
    server = Server(streaming=streaming)
    driver = Driver(server, WatchState())
    for name in "abcdef":
        server.change(name)
    for fault in tries:
        while not is_listing(driver):
            driver.step("expire" if driver.live is not None else None)
        server.change("a")
        driver.step(fault)
    for _ in range(40):
        driver.step(None)
    mine = {item.name: item.resource_version for item in driver.store.list()}
    assert mine == {name: item.resource_version for name, item in server.objects.items()}


@settings(max_examples=examples(100))
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
    # What lives for 7 s may be opened again at once: four requests for each of those. What the server itself ends after
    # a second is opened again at once as well, as by client-go.
    most = 3600 / 7 * 4 if "lived" in faults else 700
    # Half a second of other faults before a clean end makes that one of these, too.
    ends_late = "ended" in faults or ("clean" in faults and set(faults) != {"clean"})
    assert driver.requests < (3600 + most if ends_late else most)
