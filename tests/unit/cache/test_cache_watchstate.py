"""Single decisions of the machine; its histories are in tests/properties/test_cache_watchstate.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.record import Bookmark, Page, WatchFrame
from kopylite.cache.steps import FetchPage, FindKind, OpenWatch, Phase, Probe, Sleep, Verdict, WentBack
from kopylite.cache.watchstate import IDLE_LIMIT, MARKER_QUIET_LIMIT, OPEN_LIMIT, WatchState
from kopylite.errors import ConnectionFailed, Expired, Forbidden, KindNotFound, StreamBroken
from tests.unit.cache.things import thing


def expire(state: WatchState, now: float) -> None:
    step = state.next(0.5)
    assert isinstance(step, OpenWatch)
    state.opening(step, now)
    state.opened(now)
    state.failed(Expired("too old resource version"), now, 0.5)


def test_after_an_outage_an_expired_version_leads_to_a_list_at_once_but_a_storm_of_them_does_not() -> None:
    state = WatchState(streaming=False)
    assert isinstance(state.next(0.5), FindKind)
    state.found()
    state.next(0.5)
    state.listed(Page([], "100", ""))
    watch = state.next(0.5)
    assert isinstance(watch, OpenWatch)
    state.opening(watch, 0.0)
    state.opened(0.0)
    state.failed(StreamBroken("the server went away"), 1000.0, 0.5)
    for _ in range(7):
        assert isinstance(state.next(0.5), Probe)
        state.failed(ConnectionFailed("refused"), 1000.0, 0.5)
        assert isinstance(state.next(0.5), Sleep)
    assert isinstance(state.next(0.5), Probe)
    state.probed("120", 1060.0)
    expire(state, 1060.0)
    assert isinstance(state.next(0.5), FetchPage)
    state.listed(Page([], "120", ""))
    expire(state, 1061.0)
    pause = state.next(0.5)
    assert isinstance(pause, Sleep)
    assert pause.seconds > 10


def watching(now: float = 0.0) -> WatchState:
    """With an open watch at version 100."""
    state = WatchState(streaming=False)
    state.next(0.5)
    state.found()
    state.next(0.5)
    state.listed(Page([], "100", ""))
    open_watch(state, now)
    return state


def open_watch(state: WatchState, now: float) -> None:
    step = state.next(0.5)
    assert isinstance(step, OpenWatch)
    state.opening(step, now)
    state.opened(now)


def test_a_watch_that_lived_for_a_minute_lets_the_next_list_be_forced_at_once() -> None:
    state = watching()
    for now in (1.0, 61.5, 122.0):
        state.failed(Expired("too old resource version"), now, 0.5)
        assert isinstance(state.next(0.5), FetchPage), "each watch since the last list has lived for a minute"
        state.listed(Page([], "100", ""))
        open_watch(state, now)


def test_a_kind_that_was_away_long_ago_is_looked_for_as_one_that_never_was() -> None:
    state = watching()
    for now in (0.0, 1000.0):
        state.failed(KindNotFound("404"), now + 10, 0.5)
        assert state.next(0.5) == FindKind(True), "at once"
        for passed in (0.0, 1.0, 300.0):
            state.kind_missing(KindNotFound("gone"), now + 10 + passed, 0.5)
            pause = state.next(0.5)
            assert isinstance(pause, Sleep)
            assert (pause.seconds <= 1) is (passed < 300)
            assert state.next(0.5) == FindKind(True)
        state.found()
        state.next(0.5)
        state.listed(Page([], "100", ""))
        open_watch(state, now + 400)


def test_silence_is_death_where_a_bookmark_has_come_and_before_the_watch_is_open() -> None:
    state = watching()
    assert not state.silence_is_death
    assert state.received(("BOOKMARK", Bookmark("101", False))) is Verdict.ADVANCE
    assert state.silence_is_death
    state.failed(StreamBroken("reset"), 500.0, 0.5)
    state.next(0.5)
    state.probed("101", 500.0, 0.5)
    open_watch(state, 500.0)
    assert state.silence_is_death, "it is remembered of the kind"
    fresh = watching()
    fresh.closed(10.0, 0.5)
    step = fresh.next(0.5)
    assert isinstance(step, OpenWatch)
    fresh.opening(step, 10.0)
    assert fresh.silence_is_death, "headers come at once"


def test_a_phase_says_for_people_what_is_going_on() -> None:
    state = WatchState(streaming=False)
    phases = [state.phase]
    state.next(0.5)
    state.kind_missing(KindNotFound("Thing"), 0.0, 0.5)
    phases.append(state.phase)
    state.next(0.5)
    state.next(0.5)
    phases.append(state.phase)
    state.found()
    phases.append(state.phase)
    state.next(0.5)
    state.listed(Page([], "100", ""))
    open_watch(state, 0.0)
    phases.append(state.phase)
    state.failed(StreamBroken("cut"), 1.0, 0.5)
    phases.append(state.phase)
    assert phases == [
        Phase.FINDING_KIND, Phase.WAITING_FOR_KIND, Phase.WAITING_FOR_KIND,
        Phase.LISTING, Phase.WATCHING, Phase.RETRYING,
    ]  # fmt: skip


def test_a_watch_that_is_about_to_be_opened_counts_as_one_unless_something_is_wrong() -> None:
    state = WatchState(streaming=False)
    state.next(0.5)
    state.found()
    state.next(0.5)
    state.listed(Page([], "100", ""))
    phases = [state.phase]
    state.next(0.5)
    state.failed(Forbidden("no"), 0.0, 0.5)
    phases.append(state.phase)
    state.next(0.5)
    state.next(0.5)
    phases.append(state.phase)  # it is not open yet
    assert phases == [Phase.WATCHING, Phase.RETRYING, Phase.RETRYING]


def test_a_kind_that_is_found_and_fails_in_another_way_is_not_waited_for() -> None:
    state = WatchState(streaming=False)
    state.kind_missing(KindNotFound("Thing"), 0.0, 0.5)
    assert state.phase is Phase.WAITING_FOR_KIND
    state.found()
    state.failed(Forbidden("no"), 1.0, 0.5)
    assert (state.phase, isinstance(state.next(0.5), Sleep)) == (Phase.RETRYING, True)


def test_what_a_stream_sends_before_its_mark_is_collected_and_told_to_nobody() -> None:
    state = WatchState(streaming=True)
    state.next(0.5)
    state.found()
    open_watch(state, 0.0)
    frames: list[WatchFrame] = [
        ("ADDED", thing("a", 1)), ("ADDED", thing("b", 2)), ("DELETED", thing("a", 3)), ("MODIFIED", thing("b", 4)),
        ("DELETED", thing("never-seen", 5)), ("BOOKMARK", Bookmark("6", False)),
    ]  # fmt: skip
    assert {state.received(frame) for frame in frames} == {Verdict.COLLECT}
    assert state.received(("BOOKMARK", Bookmark("7", True))) is Verdict.REPLACE
    snapshot = state.snapshot()
    assert snapshot.version == "7"
    assert [record.resource_version for space in snapshot.records.values() for record in space.values()] == ["4"]


def test_a_version_that_goes_back_is_known_by_its_number_and_what_is_no_number_is_believed() -> None:
    back = {}
    for version in ("99", "099", "100", "101", "1000", "x", "aaaa", "", "20"):
        state = watching()
        try:
            back[version] = state.received(("MODIFIED", thing("a", version))) is not Verdict.APPLY
        except WentBack:
            back[version] = True
    assert [version for version, refused in back.items() if refused] == ["99", "099", "20"]


def test_a_deadline_counts_from_the_request_then_from_the_answer_and_then_from_the_last_bytes() -> None:
    state = WatchState(streaming=True)
    state.next(0.5)
    state.found()
    step = state.next(0.5)
    assert isinstance(step, OpenWatch)
    state.opening(step, 5.0)
    deadlines = [state.deadline()]
    state.opened(7.0)
    deadlines.append(state.deadline())
    state.received(("BOOKMARK", Bookmark("100", True)))
    state.snapshot()
    deadlines.append(state.deadline())
    state.heard = 20.0
    deadlines.append(state.deadline())
    assert deadlines == [5.0 + OPEN_LIMIT, 7.0 + MARKER_QUIET_LIMIT, 7.0 + IDLE_LIMIT, 20.0 + IDLE_LIMIT]


def test_what_was_stored_goes_with_its_kind_once() -> None:
    state = watching()
    gone = state.kind_missing(KindNotFound("Thing"), 0.0, 0.5)
    assert gone is not None
    assert (gone.gone, gone.records, gone.initial) == (True, {}, False)
    assert state.kind_missing(KindNotFound("Thing"), 1.0, 0.5) is None


def test_a_stream_that_ended_too_early_says_before_what() -> None:
    early = watching().closed(0.5, 0.5)
    state = WatchState(streaming=True)
    state.next(0.5)
    state.found()
    open_watch(state, 0.0)
    assert "before the first event" in str(early)
    assert "before the initial state was complete" in str(state.closed(60.0, 0.5))


def test_only_the_first_whole_state_is_initial() -> None:
    state = WatchState(streaming=False)
    state.next(0.5)
    state.found()
    state.next(0.5)
    first = state.listed(Page([], "100", ""))
    expire(state, 0.0)
    state.next(0.5)
    second = state.listed(Page([], "200", ""))
    assert first is not None
    assert second is not None
    assert (first.initial, second.initial) == (True, False)


@given(st.floats(0, 1, exclude_max=True))
def test_a_watch_is_asked_for_five_to_ten_minutes(chance: float) -> None:
    state = WatchState(streaming=False)
    state.next(0.5)
    state.found()
    state.next(0.5)
    state.listed(Page([], "100", ""))
    step = state.next(chance)
    assert isinstance(step, OpenWatch)
    assert step.timeout_seconds == 300 + int(300 * chance)
