"""RUN: one App against one cluster, from the first request to the last reconcile."""

from __future__ import annotations

from kopylite.manager.manager import Manager
from kopylite.manager.operator import Operator, check_apps
from kopylite.manager.options import Options
from kopylite.manager.recorded import RequestRecorder

__all__ = ["Manager", "Operator", "Options", "RequestRecorder", "check_apps"]
