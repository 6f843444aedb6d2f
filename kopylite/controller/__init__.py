"""DO: take one Request after the other, run the user's function, and settle what follows."""

from __future__ import annotations

from kopylite.controller.spec import ControllerSpec, MapFunction, Reconcile, Watch, watch

__all__ = ["ControllerSpec", "MapFunction", "Reconcile", "Watch", "watch"]
