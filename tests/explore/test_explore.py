"""The pure machines in every interleaving of a few steps; `python -m tests.explore` goes further, up to eight."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kopylite.cache import transitions
from kopylite.cache.states import Watching
from kopylite.client.recent import RecentWrites
from kopylite.leaderelection import Candidate, roster
from kopylite.workqueue.state import QueueState
from tests.explore.machines import MACHINES
from tests.explore.search import Broken


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of runs fail on purpose."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", MACHINES)
def test_no_interleaving_of_a_few_steps_breaks_a_promise(name: str) -> None:
    assert MACHINES[name].part().states > 100


# One fault in each machine, to see that a broken promise is found.
FAULTS = {
    "queue": (QueueState, "hold", lambda self, key, now, *, priority=0, after: self.add(key, now, after=after)),
    "watch": (transitions, "_watch_failed", lambda state, memory, error: (Watching(state.version), memory)),
    "candidate": (Candidate, "_hold", lambda self, found, before, now: 0.0),
    "roster": (roster, "fair_part", lambda identity, counts, shards: shards),
    "own writes": (RecentWrites, "deleted", lambda self, kind, key, uid, version="": None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_machine_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, fault = FAULTS[name]
    monkeypatch.setattr(owner, attribute, fault)
    with pytest.raises(Broken):
        MACHINES[name].part()
