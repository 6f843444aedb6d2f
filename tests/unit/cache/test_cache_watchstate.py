"""Single decisions of the machine; its histories are in tests/properties/test_cache_watchstate.py."""

from __future__ import annotations

from kopylite.cache.record import Page
from kopylite.cache.steps import FindKind, ListPage, OpenWatch, Probe, Sleep
from kopylite.cache.watchstate import WatchState
from kopylite.errors import ConnectionFailed, Expired, StreamBroken


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
    assert isinstance(state.next(0.5), ListPage)
    state.listed(Page([], "120", ""))
    expire(state, 1061.0)
    pause = state.next(0.5)
    assert isinstance(pause, Sleep)
    assert pause.seconds > 10
