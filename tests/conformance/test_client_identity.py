"""A write through an object that was read is for that object, never for another one that took its name since."""

from __future__ import annotations

import pytest

from kopylite.client import Client
from kopylite.errors import Conflict
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster
from samples.myapp.operator import MyApp, MyAppSpec

CONFIG_MAP = Kind("v1", "ConfigMap")
DEPLOYMENT = Kind("apps/v1", "Deployment")


@pytest.fixture
async def renewed(cluster: Cluster, client: Client, namespace: str) -> tuple[MyApp, MyApp]:
    """A MyApp as it was read before it was deleted and made anew, and the new one."""
    await cluster.install_crds(MyApp)
    app = MyApp(metadata={"name": "web", "namespace": namespace}, spec=MyAppSpec(image="nginx:1"))
    old = await client.create(app)
    await client.delete(old)
    return old, await client.create(app)


async def test_a_status_of_the_old_object_does_not_land_on_the_new_one(
    client: Client, renewed: tuple[MyApp, MyApp]
) -> None:
    old, new = renewed
    with pytest.raises(Conflict):
        await client.patch_status(old, {"readyReplicas": 7})
    with pytest.raises(Conflict):
        await client.patch(old, patch={"status": {"readyReplicas": 7}}, subresource="status")
    assert (await client.patch_status(new, {"readyReplicas": 1})).status.ready_replicas == 1


async def test_neither_do_a_patch_a_finalizer_or_an_update(client: Client, renewed: tuple[MyApp, MyApp]) -> None:
    old, new = renewed
    with pytest.raises(Conflict):
        await client.patch(old, patch={"spec": {"replicas": 7}})
    with pytest.raises(Conflict):
        await client.add_finalizer(old, "example.com/x")
    with pytest.raises(Conflict):
        await client.update(old)
    with pytest.raises(Conflict):
        await client.delete(old)
    assert (await client.live.get(MyApp, new)).resource_version == new.resource_version


async def test_it_holds_for_built_in_kinds(client: Client, namespace: str) -> None:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "nginx:1"}]}}
    desired = Unstructured(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
        }
    )
    old = await client.create(desired)
    await client.delete(old)
    await client.create(desired)
    with pytest.raises(Conflict):
        await client.patch_status(old, {"observedGeneration": 7})
    with pytest.raises(Conflict):
        await client.patch(old, patch={"spec": {"replicas": 7}})
    assert (await client.live.get(DEPLOYMENT, old)).spec["replicas"] == 0
