"""THINK: what a reconcile is given, what it answers, and what it needs at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.reconcile.conditions import find_condition, is_condition_true, remove_condition, set_condition
    from kopylite.reconcile.context import Context, Environment, run_in_thread, running_fields
    from kopylite.reconcile.effects import effect
    from kopylite.reconcile.finalizers import finalize
    from kopylite.reconcile.recorder import EventRecorder, Severity
    from kopylite.reconcile.request import Request, Result, Retry
    from kopylite.reconcile.state import SharedState
    from kopylite.reconcile.synchronous import SyncContext
    from kopylite.reconcile.telling import tell
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.reconcile.conditions": "find_condition is_condition_true remove_condition set_condition",
            "kopylite.reconcile.context": "Context Environment run_in_thread running_fields",
            "kopylite.reconcile.effects": "effect",
            "kopylite.reconcile.finalizers": "finalize",
            "kopylite.reconcile.recorder": "EventRecorder Severity",
            "kopylite.reconcile.request": "Request Result Retry",
            "kopylite.reconcile.state": "SharedState",
            "kopylite.reconcile.synchronous": "SyncContext",
            "kopylite.reconcile.telling": "tell",
        },
    )

__all__ = [
    "Context",
    "Environment",
    "EventRecorder",
    "Request",
    "Result",
    "Retry",
    "Severity",
    "SharedState",
    "SyncContext",
    "effect",
    "finalize",
    "find_condition",
    "is_condition_true",
    "remove_condition",
    "run_in_thread",
    "running_fields",
    "set_condition",
    "tell",
]
