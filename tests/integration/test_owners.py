"""Owners that are not the controller: given at creation, later, and woken by what they own."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite import App, Context, Kind, Request, Unstructured, watch
from kopylite.client import Client
from kopylite.client.live import object_key
from kopylite.errors import AlreadyOwned, Conflict, RegistrationError, UsageError
from kopylite.testing import Cluster
from tests.operators import eventually

CONFIG_MAP, SECRET = Kind("v1", "ConfigMap"), Kind("v1", "Secret")


async def made(client: Client, namespace: str, name: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))


def secret(namespace: str, name: str) -> Unstructured:
    return Unstructured(apiVersion="v1", kind="Secret", metadata={"name": name, "namespace": namespace})


def owners(obj: Unstructured) -> list[tuple[str, bool | None]]:
    return sorted((reference.name, reference.controller) for reference in obj.owner_references)


async def test_every_way_of_writing_takes_an_owner_that_is_no_controller(client: Client, namespace: str) -> None:
    one, two = await made(client, namespace, "one"), await made(client, namespace, "two")
    key = Request(namespace, "a")
    created = await client.create(secret(namespace, "a"), owner=one, controller=False)
    assert owners(created) == [("one", None)]
    upserted, _ = await client.create_or_update(SECRET, key, lambda obj: None, owner=two)
    assert owners(upserted) == [("one", None), ("two", True)]
    again, outcome = await client.create_or_patch(SECRET, key, lambda obj: None, owner=one, controller=False)
    assert (owners(again), outcome) == ([("one", None), ("two", True)], "unchanged")
    applied = await client.apply(secret(namespace, "b"), owner=one, controller=False)
    assert owners(applied) == [("one", None)]


async def test_an_object_that_is_there_is_adopted_and_others_stay(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    one, two = await made(client, namespace, "one"), await made(client, namespace, "two")
    child = await client.create(secret(namespace, "a"), owner=one)
    with pytest.raises(AlreadyOwned):
        await client.adopt(child, owner=two)
    adopted = await client.adopt(child, owner=two, controller=False)
    assert owners(adopted) == [("one", True), ("two", None)]
    assert await client.adopt(adopted, owner=two, controller=False) is adopted
    # By an old reading, and by somebody else: what was added since is not taken away.
    async with cluster.client() as other:
        three = await other.adopt(child, owner=await made(client, namespace, "three"), controller=False)
    assert owners(three) == [("one", True), ("three", None), ("two", None)]
    await client.delete(three)
    await client.create(secret(namespace, "a"))
    with pytest.raises(Conflict):  # another one took the name
        await client.adopt(adopted, owner=await made(client, namespace, "four"), controller=False)


async def test_a_change_runs_every_owner_where_that_is_asked_for(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app, runs, controlled = App("family"), list[str](), list[str]()

    @app.reconciler(CONFIG_MAP, owns=[watch(SECRET, any_owner=True)])
    async def every_owner(ctx: Context, request: Request) -> None:
        if any("Secret" in reason for reason in ctx.reasons):
            runs.append(request.name)

    @app.reconciler(CONFIG_MAP, name="controllers", owns=[SECRET])
    async def controlling_owner(ctx: Context, request: Request) -> None:
        if any("Secret" in reason for reason in ctx.reasons):
            controlled.append(request.name)

    async with cluster.running(app, namespaces=[namespace]):
        one, two = await made(client, namespace, "one"), await made(client, namespace, "two")
        child = await client.create(secret(namespace, "a"), owner=one)
        await client.adopt(child, owner=two, controller=False)
        await eventually(lambda: {"one", "two"} <= set(runs), "both owners ran")
        await eventually(lambda: "one" in controlled, "the controller ran")
    assert set(controlled) == {"one"}


def test_any_owner_is_refused_where_it_means_nothing() -> None:
    async def nobody(obj: Unstructured, ctx: Context) -> list[Request]:
        return []

    with pytest.raises(RegistrationError, match="any_owner=True is for owns"):
        App("a").reconciler(CONFIG_MAP, watches=[watch(SECRET, any_owner=True)])
    with pytest.raises(RegistrationError, match="keep one"):
        watch(SECRET, any_owner=True, map=nobody)


@pytest.mark.parametrize("wrong", [None, 5, object(), ("ns", "a"), {}, {"metadata": {}}, CONFIG_MAP, str])
def test_what_names_no_object_is_no_key(wrong: Any) -> None:
    with pytest.raises(UsageError, match="names no object; give a name with namespace="):
        object_key(wrong)
