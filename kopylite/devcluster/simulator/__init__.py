"""A cluster's workload controllers, scheduler and kubelets, played by an App: Deployments become running Pods.

Written as any operator with kopylite is; so it is a sample too, one of more than one controller.
"""

from __future__ import annotations

from kopylite.devcluster.simulator.simulation import Simulation
from kopylite.devcluster.simulator.simulator import Simulator, simulator_app

__all__ = ["Simulation", "Simulator", "simulator_app"]
