"""Odd values on the wire: nulls, missing parts, unknown fields, 64-bit integers, fractions of a second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any

import pytest
from kubernetes_asyncio.client import V1Lease, V1LeaseSpec, V1ObjectMeta
from pydantic import BaseModel

from kopylite.client import Client
from kopylite.objects import CustomResource, Kind, MicroTime, ObjectMeta, Time, Unstructured, kind_of, preserve_unknown
from kopylite.testing import Cluster

DEPLOYMENT = Kind("apps/v1", "Deployment")
LEASE = Kind("coordination.k8s.io/v1", "Lease")
GROUP = "odd.example.com"

# The first integer that a double cannot hold, and the ends of the API's int64.
LARGE = pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63)])


class StoredSpec(BaseModel):
    """What the server lets in: nulls, and fields that the operator's class does not know."""

    count: int = 0
    tags: list[str] | None = []
    limits: dict[str, int] | None = {}
    rest: Annotated[dict[str, Any], preserve_unknown] = {}
    at: Time | None = None
    exactly: MicroTime | None = None


class StoredOdd(CustomResource[StoredSpec, None], group=GROUP, version="v1", kind="Odd"):
    pass


class OddSpec(BaseModel):
    count: int = 0
    tags: list[str] = []
    limits: dict[str, int] = {}
    at: Time | None = None
    exactly: MicroTime | None = None


class Odd(CustomResource[OddSpec, None], group=GROUP, version="v1"):
    """What the operator holds."""


ODD = kind_of(Odd)


@pytest.fixture(autouse=True)
async def installed(cluster: Cluster) -> None:
    await cluster.install_crds(StoredOdd)


def an_odd(namespace: str, **spec: Any) -> Unstructured:
    metadata = {"name": "odd", "namespace": namespace}
    wide = {"tags": None, "limits": None} | spec
    return Unstructured(apiVersion=ODD.api_version, kind="Odd", metadata=metadata, spec=wide)


async def test_null_lists_and_maps_read_as_empty_ones_and_can_be_filled(client: Client, namespace: str) -> None:
    stored = await client.create(an_odd(namespace))
    assert stored.spec["tags"] is None, "the server has stored the null"
    typed = await client.get(Odd, stored)
    assert (typed.spec.tags, typed.spec.limits) == ([], {})
    typed.spec.tags.append("a")
    typed.spec.limits["x"] = 1
    updated = await client.update(typed)
    assert (updated.spec.tags, updated.spec.limits) == (["a"], {"x": 1})


async def test_null_and_missing_parts_of_metadata_read_as_empty_ones(client: Client, namespace: str) -> None:
    odd = an_odd(namespace)
    odd["metadata"] |= dict.fromkeys(("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"))
    typed = await client.get(Odd, await client.create(odd))
    metadata = typed.metadata
    assert (metadata.labels, metadata.annotations, metadata.finalizers, metadata.owner_references) == ({}, {}, [], [])
    assert metadata.deletion_timestamp is None
    metadata.labels["a"] = "b"
    assert (await client.update(typed)).metadata.labels == {"a": "b"}


async def test_a_typed_write_keeps_the_fields_that_the_class_does_not_know(client: Client, namespace: str) -> None:
    rest = {"deep": [1, None, {"n": 2**53 + 1}], "empty": {}}
    await client.create(an_odd(namespace, rest=rest))
    typed = await client.get(Odd, "odd", namespace=namespace)
    typed.spec.count = 1
    await client.update(typed)
    await client.create_or_update(Odd, "odd", lambda odd: odd.spec.tags.append("a"), namespace=namespace)
    await client.create_or_patch(Odd, "odd", lambda odd: odd.spec.tags.append("b"), namespace=namespace)
    stored = await client.get(ODD, "odd", namespace=namespace)
    assert stored.spec["rest"] == rest
    assert (stored.spec["count"], stored.spec["tags"]) == (1, ["a", "b"])


@LARGE
async def test_integers_of_64_bits_are_exact_in_every_write(client: Client, namespace: str, number: int) -> None:
    typed = await client.create(Odd(metadata=ObjectMeta(name="odd", namespace=namespace), spec=OddSpec(count=number)))
    assert typed.spec.count == number

    async def reset() -> Odd:
        other = await client.patch(typed, patch={"spec": {"count": 0, "limits": {"x": number}}})
        assert (other.spec.count, other.spec.limits) == (0, {"x": number}), "merge"
        return other

    zero = await reset()
    zero.spec.count = number
    assert (await client.update(zero)).spec.count == number, "update"
    zero = await reset()
    steps = [
        {"op": "test", "path": "/spec/limits/x", "value": number},
        {"op": "replace", "path": "/spec/count", "value": number},
    ]
    assert (await client.patch(zero, patch=steps, type="json")).spec.count == number, "json"
    zero = await reset()
    desired = Odd(metadata=ObjectMeta(name="odd", namespace=namespace), spec=OddSpec(count=number))
    assert (await client.apply(desired, force=True)).spec.count == number, "apply"
    stored = await client.live.get(ODD, typed)
    assert stored.spec["count"] == number
    assert stored.spec["limits"] == {"x": number}


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1])
async def test_integers_of_64_bits_are_exact_in_strategic_patches(client: Client, namespace: str, number: int) -> None:
    labels = {"a": "b"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": "a", "namespace": namespace}
    made = await client.create(Unstructured(apiVersion="apps/v1", kind="Deployment", metadata=metadata, spec=spec))
    patch = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": number}}}}
    await client.patch(DEPLOYMENT, made, patch, type="strategic")
    stored = await client.live.get(DEPLOYMENT, made)
    assert stored.spec["template"]["spec"]["terminationGracePeriodSeconds"] == number


MOMENTS = [
    (datetime(2026, 1, 2, 3, 4, 5, 123456, UTC), "2026-01-02T03:04:05.123456Z"),
    (datetime(2026, 1, 2, 3, 4, 5, 0, UTC), "2026-01-02T03:04:05.000000Z"),
    (datetime(2026, 1, 2, 3, 4, 5, 1, timezone(timedelta(hours=2))), "2026-01-02T01:04:05.000001Z"),
]


@pytest.mark.parametrize(("moment", "text"), MOMENTS)
async def test_times_keep_their_digits_in_custom_resources(
    client: Client, namespace: str, moment: datetime, text: str
) -> None:
    spec = OddSpec(at=moment, exactly=moment)
    created = await client.create(Odd(metadata=ObjectMeta(name="odd", namespace=namespace), spec=spec))
    stored = await client.live.get(ODD, created)
    assert (stored.spec["exactly"], stored.spec["at"]) == (text, f"{text[:19]}Z")
    assert created.spec.exactly == moment
    assert (await client.update(created)).resource_version == created.resource_version, "it was written as it is stored"


@pytest.mark.parametrize(("moment", "text"), MOMENTS)
async def test_times_keep_their_digits_in_the_librarys_models(
    client: Client, namespace: str, moment: datetime, text: str
) -> None:
    lease = V1Lease(metadata=V1ObjectMeta(name="a", namespace=namespace), spec=V1LeaseSpec(renew_time=moment))
    created = await client.create(lease)
    assert created.spec.renew_time == moment
    assert (await client.live.get(LEASE, "a", namespace=namespace)).spec["renewTime"] == text
    assert (await client.update(created)).metadata.resource_version == created.metadata.resource_version
