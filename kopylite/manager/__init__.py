"""RUN: one App against one cluster, from the first request to the last reconcile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.manager.manager import Manager
    from kopylite.manager.operator import Operator, check_apps
    from kopylite.manager.options import Options
    from kopylite.manager.recorded import RequestRecorder
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.manager.manager": "Manager",
            "kopylite.manager.operator": "Operator check_apps",
            "kopylite.manager.options": "Options",
            "kopylite.manager.recorded": "RequestRecorder",
        },
    )

__all__ = ["Manager", "Operator", "Options", "RequestRecorder", "check_apps"]
