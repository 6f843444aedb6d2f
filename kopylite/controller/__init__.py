"""DO: take one Request after the other, run the user's function, and settle what follows."""

from __future__ import annotations

from kopylite.controller.controller import ActiveRun, Controller, ControllerStatistics, Source
from kopylite.controller.spec import ControllerSpec, MapFunction, Reconcile, Watch, watch

__all__ = [
    "ActiveRun",
    "Controller",
    "ControllerSpec",
    "ControllerStatistics",
    "MapFunction",
    "Reconcile",
    "Source",
    "Watch",
    "watch",
]
