"""THINK: what a reconcile is given, and what it answers."""

from __future__ import annotations

from kopylite.reconcile.context import Context, Environment, run_in_thread
from kopylite.reconcile.request import Request, Result

__all__ = ["Context", "Environment", "Request", "Result", "run_in_thread"]
