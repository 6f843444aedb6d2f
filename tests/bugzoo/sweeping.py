"""Sweeps one animal of the zoo."""

from __future__ import annotations

from collections.abc import Sequence

from kopylite.cli.target import load_app
from kopylite.sweep.engine import Settings, sweep_source
from kopylite.sweep.plans import FAULTS
from kopylite.sweep.report import Report
from kopylite.sweep.scenario import read_scenario
from kopylite.sweep.source import source_of
from tests.bugzoo.catalogue import Animal

# Seconds of the wall clock: more than all plans take on a machine that does other things, too.
BUDGET = 900.0


def swept(animal: Animal, which: str, *, seed: int = 0, jobs: int = 1, faults: Sequence[str] | None = None) -> Report:
    """What a sweep says about a `bug` or a `twin`."""
    target = f"tests.bugzoo.{animal.name}:{which}"
    settings = Settings(tuple(faults or FAULTS), BUDGET, seed, jobs)
    return sweep_source(source_of(load_app(target), target), read_scenario(animal.scenario), settings)
