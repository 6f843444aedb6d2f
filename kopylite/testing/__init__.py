"""PROVE: control planes, clocks and fixtures for testing operators."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kopylite.testing.clock import VirtualClock
    from kopylite.testing.cluster import Cluster
    from kopylite.testing.embedded import EmbeddedCluster, Snapshot
    from kopylite.testing.envtest import EnvTest
    from kopylite.testing.process import ServerFailed
    from kopylite.testing.requestlog import LoggedRequest, RequestLog
    from kopylite.testing.simulator import Simulation

# Loaded when first asked for: a test that needs a clock does not pay for a control plane.
_HOMES = {
    "Cluster": "kopylite.testing.cluster",
    "EmbeddedCluster": "kopylite.testing.embedded",
    "EnvTest": "kopylite.testing.envtest",
    "LoggedRequest": "kopylite.testing.requestlog",
    "RequestLog": "kopylite.testing.requestlog",
    "ServerFailed": "kopylite.testing.process",
    "Simulation": "kopylite.testing.simulator",
    "Snapshot": "kopylite.testing.embedded",
    "VirtualClock": "kopylite.testing.clock",
}

__all__ = [
    "Cluster",
    "EmbeddedCluster",
    "EnvTest",
    "LoggedRequest",
    "RequestLog",
    "ServerFailed",
    "Simulation",
    "Snapshot",
    "VirtualClock",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
