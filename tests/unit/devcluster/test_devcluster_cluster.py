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
