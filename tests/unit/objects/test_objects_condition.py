from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from kopylite.objects import Condition, to_wire

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def test_a_condition_is_written_as_kubernetes_tools_read_it() -> None:
    condition = Condition(
        type="Ready",
        status="True",
        reason="Synced",
        message="all is well",
        last_transition_time=NOON,
        observed_generation=3,
    )
    wire = to_wire(condition)
    assert wire == {
        "type": "Ready",
        "status": "True",
        "reason": "Synced",
        "message": "all is well",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
        "observedGeneration": 3,
    }
    assert Condition.model_validate(wire) == condition


@pytest.mark.parametrize("status", ["true", "", "Maybe", True, None])
def test_there_are_three_statuses(status: object) -> None:
    with pytest.raises(ValidationError, match="'True', 'False' or 'Unknown'"):
        Condition.model_validate({"type": "Ready", "status": status})


def test_what_is_not_known_is_not_written() -> None:
    assert to_wire(Condition(type="Ready", status="Unknown")).keys() <= {"type", "status", "reason", "message"}
