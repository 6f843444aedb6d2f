"""What editors and type checkers see; checked by mypy and pyright, never run.

A `type: ignore` here is an expectation: both checkers are told to complain about one that is not needed.
"""

from __future__ import annotations

from datetime import datetime
from typing import assert_type

from kubernetes_asyncio.client import V1Deployment
from pydantic import BaseModel, Field

from kopylite import Context, Outcome, Request, finalize
from kopylite.client import Client
from kopylite.objects import Adapter, CustomResource, Kind, ObjectMeta, OwnerRef, Unstructured, adapter_of


class AppSpec(BaseModel):
    image: str
    replicas: int = Field(default=1, ge=0)


class AppStatus(BaseModel):
    ready_replicas: int = 0


class MyApp(CustomResource[AppSpec, AppStatus], group="example.com", version="v1", scope="Namespaced"):
    """A web application."""


class Job(CustomResource[AppSpec, AppStatus | None], group="example.com", version="v1"):
    """Its status may be missing."""


POD = Kind("v1", "Pod")


def fields() -> None:
    app = MyApp(metadata=ObjectMeta(name="a"), spec=AppSpec(image="x"))
    assert_type(app.spec, AppSpec)
    assert_type(app.status, AppStatus)
    assert_type(app.status.ready_replicas, int)
    assert_type(app.name, str)
    assert_type(app.generation, int)
    job = Job(spec=AppSpec(image="x"))
    assert_type(job.status, AppStatus | None)


def adapters() -> None:
    assert_type(adapter_of(MyApp), Adapter[MyApp])
    assert_type(adapter_of(POD), Adapter[Unstructured])


async def reads(client: Client) -> None:
    assert_type(await client.get(MyApp, "a"), MyApp)
    assert_type(await client.find(MyApp, "a"), MyApp | None)
    assert_type(await client.list(MyApp), list[MyApp])
    assert_type(await client.list(MyApp, index={"spec.image": "x"}, invalid="raise"), list[MyApp])
    assert_type((await client.get(MyApp, "a")).spec.replicas, int)
    assert_type(await client.live.get(MyApp, "a"), MyApp)
    assert_type(await client.live.find(MyApp, "a"), MyApp | None)
    assert_type(await client.live.list(MyApp, invalid="raise"), list[MyApp])


async def reads_of_dicts(client: Client) -> None:
    assert_type(await client.get(POD, "a"), Unstructured)
    assert_type(await client.find(POD, "a"), Unstructured | None)
    assert_type(await client.list(POD), list[Unstructured])
    assert_type(await client.live.get(POD, "a"), Unstructured)


async def reads_of_the_librarys_models(client: Client) -> None:
    assert_type(await client.get(V1Deployment, "a"), V1Deployment)
    assert_type(await client.find(V1Deployment, "a"), V1Deployment | None)
    assert_type(await client.list(V1Deployment), list[V1Deployment])


async def writes(client: Client, app: MyApp) -> None:
    assert_type(await client.create(app), MyApp)
    assert_type(await client.create(app, owner=app), MyApp)
    assert_type(await client.update(app), MyApp)
    assert_type(await client.update(app, subresource="status"), MyApp)
    assert_type(await client.apply(app), MyApp)
    assert_type(await client.patch(MyApp, "a", {"spec": {"replicas": 1}}), MyApp)
    assert_type(await client.patch(app, patch={"spec": {"replicas": 1}}), MyApp)
    assert_type(await client.patch(app, {"spec": {"replicas": 1}}), MyApp)
    assert_type(await client.patch(app, [{"op": "remove", "path": "/spec/x"}], type="json"), MyApp)
    assert_type(await client.patch_status(app, {"readyReplicas": 1}), MyApp)
    assert_type(await client.patch_status(app, AppStatus(ready_replicas=1)), MyApp)
    assert_type(await client.patch_status(app, app.status, exact=True), MyApp)
    assert_type(await client.add_finalizer(app, "example.com/x"), MyApp)
    assert_type(await client.delete(app), bool)


async def writes_of_dicts(client: Client, pod: Unstructured) -> None:
    assert_type(await client.create(pod), Unstructured)
    assert_type(await client.update(pod), Unstructured)
    assert_type(await client.apply(pod), Unstructured)
    assert_type(await client.patch(POD, "a", {}), Unstructured)
    assert_type(await client.patch(pod, {"metadata": {"labels": {}}}), Unstructured)
    assert_type(await client.patch_status(pod, {"phase": "Running"}), Unstructured)


async def writes_of_the_librarys_models(client: Client, deployment: V1Deployment) -> None:
    assert_type(await client.create(deployment), V1Deployment)
    assert_type(await client.update(deployment), V1Deployment)
    assert_type(await client.apply(deployment), V1Deployment)
    assert_type(await client.patch_status(deployment, {"readyReplicas": 1}), V1Deployment)
    assert deployment.status is not None
    assert_type(await client.patch_status(deployment, deployment.status), V1Deployment)
    await client.patch_status(deployment, "Running")  # type: ignore[arg-type]


def shortcuts(app: MyApp, pod: Unstructured) -> None:
    assert_type(app.labels, dict[str, str])
    assert_type(app.annotations, dict[str, str])
    assert_type(app.finalizers, list[str])
    assert_type(app.owner_references, list[OwnerRef])
    assert_type(app.deletion_timestamp, datetime | None)
    assert_type(pod.copy(), Unstructured)
    assert_type(pod | {"kind": "Pod"}, Unstructured)


async def upserts(client: Client) -> None:
    def mutate(found: MyApp) -> None:
        found.spec.replicas = 3

    def mutate_dict(found: Unstructured) -> None:
        found["spec"] = {}

    def mutate_model(found: V1Deployment) -> None:
        found.spec.replicas = 3

    assert_type(await client.create_or_update(MyApp, "a", mutate), tuple[MyApp, Outcome])
    assert_type(await client.create_or_patch(MyApp, "a", mutate), tuple[MyApp, Outcome])
    assert_type(await client.create_or_update(POD, "a", mutate_dict), tuple[Unstructured, Outcome])
    assert_type(await client.create_or_update(V1Deployment, "a", mutate_model), tuple[V1Deployment, Outcome])
    await client.create_or_update(MyApp, "a", mutate_dict)  # type: ignore[arg-type]


async def finalizers(ctx: Context, request: Request, app: MyApp) -> None:
    async def clean_up(ctx: Context, found: MyApp) -> None:
        assert_type(found.spec, AppSpec)

    async def clean_up_stored(ctx: Context, found: Unstructured) -> None:
        found.spec.clear()

    assert_type(await ctx.client.get(MyApp, request), MyApp)
    assert_type(await finalize(ctx, app, "example.com/x", clean_up), bool)
    assert_type(await finalize(ctx, MyApp, "example.com/x", clean_up_stored), bool)


async def mistakes(client: Client, app: MyApp) -> None:
    app.spec.replicas = "three"  # type: ignore[assignment]
    app.status.nothing  # type: ignore[attr-defined]  # noqa: B018
    MyApp(metadata=ObjectMeta(name="a"))  # type: ignore[call-arg]
    await client.get("MyApp", "a")  # type: ignore[call-overload]
    await client.list(MyApp, invalid="maybe")  # type: ignore[call-overload]
    await client.update(app, dry_runs=True)  # type: ignore[call-arg]
    (await client.find(MyApp, "a")).spec  # type: ignore[union-attr]  # noqa: B018
