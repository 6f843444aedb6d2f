from __future__ import annotations

import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.record import Record, RecordDecoder
from kopylite.controller.pauses import LINE_BURST, Pauses
from kopylite.objects import Kind
from kopylite.reconcile.request import Request
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import PAUSED, RECONCILE_AT, Event, EventType

DECODER = RecordDecoder(Kind("example.com/v1", "Thing"))
KEY = Request("ns", "a")


def thing(annotations: dict[str, str] | None = None, *, going: bool = False, name: str = "a") -> Record:
    metadata = {"name": name, "namespace": "ns", "annotations": annotations or {}}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    return DECODER.record(msgspec.json.encode({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata}))


def change(old: Record | None, new: Record | None, *, initial: bool = False) -> Event:
    kind = EventType.CREATE if old is None else EventType.DELETE if new is None else EventType.UPDATE
    return Event(kind, old, new, initial)


def pauses(released: list[tuple[Request, int]] | None = None, *, told: bool = False) -> Pauses:
    def release(request: Request, priority: int) -> None:
        if released is not None:
            released.append((request, priority))

    return Pauses("things", release, VirtualClock(), told=told)


PLAIN, PAUSE = thing(), thing({PAUSED: "true"})


@pytest.mark.parametrize("then", [PLAIN, None, thing({PAUSED: "true"}, going=True), thing({PAUSED: "false"})])
def test_a_parked_key_is_released_when_its_pause_ends_in_whatever_way(then: Record | None) -> None:
    released: list[tuple[Request, int]] = []
    found = pauses(released)
    assert found.heard(change(PLAIN, PAUSE)) == ""
    assert KEY in found
    found.park(KEY, -100)
    found.park(KEY, 0)
    why = found.heard(change(PAUSE, then))
    assert released == [(KEY, 0)]
    assert bool(why) is (then is not None)
    assert len(found) == 0
    found.heard(change(then, PLAIN))
    assert len(released) == 1


def test_an_object_that_was_paused_asks_for_a_run_although_none_is_parked() -> None:
    found = pauses()
    found.heard(change(None, PAUSE, initial=True))
    assert found.heard(change(PAUSE, PLAIN)) == "not paused any more"


def test_a_pause_asks_for_a_run_only_where_it_is_to_be_told() -> None:
    assert pauses(told=True).heard(change(PLAIN, PAUSE))
    assert not pauses().heard(change(PLAIN, PAUSE))


@given(st.lists(st.sampled_from([None, "", "a", "b", "x" * 5000]), min_size=1))
def test_each_new_value_of_reconcile_at_asks_once(values: list[str | None]) -> None:
    found, old = pauses(), PLAIN
    before: str | None = None
    for value in values:
        new = thing({} if value is None else {RECONCILE_AT: value})
        asked = found.heard(change(old, new))
        assert bool(asked) is (value is not None and value != before)
        assert len(asked) < 300
        assert not found.heard(change(new, new))
        old, before = new, value


def test_what_means_nothing_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    found, odd = pauses(), thing({PAUSED: "yes\x1b[2J" * 1000})
    for event in (change(PLAIN, odd), change(odd, odd), change(odd, thing({PAUSED: "yes\x1b[2J" * 1000, "a": "b"}))):
        assert found.heard(event) == ""
    assert KEY not in found
    (line,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert PAUSED in line.getMessage()
    assert "\x1b" not in line.getMessage()
    assert len(line.getMessage()) < 400


def test_ten_thousand_pauses_at_once_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = pauses()
    for number in range(1000):
        name = f"a-{number}"
        found.heard(change(thing(name=name), thing({PAUSED: "true"}, name=name)))
    assert len(found) == 1000
    assert len(caplog.records) == LINE_BURST


def test_what_was_paused_at_the_start_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = pauses()
    found.heard(change(None, PAUSE, initial=True))
    assert KEY in found
    assert not caplog.records


def test_what_is_let_go_is_not_kept() -> None:
    released: list[tuple[Request, int]] = []
    found = pauses(released)
    found.heard(change(None, PAUSE))
    found.park(KEY, 0)
    found.drop(lambda request: request.namespace == "ns")
    assert len(found) == 0
    found.heard(change(PAUSE, PLAIN))
    assert released == []


def test_a_value_that_means_nothing_is_told_at_the_start_too_and_a_pause_that_was_there_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "kopylite.controller"):
        pauses().heard(change(None, PAUSE, initial=True))
        assert not caplog.messages
        pauses().heard(change(None, thing({PAUSED: "perhaps"}), initial=True))
    [line] = caplog.messages
    assert "not paused: the value 'perhaps'" in line
