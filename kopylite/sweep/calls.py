"""sweep and assert_idempotent: what a test calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from kopylite.app import App
from kopylite.sweep.engine import Settings, sweep_source
from kopylite.sweep.plans import FAULTS, FaultPlan, Spot, parse_faults
from kopylite.sweep.report import Report
from kopylite.sweep.scenario import Play, Scenario, scenario_of
from kopylite.sweep.source import source_of

Given = Scenario | Play | str | Path | Sequence[Mapping[str, Any]]


async def sweep(
    app: App | Callable[[], App],
    scenario: Given,
    *,
    faults: str | Sequence[str] = tuple(FAULTS),
    budget: float = 60.0,
    seed: int = 0,
    jobs: int | None = None,
    plans: Sequence[FaultPlan] = (),
) -> Report:
    """Play a scenario to an operator without faults, and then with a fault at each place where one can be.

        report = await sweep(app, "thing.yaml", faults="crash,response")
        assert not report.findings, report

    Each run has a cluster of its own, in a fork of this process and in virtual time, and its operator begins with empty
    memory: the App's module and those beside it are imported anew. What the runs leave is compared with what the runs
    without faults leave.

    Args:
        app: of a module's top level; or a function that makes one.
        scenario: a file, an async function of a Scene, a Scenario, or objects that are applied one after the other.
        faults: names of `kopylite.sweep.plans.FAULTS`, as a list or with commas.
        budget: seconds of the wall clock for the plans.
        seed: of all that is random.
        jobs: processes at the same time; None: one a core.
        plans: only these, instead of all that the faults give.

    Raises:
        UsageError: the scenario is none, a fault is not known, or the App cannot be made anew.
    """
    names = parse_faults(faults if isinstance(faults, str) else ",".join(faults))
    settings = Settings(names, budget, seed, jobs or os.cpu_count() or 1, plans)
    return await anyio.to_thread.run_sync(partial(sweep_source, source_of(app), scenario_of(scenario), settings))


async def assert_idempotent(app: App | Callable[[], App], objects: Given, *, runs: int = 10) -> None:
    """Let an operator reach the goal for some objects, then run all keys again and again: it must write nothing.

    Args:
        app, objects: see `sweep`.
        runs: how often.

    Raises:
        AssertionError: it wrote, or never came to rest; names the object and the field.
    """
    plan = FaultPlan((Spot("rerun", "run", number=runs),))
    report = await sweep(app, objects, plans=[plan], jobs=1)
    if report.findings:
        found = report.findings[0]
        raise AssertionError(f"{found.sentence}{f' (at {found.line})' if found.line else ''}")
