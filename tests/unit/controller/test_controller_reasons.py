from __future__ import annotations

from kopylite.controller.reasons import MAX_REASONS, MORE, Reasons


def test_reasons_are_merged_in_order_and_without_repeats_until_they_are_taken() -> None:
    reasons: Reasons[str] = Reasons()
    for reason in ("created", "changed", "created"):
        reasons.add("a", reason)
    assert reasons.take("a") == ("created", "changed")
    assert reasons.take("a") == ()
    assert len(reasons) == 0


def test_a_key_carries_a_bounded_number_of_reasons_and_says_that_there_were_more() -> None:
    reasons: Reasons[str] = Reasons()
    for number in range(1000):
        reasons.add("a", f"pod {number} changed")
    found = reasons.take("a")
    assert found[:2] == ("pod 0 changed", "pod 1 changed")
    assert found[-1] == MORE
    assert len(found) == MAX_REASONS + 1
