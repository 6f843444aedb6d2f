"""Simulator: runs the workload controllers beside a cluster, from entering the context until leaving it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self

from kopylite.app import App
from kopylite.client import connect, load_config
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.devcluster.simulator import (
    claims,
    cronjobs,
    daemonsets,
    deployments,
    endpoints,
    jobs,
    nodes,
    replicasets,
    statefulsets,
)
from kopylite.devcluster.simulator.kubelet import kubelet_app
from kopylite.devcluster.simulator.nodes import create_nodes
from kopylite.devcluster.simulator.simulation import Simulation
from kopylite.devcluster.simulator.workloads import stamp
from kopylite.manager import Manager, Options

WORKERS = 4


def simulator_app(plan: Simulation) -> App:
    """All controllers in one App."""
    app = App("workload-simulator")
    for part in (deployments, replicasets, statefulsets, daemonsets, jobs, cronjobs, endpoints, claims, nodes):
        app.include(part.app)
    app.include(replicasets.replication_app)
    app.include(kubelet_app(plan))
    return app


class Simulator:
    """Plays workloads in the cluster of a kubeconfig.

    Args:
        kubeconfig: with every right.
        clock: of the controllers.
    """

    def __init__(self, plan: Simulation, kubeconfig: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        options = Options(workers=WORKERS, metrics_address="off", health_address="off", grace_period=1.0)
        self._plan = plan
        self._kubeconfig = str(kubeconfig)
        self._clock = clock
        self._manager = Manager(simulator_app(plan), load_config(self._kubeconfig), options, clock=clock)
        self._manager.recorder = None  # what a cluster does is no matter of the operator under test
        # Of asyncio and not of anyio: a cluster may be stopped by another task than the one that started it, and
        # inside of other task groups, which cancel scopes do not allow.
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        async with connect(self._kubeconfig) as client:
            await create_nodes(client, self._plan.nodes, stamp(self._clock.now()))
        await self._tasks.__aenter__()
        self._tasks.create_task(self._manager.run())
        await self._manager.wait_synced()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._manager.stop()
        await self._tasks.__aexit__(None, None, None)
