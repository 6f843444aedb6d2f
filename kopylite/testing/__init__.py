"""PROVE: control planes, clocks and fixtures for testing operators."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kopylite.devcluster.cluster import Cluster
    from kopylite.devcluster.embedded import EmbeddedCluster, Snapshot
    from kopylite.devcluster.faultproxy import FaultProxy
    from kopylite.devcluster.requestlog import LoggedRequest, RequestLog
    from kopylite.devcluster.simulator import Simulation
    from kopylite.testing.clock import VirtualClock
    from kopylite.testing.conversions import assert_converts
    from kopylite.testing.envtest import EnvTest
    from kopylite.testing.process import ServerFailed
    from kopylite.testing.runner import OperatorRunner

# Loaded when first asked for: a test that needs a clock does not pay for a control plane.
_HOMES = {
    "Cluster": "kopylite.devcluster.cluster",
    "EmbeddedCluster": "kopylite.devcluster.embedded",
    "EnvTest": "kopylite.testing.envtest",
    "FaultProxy": "kopylite.devcluster.faultproxy",
    "LoggedRequest": "kopylite.devcluster.requestlog",
    "OperatorRunner": "kopylite.testing.runner",
    "RequestLog": "kopylite.devcluster.requestlog",
    "ServerFailed": "kopylite.testing.process",
    "Simulation": "kopylite.devcluster.simulator",
    "Snapshot": "kopylite.devcluster.embedded",
    "VirtualClock": "kopylite.testing.clock",
    "assert_converts": "kopylite.testing.conversions",
}

__all__ = [
    "Cluster",
    "EmbeddedCluster",
    "EnvTest",
    "FaultProxy",
    "LoggedRequest",
    "OperatorRunner",
    "RequestLog",
    "ServerFailed",
    "Simulation",
    "Snapshot",
    "VirtualClock",
    "assert_converts",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
