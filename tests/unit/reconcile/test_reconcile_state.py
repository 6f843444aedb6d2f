from __future__ import annotations

from typing import Any

import pytest

from kopylite.errors import UsageError
from kopylite.reconcile import SharedState


def test_things_are_found_by_their_class() -> None:
    state = SharedState()
    state[int] = 3
    state[object] = "under a class that it inherits from"
    assert (state[int], state[object], list(state), len(state), int in state, str in state) == (
        3, "under a class that it inherits from", [int, object], 2, True, False
    )  # fmt: skip
    del state[int]
    assert int not in state
    state[int] = 4
    assert state[int] == 4


@pytest.mark.parametrize(
    ("kind", "thing", "message"),
    [
        (int, "a", "takes a int, not 'a'"),
        ("pool", 1, "'pool' is none"),
        (str, "b", r"has a str already.*del ctx\.state\[str\]"),
    ],
)
def test_what_cannot_be_shared_is_refused_and_changes_nothing(kind: Any, thing: Any, message: str) -> None:
    state = SharedState()
    state[str] = "a"
    with pytest.raises(UsageError, match=message):
        state[kind] = thing
    assert list(state) == [str]
    assert state[str] == "a"


def test_what_is_not_there_is_named_with_what_is() -> None:
    state = SharedState()
    with pytest.raises(UsageError, match=r"has no int: it is empty.*@app\.on_start, by ctx\.state\[int\] = "):
        _ = state[int]
    state[str] = "a"
    with pytest.raises(UsageError, match="has no int: there are str"):
        del state[int]
