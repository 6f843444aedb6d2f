"""SHIP: which rights an operator needs, and the manifests that bring it into a cluster."""

from __future__ import annotations

from kopylite.deploy.calls import ApiCall, call_of
from kopylite.deploy.needs import Needs, needs_of
from kopylite.deploy.recording import Recording
from kopylite.deploy.rules import RoleRule, rules_of

__all__ = ["ApiCall", "Needs", "Recording", "RoleRule", "call_of", "needs_of", "rules_of"]
