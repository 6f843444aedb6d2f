"""Conditions: change `status.conditions` the way tooling expects it. Pure: the time is an argument.

ready = Condition(type="Ready", status="True", reason="AllUp", observed_generation=myapp.generation)
if set_condition(myapp.status.conditions, ready, now=ctx.now()):
    ...
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from datetime import datetime

from kopylite.objects import Condition


def set_condition(conditions: MutableSequence[Condition], condition: Condition, *, now: datetime) -> bool:
    """Add or replace the condition of this type, in place, and say whether anything changed.

    `last_transition_time` moves only when the status changes: to the one that `condition` brings, else to `now`, cut
    to the second as the wire form has it (so what is read back equals what was written). A known type keeps its
    place, a new one goes to the end: lists that say the same compare equal.
    """
    moved = condition.last_transition_time or now.replace(microsecond=0)
    for index, old in enumerate(conditions):
        if old.type == condition.type:
            if old.status == condition.status and old.last_transition_time is not None:
                moved = old.last_transition_time
            new = condition.model_copy(update={"last_transition_time": moved})
            if new == old:
                return False
            conditions[index] = new
            return True
    conditions.append(condition.model_copy(update={"last_transition_time": moved}))
    return True


def remove_condition(conditions: MutableSequence[Condition], type: str) -> bool:  # noqa: A002  (the field's name)
    """Remove the condition of this type, in place, and say whether there was one."""
    for index, old in enumerate(conditions):
        if old.type == type:
            del conditions[index]
            return True
    return False


def find_condition(conditions: Iterable[Condition], type: str) -> Condition | None:  # noqa: A002
    """The condition of this type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_condition_true(conditions: Iterable[Condition], type: str) -> bool:  # noqa: A002
    """Whether the condition of this type is there and "True"; Unknown and absent are not."""
    found = find_condition(conditions, type)
    return found is not None and found.status == "True"
