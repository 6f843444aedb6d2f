from __future__ import annotations

import logging

import pytest

from kopylite.reconcile import Request
from kopylite.reconcile.causes import FIRST_PAUSE, LONGEST_PAUSE, OVER_SECONDS, Causes, Line, alike

LINE = Line(logging.ERROR, "reconcile failed: boom")


def key(number: int) -> Request:
    return Request("shop", f"a{number}")


def test_one_cause_over_many_keys_and_runs_is_told_once_and_then_as_numbers_that_grow_rarer() -> None:
    causes = Causes()
    told: list[tuple[int, str]] = []
    news = 0
    for second in range(1000):
        for number in range(50):
            news += causes.failed("boom", key(number), float(second), LINE)
        told += [(second, line.text) for line in causes.due(float(second))]
    assert news == 1
    assert [second for second, _ in told] == [10, 30, 70, 150, 310, 610, 910]
    assert told[0][1].startswith("reconcile failed: boom; 549 more times in 10 s, for 50 keys (")
    assert "more times in 20 s, for 50 keys (" in told[1][1]


def test_its_end_is_told_once_all_keys_work_again() -> None:
    causes = Causes()
    for number in range(3):
        causes.failed("boom", key(number), 0.0, LINE)
    causes.worked(key(0))
    causes.worked(key(1))
    assert causes.due(9.0) == [], "one fails still, and its pause is not over"
    causes.worked(key(2))
    [line] = causes.due(9.0)
    assert line == Line(logging.INFO, "over after 0 s, it concerned up to 3 keys at a time: reconcile failed: boom")
    assert causes.due(9.5) == []


def test_a_single_failure_that_was_told_in_full_has_no_end_to_tell() -> None:
    causes = Causes()
    assert causes.failed("boom", key(1), 0.0, LINE)
    causes.worked(key(1))
    assert causes.due(1000.0) == []
    assert len(causes) == 0, "and it is forgotten"


def test_what_fails_and_works_in_turns_is_no_storm_either() -> None:
    causes = Causes()
    lines = 0
    for second in range(300):
        for number in range(10):
            lines += causes.failed("boom", key(number), float(second), LINE)
            causes.worked(key(number))
        lines += len(causes.due(float(second)))
    assert lines <= 6


def test_a_failure_that_nothing_follows_is_told_all_the_same() -> None:
    # A key that is given up does not run again: its line would be missing for ever.
    causes = Causes()
    assert causes.failed("gave up", key(1), 0.0, LINE)
    assert not causes.failed("gave up", key(2), 1.0, LINE)
    assert causes.due(FIRST_PAUSE - 1) == []
    [line] = causes.due(FIRST_PAUSE)
    assert line.level == logging.ERROR
    assert "1 more time in 10 s, for shop/a2" in line.text


def test_at_the_end_everything_is_told() -> None:
    causes = Causes()
    for _ in range(2):
        causes.failed("boom", key(1), 0.0, LINE)
    assert [line.level for line in causes.due(0.1, all_of_them=True)] == [logging.ERROR]


def test_a_key_has_one_cause_at_a_time_and_other_causes_are_news() -> None:
    causes = Causes()
    assert causes.failed("boom", key(1), 0.0, LINE)
    assert causes.failed("bang", key(1), 0.0, LINE)
    assert not causes.failed("boom", key(1), 1.0, LINE)
    causes.worked(key(1))
    texts = [line.text for line in causes.due(1.0 + OVER_SECONDS)]
    assert len(texts) == 1
    assert texts[0].startswith("over after 1 s, it concerned 1 key")


def test_nothing_is_remembered_of_what_is_over() -> None:
    causes = Causes()
    for number in range(1000):
        causes.failed(number, key(number), 0.0, LINE)
        causes.worked(key(number))
    causes.due(LONGEST_PAUSE)
    assert len(causes) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('pods "web-1" is forbidden', 'pods "db-2" is forbidden'),
        ("no image in shop/a1", "no image in shop/a2"),
        ("cancelled after 300.012 s", "cancelled after 300.7 s"),
        ("uid 5c8d2f9e-1b7a-4f3e-9c2d-111111111111 is gone", "uid 9a8d2f9e-1b7a-4f3e-9c2d-222222222222 is gone"),
    ],
)
def test_what_is_special_to_an_object_makes_no_cause_of_its_own(one: str, other: str) -> None:
    assert alike(one, key(1)) == alike(other, key(2))


@pytest.mark.parametrize(("one", "other"), [("db refuses", "mq refuses"), ("no image", "no port")])
def test_other_words_are_another_cause(one: str, other: str) -> None:
    assert alike(one, key(1)) != alike(other, key(1))
