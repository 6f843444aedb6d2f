"""DO: take one Request after the other, run the user's function, and settle what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.controller.controller": "ActiveRun Controller ControllerStatistics Source",
            "kopylite.controller.spec": (
                "Channel ControllerSpec MapFunction Periodic Reconcile Watch channel periodic watch"
            ),
            "kopylite.controller.timers": "Timer",
            "kopylite.reconcile.synchronous": "SyncReconcile",
        },
    )

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
