from __future__ import annotations

import copy

from pydantic import BaseModel

from kopylite.crds import crd_of
from kopylite.objects import CustomResource, Kind
from kopylite.testing import EmbeddedCluster


class CupSpec(BaseModel):
    size: int = 1


class Cup(CustomResource[CupSpec, None], group="kitchen.example.com", version="v1"):
    pass


async def test_crds_are_created_and_updated_and_the_callers_own_stay_as_they_are() -> None:
    crd = crd_of(Cup)
    async with EmbeddedCluster() as cluster:
        before = copy.deepcopy(crd)
        assert await cluster.install_crds(crd) == ["cups.kitchen.example.com"]
        assert crd == before
        crd["spec"]["names"]["shortNames"] = ["c"]
        before = copy.deepcopy(crd)
        await cluster.install_crds(crd)
        assert crd == before
        async with cluster.client() as client:
            stored = await client.get(Kind(crd["apiVersion"], crd["kind"]), "cups.kitchen.example.com")
            assert stored.spec["names"]["shortNames"] == ["c"]


class OldCup(CustomResource[CupSpec, None], group="kitchen.example.com", version="v1beta1", kind="Cup", storage=False):
    pass


async def test_the_classes_of_the_versions_of_a_kind_are_one_crd() -> None:
    async with EmbeddedCluster(crds=[Cup, OldCup]) as cluster, cluster.client() as client:
        cup = await client.create(Cup.model_validate({"metadata": {"name": "a", "namespace": "default"}}))
        assert (await client.get(Kind("kitchen.example.com/v1beta1", "Cup"), cup)).uid == cup.uid
        assert await cluster.install_crds(OldCup, Cup) == ["cups.kitchen.example.com"]
