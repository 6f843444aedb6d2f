"""What is missing is called what it is: a kind, or a sub-resource of one that is there."""

from __future__ import annotations

import uuid

import pytest

from kopylite import CustomResource, Kind
from kopylite.client import Client
from kopylite.errors import KindNotFound, SubresourceNotFound
from kopylite.testing import Cluster
from tests.operators import eventually

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


async def test_a_kind_whose_definition_goes_is_no_missing_sub_resource(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    group = f"g{uuid.uuid4().hex[:8]}.example.com"

    class Gadget(CustomResource[dict[str, str], dict[str, str]], group=group, version="v1"):
        pass

    [name] = await cluster.install_crds(Gadget)
    with pytest.raises(SubresourceNotFound, match="has no sub-resource 'scale'"):
        await client.get_subresource(Gadget, "a", "scale", namespace=namespace)
    await client.delete(CRD, name)

    async def gone() -> bool:
        try:
            await client.live.list(Gadget, namespace=namespace)
        except KindNotFound:
            return True
        return False

    await eventually(gone, "the kind is not served any more")

    async def is_called_a_kind() -> bool:
        try:
            await client.get_subresource(Gadget, "a", "scale", namespace=namespace)
        except KindNotFound as error:  # discovery of a real server follows in a moment
            text = f"the server does not serve Gadget.{group}/v1: is its CRD installed?"
            return type(error) is KindNotFound and text in str(error)
        return False

    await eventually(is_called_a_kind, "it is the kind that is missing", limit=2.5)
