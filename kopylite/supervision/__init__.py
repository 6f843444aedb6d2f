"""SEVERAL: one parent that keeps some processes of one command alive, and answers for them."""

from __future__ import annotations

from kopylite.supervision.child import ProcessPlace, Tie
from kopylite.supervision.supervisor import Supervisor, SupervisorSettings

__all__ = ["ProcessPlace", "Supervisor", "SupervisorSettings", "Tie"]
