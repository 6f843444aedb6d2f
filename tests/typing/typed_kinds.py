"""What editors and type checkers see; checked by mypy and pyright, never run.

A `type: ignore` here is an expectation: both checkers are told to complain about one that is not needed.
"""

from __future__ import annotations

from typing import assert_type

from pydantic import BaseModel, Field

from kopylite.client import Client
from kopylite.objects import Adapter, CustomResource, Kind, ObjectMeta, Unstructured, adapter_of


class AppSpec(BaseModel):
    image: str
    replicas: int = Field(default=1, ge=0)


class AppStatus(BaseModel):
    ready_replicas: int = 0


class MyApp(CustomResource[AppSpec, AppStatus], group="example.com", version="v1", scope="Namespaced"):
    """A web application."""


class Job(CustomResource[AppSpec, AppStatus | None], group="example.com", version="v1"):
    """Its status may be missing."""


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
    assert_type(adapter_of(Kind("v1", "Pod")), Adapter[Unstructured])


async def reads(client: Client) -> None:
    assert_type(await client.get(MyApp, "a"), MyApp)
    assert_type(await client.find(MyApp, "a"), MyApp | None)
    assert_type(await client.list(MyApp), list[MyApp])
    assert_type(await client.get(Kind("v1", "Pod"), "a"), Unstructured)
    assert_type(await client.list(Kind("v1", "Pod")), list[Unstructured])
    assert_type((await client.get(MyApp, "a")).spec.replicas, int)


async def writes(client: Client, app: MyApp) -> None:
    assert_type(await client.create(app), MyApp)
    assert_type(await client.update(app), MyApp)
    assert_type(await client.apply(app), MyApp)
    assert_type(await client.patch_status(app, {"readyReplicas": 1}), MyApp)

    def shape(found: MyApp) -> None:
        found.spec.replicas = 3

    stored, _ = await client.create_or_update(MyApp, "a", shape)
    assert_type(stored, MyApp)


def mistakes(app: MyApp) -> None:
    app.spec.replicas = "three"  # type: ignore[assignment]
    app.status.nothing  # type: ignore[attr-defined]  # noqa: B018
    MyApp(metadata=ObjectMeta(name="a"))  # type: ignore[call-arg]
