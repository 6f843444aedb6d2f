"""A real API server that divides lists and watches by our hash, with its feature on; and one that does not.

The feature is alpha, and off by default; the embedded server has it off, as a real one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import anyio
import pytest

from kopylite.cache import Informer, PartCache, ShardPart, SharedCache
from kopylite.client import Client, Resources
from kopylite.client.verbs import Selection, list_page
from kopylite.devcluster.cluster import Cluster
from kopylite.metrics import Metrics
from kopylite.objects import Kind, Shard, Unstructured
from kopylite.testing import EmbeddedCluster, EnvTest
from tests.machine import require_real_server
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
SHARDS = [Shard(index, 3) for index in range(3)]
NUMBERS = count()


async def created(client: Client, amount: int) -> list[Unstructured]:
    metadata = [{"name": f"c{next(NUMBERS)}", "namespace": "default"} for _ in range(amount)]
    return [await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=each)) for each in metadata]


@asynccontextmanager
async def informers_of_all_shards(client: Client) -> AsyncIterator[tuple[list[Informer], Metrics]]:
    """An informer for each shard, in sync, and what came on their watches."""
    transport, metrics = client.live.api.transport, Metrics()
    cache = SharedCache(transport, Resources(transport), observe=metrics.informer)
    informers = [PartCache(cache, ShardPart(shard)).acquire(CONFIG_MAP, namespace="default") for shard in SHARDS]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        for informer in informers:
            await informer.wait_synced()
        yield informers, metrics
        tasks.cancel_scope.cancel()


async def divided(cluster: Cluster, divides: bool) -> None:
    async with cluster.client() as client:
        before = await created(client, 9)
        resource = await client.live.api.resources.find(CONFIG_MAP)
        request = list_page(resource, "default", Selection(shards=SHARDS[0].selector))
        page = json.loads((await client.live.api.transport.request(request)).body)
        assert (page["metadata"].get("shardInfo") == {"selector": SHARDS[0].selector}) is divides
        uids = {each["metadata"]["uid"] for each in page["items"]}
        assert all(map(SHARDS[0].holds, uids)) is divides
        assert {each.uid for each in before if SHARDS[0].holds(each.uid)} <= uids
        async with informers_of_all_shards(client) as (informers, metrics):
            after = await created(client, 9)
            wanted = {each.name: next(s.index for s in SHARDS if s.holds(each.uid)) for each in (*before, *after)}

            def all_there() -> bool:
                names = {record.name: i for i, each in enumerate(informers) for record in each.store.list("default")}
                return {name: i for name, i in names.items() if name in wanted} == wanted

            await eventually(all_there, "each cache has its own, and nothing else")
            came = sum(metrics.informer(each.scope).events["added"] for each in informers)
            # Others may have made a ConfigMap meanwhile, but not so many.
            assert (came < 2 * len(after)) is divides, f"{came} events came for {len(after)} new objects"


@pytest.mark.realserver
async def test_a_server_with_the_feature_sends_each_replica_its_own() -> None:
    require_real_server()
    async with EnvTest(flags={"feature-gates": "ShardedListAndWatch=true"}, start_timeout=150) as cluster:
        await divided(cluster, divides=True)


async def test_a_server_without_it_sends_all_and_what_is_of_others_is_dropped(
    embedded_cluster: EmbeddedCluster,
) -> None:
    await divided(embedded_cluster, divides=False)
