"""Each failure by itself: what comes next, what stays known. Histories: tests/properties/test_cache_watchstate.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kopylite.cache.backoff import FIRST_DELAY, LONGEST_DELAY, LONGEST_RETRY_AFTER
from kopylite.cache.record import BadFrame
from kopylite.cache.states import Active, FindingKind, Listing, Memory, Probing, State, Streaming, Waiting, Watching
from kopylite.cache.steps import ClosedEarly, Problem, Silence, WentBack
from kopylite.cache.transitions import (
    HEALTHY_AFTER,
    MOST_BROKEN_INITIAL_STREAMS,
    MOST_STRIKES,
    SETTLED_AFTER,
    begin_list,
    closed,
    complete,
    failed,
    is_routine,
    kind_missing,
    lived,
    opened,
    probed,
    settled,
)
from kopylite.errors import (
    ApiError,
    BadRequest,
    Cause,
    ConnectionFailed,
    Expired,
    Forbidden,
    Invalid,
    KindNotFound,
    NotFound,
    StreamBroken,
    TooManyRequests,
)

OLD = Memory(streaming=False)
ERRORS: list[Exception] = [
    Expired("old"), Invalid("no"), BadRequest("no"), Forbidden("no"), NotFound("no"), TooManyRequests("slow"),
    ApiError("broken"), ConnectionFailed("refused"), StreamBroken("cut"), ClosedEarly("at once"), Silence("nothing"),
    WentBack("restored"), KindNotFound("no such kind"), RuntimeError("a bug"),
]  # fmt: skip
STATES: list[Active] = [
    FindingKind(), Listing(), Listing(whole=True), Listing(token="t", version="1"), Streaming(), Streaming(0.0),
    Probing("7"), Watching("7"), Watching("7", 0.0), Watching("7", 0.0, True), Watching("", 0.0),
]  # fmt: skip
memories = st.builds(
    Memory,
    has_state=st.booleans(),
    streaming=st.booleans(),
    failures=st.integers(0, 40),
    lists=st.integers(0, 40),
    strikes=st.integers(0, 4),
    broken_streams=st.integers(0, 3),
    missing_since=st.none() | st.just(0.0),
)


def then(state: State) -> Active:
    return state.then if isinstance(state, Waiting) else state


def seconds(state: State) -> float:
    return state.seconds if isinstance(state, Waiting) else 0.0


def test_only_an_open_watch_lives_and_it_has_settled_after_a_while() -> None:
    assert lived(Watching("7", 10.0), 12.5) == 2.5
    assert lived(Watching("7"), 12.5) is None
    assert lived(Listing(), 12.5) is None
    assert settled(Watching("7", 0.0), SETTLED_AFTER)
    assert not settled(Watching("7", 0.0), SETTLED_AFTER - 0.1)
    assert not settled(Listing(), 1e9)


def test_the_whole_state_is_streamed_unless_the_server_cannot_or_has_broken_off_too_often() -> None:
    assert begin_list(Memory()) == Streaming()
    assert begin_list(Memory(broken_streams=MOST_BROKEN_INITIAL_STREAMS - 1)) == Streaming()
    assert begin_list(Memory(broken_streams=MOST_BROKEN_INITIAL_STREAMS)) == Listing()
    assert begin_list(OLD) == Listing()


def test_a_whole_state_ends_what_kept_it_from_coming_but_not_the_problem() -> None:
    problem = Problem(Expired("old"), 1.0)
    before = Memory(broken_streams=1, strikes=2, failures=3, lists=4, problem=problem)
    assert complete(before) == Memory(has_state=True, failures=3, lists=4, problem=problem)


def test_a_missing_kind_is_looked_for_the_more_rarely_the_longer_it_is_away() -> None:
    state, memory = kind_missing(Memory(has_state=True), KindNotFound("x"), 100.0, 1.0)
    assert (state, memory.has_state, memory.missing_since) == (Waiting(1.0, FindingKind()), False, 100.0)
    assert memory.problem is not None
    state, memory = kind_missing(memory, KindNotFound("x"), 120.0, 1.0)
    assert (seconds(state), memory.missing_since) == (4.0, 100.0)
    assert memory.problem is not None
    assert memory.problem.since == 100.0
    assert seconds(kind_missing(memory, KindNotFound("x"), 1e6, 1.0)[0]) == 10.0


def test_an_open_watch_ends_a_problem_of_one_failure_and_keeps_one_of_more_until_it_has_worked() -> None:
    problem = Problem(Silence("nothing"), 0.0)
    _, once = opened(Watching("7"), Memory(failures=1, missing_since=3.0, problem=problem), 9.0)
    assert (once.problem, once.missing_since, once.failures) == (None, None, 1)
    state, twice = opened(Watching("7"), Memory(failures=2, problem=problem), 9.0)
    assert (state, twice.problem) == (Watching("7", 9.0), problem)
    assert opened(Streaming(), Memory(failures=2), 9.0) == (Streaming(9.0, 9.0), Memory(failures=2))
    with pytest.raises(AssertionError):
        opened(Listing(), Memory(), 9.0)


def test_a_probe_goes_on_where_the_watch_was_or_lists_at_once_when_the_server_went_back() -> None:
    assert probed(Probing("7"), OLD, "9", False, 0.0, 0.5) == (Watching("7"), OLD)
    state, memory = probed(Probing("7"), OLD, "3", True, 4.0, 0.5)
    assert (state, memory.lists) == (Listing(), 1)
    assert memory.problem is not None
    assert isinstance(memory.problem.error, WentBack)
    assert seconds(probed(Probing("7"), memory, "2", True, 4.0, 0.5)[0]) > 0, "a second time it is backed off"


@pytest.mark.parametrize(
    ("state", "now", "expected"),
    [
        (Watching("7", 0.0), 0.5, None),
        (Watching("7", 0.0), 1.0, Watching("7")),
        (Watching("7", 0.0, True), 0.1, Watching("7")),
        (Watching("", 0.0), 1.0, Listing()),
    ],
)
def test_a_watch_that_the_server_ends_is_opened_again_unless_it_was_ended_at_once(
    state: Watching, now: float, expected: Active | None
) -> None:
    found = closed(state, OLD, now)
    assert (found if found is None else found[0]) == expected


def test_what_a_watch_has_shown_decides_what_is_forgiven() -> None:
    before = replace(OLD, failures=3, strikes=2, lists=4, problem=Problem(Expired("old"), 0.0))
    forgiven = {}
    for name, state, age in [
        ("young", Watching("7", 0.0), 1.0),
        ("settled", Watching("7", 0.0), SETTLED_AFTER),
        ("progressed", Watching("7", 0.0, True), 1.0),
        ("healthy", Watching("7", 0.0), HEALTHY_AFTER),
    ]:
        found = closed(state, before, age)
        assert found is not None
        memory = found[1]
        forgiven[name] = (memory.failures, memory.strikes, memory.lists, memory.problem is None)
    assert forgiven == {
        "young": (3, 2, 4, False),
        "settled": (0, 2, 4, True),
        "progressed": (0, 0, 4, True),
        "healthy": (0, 2, 0, True),
    }


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        (Streaming(), Invalid("sendInitialEvents"), Listing()),
        (Streaming(), ConnectionFailed("refused"), Streaming()),
        (Listing(token="t", version="1"), Expired("old token"), Listing(whole=True)),
        (Listing(token="t", version="1"), ConnectionFailed("refused"), Listing(token="t", version="1")),
        (Listing(), Expired("old"), Listing()),
        (Listing(whole=True), StreamBroken("cut"), Streaming()),
        (Watching("7", 0.0), StreamBroken("cut"), Probing("7")),
        (Watching("7", 0.0), ClosedEarly("at once"), Watching("7")),
        (Watching("7"), Forbidden("no"), Watching("7")),
        (Watching("7"), Expired("old"), Streaming()),
        (Watching("7"), ApiError("Too large resource version: 9, current: 8"), Streaming()),
        (Watching("7"), ApiError("x", causes=[Cause("ResourceVersionTooLarge", "x")]), Streaming()),
        (Watching(""), Forbidden("no"), Streaming()),
        (Probing("7"), ConnectionFailed("refused"), Probing("7")),
        (Watching("7"), NotFound("no"), FindingKind()),
        (Listing(), NotFound("no"), FindingKind()),
    ],
)
def test_each_failure_leads_where_it_can_be_mended(state: Active, error: Exception, expected: Active) -> None:
    assert then(failed(state, Memory(), error, 0.5, 0.5)[0]) == expected


def test_a_server_that_does_not_stream_is_listed_at_once_and_asked_for_a_stream_no_more() -> None:
    state, memory = failed(Streaming(), Memory(), Invalid("sendInitialEvents"), 0.0, 0.5)
    assert (state, memory.streaming, memory.failures) == (Listing(), False, 0)


def test_streams_that_break_off_are_counted_and_refused_connections_are_not() -> None:
    assert failed(Streaming(), Memory(), StreamBroken("cut"), 0.0, 0.5)[1].broken_streams == 1
    assert failed(Streaming(), Memory(), ConnectionFailed("refused"), 0.0, 0.5)[1].broken_streams == 0
    assert failed(Streaming(), Memory(), TooManyRequests("slow"), 0.0, 0.5)[1].broken_streams == 0


def test_only_so_many_bad_frames_at_one_version_are_borne() -> None:
    memory, state = OLD, Watching("7", 0.0)
    for strike in range(1, MOST_STRIKES):
        following, memory = failed(state, memory, BadFrame("{"), 0.5, 0.5)
        assert (then(following), memory.strikes) == (Probing("7"), strike)
    assert then(failed(state, memory, BadFrame("{"), 0.5, 0.5)[0]) == Listing()
    assert failed(state, OLD, ApiError("in the stream"), 0.5, 0.5)[1].strikes == 1
    assert failed(state, OLD, TooManyRequests("slow"), 0.5, 0.5)[1].strikes == 0
    assert failed(Watching("7"), OLD, ApiError("not opened"), 0.5, 0.5)[1].strikes == 0


def test_what_a_watch_has_lived_counts_as_waited_and_one_that_progressed_is_opened_at_once() -> None:
    memory = replace(OLD, failures=4)
    full = seconds(failed(Watching("7"), memory, StreamBroken("cut"), 3.0, 0.5)[0])
    assert full == pytest.approx(FIRST_DELAY * 16 * 0.75)
    assert seconds(failed(Watching("7", 0.0), memory, StreamBroken("cut"), 3.0, 0.5)[0]) == pytest.approx(full - 3.0)
    assert failed(Watching("7", 0.0, True), memory, StreamBroken("cut"), 3.0, 0.5)[0] == Probing("7")


def test_nobody_knows_how_long_a_silent_watch_has_worked() -> None:
    memory = replace(OLD, failures=4, lists=3)
    assert failed(Watching("7", 0.0), memory, Silence("nothing"), HEALTHY_AFTER, 0.5)[1].lists == 3
    assert failed(Watching("7", 0.0), memory, Silence("nothing"), HEALTHY_AFTER, 0.5)[1].failures == 5
    assert failed(Watching("7", 0.0), memory, StreamBroken("cut"), HEALTHY_AFTER, 0.5)[1].failures == 1


def test_the_first_list_that_an_expired_version_forces_comes_at_once_and_the_next_ones_later_and_later() -> None:
    memory, pauses = replace(OLD, failures=5), []
    for _ in range(4):
        state, memory = failed(Watching("7"), memory, Expired("old"), 0.0, 0.5)
        assert then(state) == Listing()
        pauses.append(seconds(state))
    assert pauses[0] == 0.0
    assert pauses[1:] == sorted(pauses[1:])
    assert pauses[1] > 0.0


def test_a_404_is_asked_of_discovery_at_once_and_then_more_and_more_rarely() -> None:
    state, memory = failed(Listing(), OLD, NotFound("no"), 10.0, 0.5)
    assert (state, memory.missing_since, memory.failures) == (FindingKind(), 10.0, 1)
    state, memory = failed(Listing(), memory, NotFound("no"), 20.0, 1.0)
    assert (state, memory.missing_since) == (Waiting(2.0, FindingKind()), 10.0)
    assert seconds(failed(Listing(), memory, NotFound("no"), 1e6, 1.0)[0]) == LONGEST_DELAY
    first = failed(Listing(), replace(OLD, failures=2), NotFound("no"), 10.0, 0.5)
    assert seconds(first[0]) == pytest.approx(FIRST_DELAY * 4 * 0.75), "not at once after other failures"


@pytest.mark.parametrize(
    ("state", "error", "routine"),
    [
        (Streaming(), Invalid("sendInitialEvents"), True),
        (Streaming(), StreamBroken("cut"), False),
        (Watching("7", 0.0, True), StreamBroken("cut"), True),
        (Watching("7", 0.0), StreamBroken("cut"), False),
        (Watching("7", -SETTLED_AFTER), StreamBroken("cut"), True),
        (Watching("7", -SETTLED_AFTER), Silence("nothing"), False),
        (Watching("7", -SETTLED_AFTER), WentBack("restored"), False),
        (Watching("7", -SETTLED_AFTER), BadFrame("{"), False),
        (Watching("7", -SETTLED_AFTER), ApiError("broken"), False),
        (Watching("7"), StreamBroken("cut"), False),
        (Listing(), StreamBroken("cut"), False),
    ],
)
def test_what_is_everyday_life_is_told_to_nobody(state: State, error: Exception, routine: bool) -> None:
    assert is_routine(state, error, 0.0) is routine


@given(st.sampled_from(STATES), memories, st.sampled_from(ERRORS), st.floats(0, 100), st.floats(0, 0.99))
def test_whatever_fails_is_tried_again_within_bounds_and_is_known_as_the_problem(
    state: Active, memory: Memory, error: Exception, now: float, chance: float
) -> None:
    following, after = failed(state, memory, error, now, chance)
    assert 0 <= seconds(following) <= LONGEST_DELAY
    assert not isinstance(then(following), Waiting)
    assert after.problem is not None
    assert after.problem.error is error
    assert after.has_state == memory.has_state, "what is known stays usable"
    assert after.failures <= max(memory.failures, memory.lists) + 1, "it is counted once"
    assert isinstance(state, Watching) or after.lists == memory.lists, "only a watch forces a list"


@given(st.sampled_from(STATES), memories, st.sampled_from(ERRORS), st.floats(0, 1e6))
def test_a_server_that_asks_for_a_pause_gets_it_within_reason(
    state: Active, memory: Memory, error: Exception, asked: float
) -> None:
    if not isinstance(error, ApiError) or isinstance(error, NotFound):
        return
    asking = type(error)(error.message, retry_after=asked)
    assert seconds(failed(state, memory, asking, 0.0, 0.5)[0]) >= min(asked, LONGEST_RETRY_AFTER)


def test_nothing_fails_in_a_pause() -> None:
    with pytest.raises(AssertionError, match="nothing is tried"):
        failed(Waiting(1.0, Listing()), Memory(), Expired("old"), 0.0, 0.5)
