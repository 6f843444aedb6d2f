"""RUN: one App against one cluster, from the first request to the last reconcile."""

from __future__ import annotations

from kopylite.manager.manager import Manager, check_apps
from kopylite.manager.options import Options

__all__ = ["Manager", "Options", "check_apps"]
