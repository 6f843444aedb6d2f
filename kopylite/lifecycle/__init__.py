"""LIVE: what an App does before, beside and after its reconciles: hooks, tasks, and checks of its own."""

from __future__ import annotations

from kopylite.lifecycle.declarations import LifecycleDeclarations
from kopylite.lifecycle.spec import CheckSpec, LifecycleHook, LifePlan, TaskSpec

__all__ = ["CheckSpec", "LifePlan", "LifecycleDeclarations", "LifecycleHook", "TaskSpec"]
