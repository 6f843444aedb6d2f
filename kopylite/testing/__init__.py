"""PROVE: control planes, clocks and fixtures for testing operators."""

from __future__ import annotations

from kopylite.testing.clock import VirtualClock
from kopylite.testing.cluster import Cluster
from kopylite.testing.envtest import EnvTest
from kopylite.testing.process import ServerFailed

__all__ = ["Cluster", "EnvTest", "ServerFailed", "VirtualClock"]
