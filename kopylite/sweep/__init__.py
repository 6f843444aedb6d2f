"""SWEEP: run an operator through hundreds of crashes, lost events and API faults, and say which line is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.sweep.calls import assert_idempotent, sweep
    from kopylite.sweep.findings import SweepFinding
    from kopylite.sweep.plans import FaultPlan
    from kopylite.sweep.report import Report
    from kopylite.sweep.scenario import Scenario, Step
    from kopylite.sweep.scene import Scene
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.sweep.calls": "assert_idempotent sweep",
            "kopylite.sweep.findings": "SweepFinding",
            "kopylite.sweep.plans": "FaultPlan",
            "kopylite.sweep.report": "Report",
            "kopylite.sweep.scenario": "Scenario Step",
            "kopylite.sweep.scene": "Scene",
        },
    )

__all__ = ["FaultPlan", "Report", "Scenario", "Scene", "Step", "SweepFinding", "assert_idempotent", "sweep"]
