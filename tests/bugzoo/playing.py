"""Plays a scenario to an operator on an embedded cluster in virtual time, without any fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import yaml

from kopylite import App, Client, Kind, Manager, Options, Unstructured
from kopylite.client import load_config
from kopylite.devcluster.cluster import crds_in
from kopylite.devcluster.requestlog import LoggedRequest
from kopylite.testing import EmbeddedCluster, VirtualClock

QUIET = 5.0  # virtual seconds without a request of the operator, after which nothing more is to come
LIMIT = 3600.0


@asynccontextmanager
async def world_of(scenario: Path, clock: VirtualClock) -> AsyncIterator[tuple[EmbeddedCluster, Client]]:
    """A cluster with the CRDs of a scenario, and its user."""
    read = yaml.safe_load(scenario.read_text())
    crds = [crd for name in read["crds"] for crd in crds_in(scenario.parent / name)]
    async with EmbeddedCluster(crds=crds, tls=False, clock=clock) as cluster, cluster.client() as user:
        yield cluster, user


async def play(cluster: EmbeddedCluster, user: Client, app: App, scenario: Path, clock: VirtualClock) -> None:
    """Do each step, and wait for the operator to rest."""
    options = Options(metrics_address="off", health_address="off", grace_period=1)
    manager = Manager(app, load_config(str(cluster.kubeconfig)), options, clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_synced()
        for step in yaml.safe_load(scenario.read_text())["steps"]:
            with cluster.requests.recording() as recorded:
                await do(user, step)
                await rest(recorded, app.name)
        manager.stop()


async def do(user: Client, step: dict[str, Any]) -> None:
    """One step of a scenario."""
    [(verb, what)] = step.items()
    if verb == "apply":
        await user.apply(Unstructured(what), field_manager="user")
        return
    kind, namespace = Kind(what["apiVersion"], what["kind"]), what.get("namespace", "")
    if verb == "patch":
        await user.patch(kind, what["name"], what["patch"], namespace=namespace)
    else:
        await user.delete(kind, what["name"], namespace=namespace)


async def rest(recorded: list[LoggedRequest], name: str) -> None:
    """Wait until the operator writes nothing any more."""

    def writes() -> int:
        return sum(request.writes and request.agent.startswith(f"{name}/") for request in recorded)

    with anyio.fail_after(LIMIT):
        count = -1
        while count != writes():
            count = writes()
            await anyio.sleep(QUIET)
