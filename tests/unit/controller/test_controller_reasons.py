from __future__ import annotations

from kopylite.controller.reasons import MAX_CAUSES, MAX_REASONS, MORE, REQUEUE_AFTER, Reasons
from kopylite.reconcile.chains import ChangeReason, Version


def test_reasons_are_merged_in_order_and_without_repeats_until_they_are_taken() -> None:
    reasons: Reasons[str] = Reasons()
    for reason in ("created", "changed", "created"):
        reasons.add("a", reason)
    assert reasons.take("a")[0] == ("created", "changed")
    assert reasons.take("a") == ((), ())
    assert len(reasons) == 0


def test_a_key_carries_a_bounded_number_of_reasons_and_says_that_there_were_more() -> None:
    reasons: Reasons[str] = Reasons()
    for number in range(1000):
        reasons.add("a", f"pod {number} changed")
    found, _ = reasons.take("a")
    assert found[:2] == ("pod 0 changed", "pod 1 changed")
    assert found[-1] == MORE
    assert len(found) == MAX_REASONS + 1


def change(number: int) -> ChangeReason:
    return ChangeReason.of("child updated", Version("uid", str(number)))


def test_changes_are_the_causes_of_a_run_as_long_as_nothing_else_is() -> None:
    reasons: Reasons[str] = Reasons()
    reasons.add_own("a", REQUEUE_AFTER)  # asked for by the run itself, and overtaken by its own writes
    for number in (1, 2, 2):
        reasons.add("a", change(number))
    reasons.add("b", change(3))
    reasons.add("b", "announced by a channel")
    reasons.add("b", change(4))
    reasons.add_own("c", REQUEUE_AFTER)
    for number in range(MAX_CAUSES + 1):
        reasons.add("d", change(number))
    found, causes = reasons.take("a")
    assert found == (REQUEUE_AFTER, "child updated")
    assert {type(reason) for reason in found} == {str}
    assert causes == (Version("uid", "1"), Version("uid", "2"))
    assert [reasons.take(key)[1] for key in "abcd"] == [(), (), (), ()]


def test_a_run_that_is_asked_for_meanwhile_has_both_reasons_and_the_same_causes() -> None:
    reasons: Reasons[str] = Reasons()
    reasons.add("a", change(1))
    for _ in range(2):
        reasons.add_own("a", REQUEUE_AFTER)
    assert reasons.take("a") == (("child updated", REQUEUE_AFTER), (Version("uid", "1"),))


def test_somebody_else_who_uses_the_word_of_a_run_that_asks_for_itself_has_a_part_in_the_next_one() -> None:
    reasons: Reasons[str] = Reasons()
    reasons.add("a", REQUEUE_AFTER)  # say, a periodic function of that name
    reasons.add_own("b", REQUEUE_AFTER)
    reasons.add("b", REQUEUE_AFTER)
    for key in "ab":
        reasons.add(key, change(1))
        assert reasons.take(key) == ((REQUEUE_AFTER, "child updated"), ())


def test_keys_of_a_first_list_share_their_reason() -> None:
    reasons: Reasons[str] = Reasons()
    for key in ("a", "b"):
        reasons.add(key, "Widget created")
    assert reasons.take("a")[0] is reasons.take("b")[0]


def test_what_is_dropped_has_neither_reasons_nor_causes_and_the_rest_stays() -> None:
    reasons: Reasons[str] = Reasons()
    for key in ("gone", "here"):
        reasons.add(key, change(1))
    reasons.drop(lambda key: key == "gone")
    assert len(reasons) == 1
    assert reasons.take("gone") == ((), ())
    assert reasons.take("here") == (("child updated",), (Version("uid", "1"),))
