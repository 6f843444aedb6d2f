"""DO: take one Request after the other, run the user's function, and settle what follows."""

from __future__ import annotations

from kopylite.controller.controller import ActiveRun, Controller, ControllerStatistics, Source
from kopylite.controller.spec import (
    Channel,
    ControllerSpec,
    MapFunction,
    Periodic,
    Reconcile,
    Watch,
    channel,
    periodic,
    watch,
)
from kopylite.controller.timers import Timer
from kopylite.reconcile.synchronous import SyncReconcile

__all__ = [
    "ActiveRun",
    "Channel",
    "Controller",
    "ControllerSpec",
    "ControllerStatistics",
    "MapFunction",
    "Periodic",
    "Reconcile",
    "Source",
    "SyncReconcile",
    "Timer",
    "Watch",
    "channel",
    "periodic",
    "watch",
]
