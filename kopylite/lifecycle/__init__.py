"""LIVE: what an App does before, beside and after its reconciles: hooks, tasks, and checks of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.lifecycle.declarations import LifecycleDeclarations
    from kopylite.lifecycle.spec import CheckSpec, LifecycleHook, LifePlan, TaskSpec
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.lifecycle.declarations": "LifecycleDeclarations",
            "kopylite.lifecycle.spec": "CheckSpec LifecycleHook LifePlan TaskSpec",
        },
    )

__all__ = ["CheckSpec", "LifePlan", "LifecycleDeclarations", "LifecycleHook", "TaskSpec"]
