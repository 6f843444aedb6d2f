from __future__ import annotations

import time

import pytest

from kopylite.serving import Answer, Check, Query, guarded, probe


def ask(checks: dict[str, Check], tail: str = "", **parameters: list[str]) -> tuple[int, str]:
    answer: Answer = probe("readyz", checks, Query(tail, parameters), guarded(time.monotonic))
    return answer.status, answer.body.decode()


def good() -> str | None:
    return None


def bad() -> str | None:
    return "cannot list pods at db.internal"


def test_all_checks_well_is_a_short_ok() -> None:
    assert ask({"a": good, "b": good}) == (200, "ok")


def test_no_check_at_all_is_ok() -> None:
    assert ask({}) == (200, "ok")


def test_verbose_shows_a_line_a_check_in_order_of_their_names() -> None:
    assert ask({"b": good, "a": good}, verbose=[""]) == (200, "[+]a ok\n[+]b ok\nreadyz check passed\n")


def test_one_bad_check_fails_the_whole_and_its_reason_is_withheld() -> None:
    status, text = ask({"a": good, "b": bad})
    assert status == 500
    assert text == "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n"


def test_one_check_asked_by_name_shows_its_reason() -> None:
    assert ask({"a": good, "b": bad}, "b") == (500, "b failed: cannot list pods at db.internal")
    assert ask({"a": good, "b": bad}, "a") == (200, "ok")


def test_an_unknown_check_is_not_found_and_the_known_ones_are_named() -> None:
    status, text = ask({"a": good, "b": good}, "c")
    assert status == 404
    assert "a, b" in text


def test_excluded_checks_are_not_run_and_unknown_exclusions_warn() -> None:
    status, text = ask({"a": good, "b": bad}, exclude=["b", "nope"], verbose=[""])
    assert status == 200
    assert "[+]b excluded: ok" in text
    assert "'nope'" in text


def test_a_check_that_raises_counts_as_failed_and_hides_the_exceptions_text() -> None:
    def broken() -> str | None:
        raise RuntimeError("password=hunter2")

    status, text = ask({"a": broken}, "a")
    assert status == 500
    assert "the check itself failed" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("error", [RuntimeError("no pool"), SystemExit(3), RecursionError()])
def test_why_a_check_itself_failed_is_told_in_the_log_once(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> str | None:
        raise error

    run = guarded(time.monotonic)
    for _ in range(3):
        answer = probe("readyz", {"a": broken, "b": good}, Query("", {}), run)
        assert answer.status == 500
        assert b"[+]b ok" in answer.body
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"health check of a probe failed on a: {type(error).__name__}")
