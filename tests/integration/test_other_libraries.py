"""Objects of other libraries are owners, keys and bodies, as docs/how-to/other-libraries.md shows; each with its own.

What is not installed is skipped. cloudcoil is in no lock: its import alone takes six seconds.
"""

from __future__ import annotations

import ast
import re
import types
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kopylite import Kind, Request, Unstructured
from kopylite.client import Client

CONFIG_MAP, LEASE, SECRET = Kind("v1", "ConfigMap"), Kind("coordination.k8s.io/v1", "Lease"), Kind("v1", "Secret")
PAGE = Path(__file__).parents[2] / "docs/how-to/other-libraries.md"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)

pytestmark = pytest.mark.leaves("the loggers that libraries set up when they are imported")


def library(name: str) -> Any:
    """A module of a library, whose import may warn about its own affairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def made_by_kubernetes(namespace: str, name: str) -> Any:
    k8s = library("kubernetes.client")
    return k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name=name, namespace=namespace), data={"snake_case": "stays"})


def made_by_kubernetes_asyncio(namespace: str, name: str) -> Any:
    k8s = library("kubernetes_asyncio.client")
    return k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name=name, namespace=namespace), data={"snake_case": "stays"})


def made_by_kr8s(namespace: str, name: str) -> Any:
    objects = library("kr8s.asyncio.objects")
    return objects.ConfigMap({"metadata": {"name": name, "namespace": namespace}, "data": {"snake_case": "stays"}})


def made_by_lightkube(namespace: str, name: str) -> Any:
    meta = library("lightkube.models.meta_v1").ObjectMeta(name=name, namespace=namespace)
    return library("lightkube.resources.core_v1").ConfigMap(metadata=meta, data={"snake_case": "stays"})


def made_by_cloudcoil(namespace: str, name: str) -> Any:
    meta = library("cloudcoil.apimachinery").ObjectMeta(name=name, namespace=namespace)
    return library("cloudcoil.models.kubernetes.core.v1").ConfigMap(metadata=meta, data={"snake_case": "stays"})


MAKERS = [
    pytest.param(make, id=make.__name__.removeprefix("made_by_"))
    for make in (made_by_kubernetes, made_by_kubernetes_asyncio, made_by_kr8s, made_by_lightkube, made_by_cloudcoil)
]


@pytest.mark.parametrize("make", MAKERS)
async def test_an_object_is_a_body_a_key_and_an_owner(
    client: Client, namespace: str, make: Callable[[str, str], Any]
) -> None:
    given = make(namespace, "settings")
    stored = await client.create(given)
    assert type(stored) is type(given)
    assert Request.of(stored) == Request(namespace, "settings")
    found = await client.get(CONFIG_MAP, stored)
    assert found["data"] == {"snake_case": "stays"}

    secret = Unstructured(apiVersion="v1", kind="Secret", metadata={"name": "child", "namespace": namespace})
    child = await client.create(secret, owner=stored)
    assert [(ref.api_version, ref.kind, ref.uid) for ref in child.owner_references] == [("v1", "ConfigMap", found.uid)]
    both, _ = await client.create_or_update(SECRET, stored, lambda obj: None, owner=stored)
    assert both.name == "settings"

    applied = await client.apply(make(namespace, "applied"), owner=both)
    assert [ref.kind for ref in (await client.get(CONFIG_MAP, applied)).owner_references] == ["Secret"]
    assert await client.adopt(stored, owner=both, controller=False)

    patched = await client.patch(stored, {"data": {"more": "too"}})
    assert type(patched) is type(given)
    assert (await client.get(CONFIG_MAP, patched))["data"] == {"snake_case": "stays", "more": "too"}
    again = await client.update(patched)
    assert type(again) is type(given)
    assert (await client.get(CONFIG_MAP, again))["data"] == {"snake_case": "stays", "more": "too"}
    assert await client.delete(again)
    assert await client.find(CONFIG_MAP, given) is None


def lease_of_kubernetes(namespace: str) -> Any:
    k8s = library("kubernetes.client")
    meta = k8s.V1ObjectMeta(name="lease", namespace=namespace)
    return k8s.V1Lease(metadata=meta, spec=k8s.V1LeaseSpec(renew_time=NOON, lease_duration_seconds=15))


def lease_of_lightkube(namespace: str) -> Any:
    meta = library("lightkube.models.meta_v1").ObjectMeta(name="lease", namespace=namespace)
    spec = library("lightkube.models.coordination_v1").LeaseSpec(renewTime=NOON, leaseDurationSeconds=15)
    return library("lightkube.resources.coordination_v1").Lease(metadata=meta, spec=spec)


@pytest.mark.parametrize("make", [lease_of_kubernetes, lease_of_lightkube])
async def test_names_and_times_are_those_of_the_wire_and_what_is_not_set_is_not_sent(
    client: Client, namespace: str, make: Callable[[str], Any]
) -> None:
    await client.create(make(namespace))
    stored = await client.get(LEASE, "lease", namespace=namespace)
    assert stored["spec"] == {"leaseDurationSeconds": 15, "renewTime": "2026-01-02T12:00:00.000000Z"}


def widget_of_lightkube(namespace: str) -> Any:
    generic = library("lightkube.generic_resource")
    widget = generic.create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    return widget(metadata={"name": "w", "namespace": namespace, "uid": "u"}, spec={"size": 1})


def widget_of_kr8s(namespace: str) -> Any:
    widget = library("kr8s.asyncio.objects").new_class("Widget", "example.com/v1", namespaced=True)
    return widget({"metadata": {"name": "w", "namespace": namespace, "uid": "u"}, "spec": {"size": 1}})


@pytest.mark.parametrize("make", [widget_of_lightkube, widget_of_kr8s])
async def test_kinds_that_a_library_has_made_up_own_things_too(
    client: Client, namespace: str, make: Callable[[str], Any]
) -> None:
    child = Unstructured(apiVersion="v1", kind="Secret", metadata={"name": "child", "namespace": namespace})
    stored = await client.create(child, owner=make(namespace), dry_run=True)
    assert [(ref.api_version, ref.kind, ref.name) for ref in stored.owner_references] == [
        ("example.com/v1", "Widget", "w")
    ]


async def test_typed_reads_work_where_a_class_is_a_kind(client: Client, namespace: str) -> None:
    k8s = library("kubernetes.client")
    await client.create(made_by_kubernetes(namespace, "typed"))
    found = await client.get(k8s.V1ConfigMap, "typed", namespace=namespace)
    assert isinstance(found, k8s.V1ConfigMap)
    assert found.data == {"snake_case": "stays"}


EXAMPLES = dict(re.findall(r"^## ([\w-]+).*?^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_example_of_the_documentation_does_what_it_shows(client: Client, namespace: str, name: str) -> None:
    library(name if name != "lightkube" else "lightkube.models")
    shop = await client.create(
        Unstructured({"apiVersion": "v1", "kind": "Secret"} | {"metadata": {"name": "shop", "namespace": namespace}})
    )
    scope: dict[str, Any] = {"ctx": types.SimpleNamespace(client=client), "shop": shop}
    code = compile(EXAMPLES[name], str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await types.FunctionType(code, scope)()
    settings = await client.get(CONFIG_MAP, "settings", namespace=namespace)
    assert settings["data"]["currency"] in ("EUR", "USD")
    assert [reference.name for reference in settings.owner_references] == ["shop"]


def test_the_page_has_an_example_of_each() -> None:
    assert set(EXAMPLES) == {"kubernetes", "kr8s", "lightkube", "cloudcoil"}
