"""A stored object that does not fit its model: told of, blocking nobody, mended, and deletable all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from pydantic import BaseModel

from kopylite.app import App
from kopylite.client import Client, load_config
from kopylite.manager import Manager, Options
from kopylite.objects import CustomResource, Kind, Unstructured, kind_of
from kopylite.reconcile import Context, Request, finalize
from kopylite.testing import Cluster
from tests.operators import eventually

pytestmark = pytest.mark.timeout(120)

EVENT = Kind("events.k8s.io/v1", "Event")
FINALIZER = "example.com/bucket"


class OldSpec(BaseModel):
    size: int | str
    token: str = ""


class OldBucket(CustomResource[OldSpec, None], group="misfits.example.com", version="v1", kind="Bucket"):
    """As it was when the objects were stored."""


class BucketSpec(BaseModel):
    size: int
    token: str = ""


class Bucket(CustomResource[BucketSpec, None], group="misfits.example.com", version="v1"):
    """As it is now: `size` has been narrowed."""


class Operator:
    """Reconciles Buckets, and notes what it saw."""

    def __init__(self) -> None:
        self.app = App("misfits")
        self.sizes: dict[str, int] = {}
        self.listed: set[str] = set()
        self.emptied: list[str] = []
        self.app.reconciler(Bucket)(self.reconcile)

    async def reconcile(self, ctx: Context, request: Request) -> None:
        self.listed = {bucket.name for bucket in await ctx.client.list(Bucket)}
        if await finalize(ctx, Bucket, FINALIZER, self.empty):
            return
        bucket = await ctx.client.get(Bucket, request)
        self.sizes[bucket.name] = bucket.spec.size

    async def empty(self, ctx: Context, bucket: Unstructured) -> None:
        self.emptied.append(bucket.name)


@asynccontextmanager
async def running(operator: Operator, cluster: Cluster, namespace: str) -> AsyncIterator[Manager]:
    options = Options(namespaces=(namespace,), metrics_address="off", health_address="off", grace_period=5.0)
    manager = Manager(operator.app, load_config(cluster.kubeconfig), options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        yield manager
        manager.stop()


def a_bucket(namespace: str, name: str, size: int | str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return Unstructured(
        apiVersion="misfits.example.com/v1", kind="Bucket", metadata=metadata, spec={"size": size, "token": "hunter2"}
    )


def number(manager: Manager, metric: str, **labels: str) -> float:
    return manager.metrics.registry.get_sample_value(metric, labels) or 0.0


async def test_its_life_from_the_report_to_its_end(
    client: Client, cluster: Cluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install_crds(OldBucket)
    for name, size in (("good", 1), ("bad", "huge"), ("doomed", "vast")):
        await client.create(a_bucket(namespace, name, size))
    await cluster.install_crds(Bucket)
    operator = Operator()

    async with running(operator, cluster, namespace) as manager:
        # The others go on, and each misfit is told of: object and field, no values.
        await eventually(lambda: operator.sizes == {"good": 1}, "the good one was reconciled")
        assert operator.listed == {"good"}
        await eventually(lambda: number(manager, "kopylite_rejected_objects_total", controller="bucket") >= 2, "metric")
        (note,) = await notes_about(client, namespace, "bad")
        assert note.startswith(f"Bucket {namespace}/bad does not fit its model: spec.size: ")
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert any(f"{namespace}/bad" in text and "spec.size" in text for text in errors)
        assert not any(secret in text for text in [note, caplog.text] for secret in ("hunter2", "huge"))
        assert number(manager, "kopylite_skipped_objects_total") >= 2

        # It is not run again and again meanwhile, and its own change mends it.
        runs = number(manager, "kopylite_rejected_objects_total", controller="bucket")
        assert runs <= 4, "at most at the start, and after its finalizer came"
        await client.patch(kind_of(Bucket), "bad", {"spec": {"size": 2}}, namespace=namespace)
        await eventually(lambda: operator.sizes == {"good": 1, "bad": 2}, "the mended one was reconciled")
        assert operator.listed >= {"good", "bad"}

        # Its deletion is handled though it never fitted.
        await client.delete(kind_of(Bucket), "doomed", namespace=namespace)

        async def gone() -> bool:
            return await client.find(kind_of(Bucket), "doomed", namespace=namespace) is None

        await eventually(gone, "the one that never fitted was gone")
        assert operator.emptied == ["doomed"]
        for name in ("good", "bad"):
            await client.delete(kind_of(Bucket), name, namespace=namespace)
        await eventually(lambda: sorted(operator.emptied) == ["bad", "doomed", "good"], "the others ended as well")


async def notes_about(client: Client, namespace: str, name: str) -> set[str]:
    """The notes of the warnings about an object, once there are some."""

    async def found() -> list[str]:
        return [
            event["note"]
            for event in await client.list(EVENT, namespace=namespace)
            if event["regarding"]["name"] == name and (event["type"], event["reason"]) == ("Warning", "InvalidObject")
        ]

    await eventually(found, f"there was a warning about {name}")
    return set(await found())
