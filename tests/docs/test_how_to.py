"""The programs of the how-to and concept pages at work, on the embedded server."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from kopylite import App, Client, Kind, Unstructured
from kopylite.devcluster.appcrds import crds_of_app
from kopylite.testing import EmbeddedCluster, assert_converts
from tests.test_readme import as_module, pasted, programs_of_pages

CONFIG_MAP, SECRET, DEPLOYMENT = Kind("v1", "ConfigMap"), Kind("v1", "Secret"), Kind("apps/v1", "Deployment")
# Pages whose App a test below works with; the others are begun and ended.
WORKED_WITH = {"external-api", "many-children", "cross-namespace", "secrets", "report", "clean-up"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the pages tell to paste, where Python finds it."""
    made = tmp_path_factory.mktemp("pages")
    for name, text in pasted().items():
        (made / name).write_text(text)
    before = set(sys.modules)
    sys.path.insert(0, str(made))
    yield made
    sys.path.remove(str(made))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(made)):
            del sys.modules[name]


def program(folder: Path, page: str) -> dict[str, Any]:
    name = re.sub(r"\W", "_", page) + "_page"
    (folder / f"{name}.py").write_text(as_module(page))
    importlib.invalidate_caches()
    return vars(importlib.import_module(name))


@pytest.fixture
async def client(kube_cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with kube_cluster.client() as client:
        yield client


async def until(found: Callable[[], Awaitable[Any]]) -> Any:
    with anyio.fail_after(30):
        while not (value := await found()):  # noqa: ASYNC110  (there is no event for it)
            await anyio.sleep(0.01)
    return value


def wire(kind: str, name: str, namespace: str = "default", **parts: Any) -> Unstructured:
    version = {"Secret": "v1", "ConfigMap": "v1"}.get(kind, "example.com/v1")
    return Unstructured(apiVersion=version, kind=kind, metadata={"name": name, "namespace": namespace}, **parts)


OTHERS = [page for page in programs_of_pages() if page.startswith("docs/") and Path(page).stem not in WORKED_WITH]


async def test_the_apps_of_all_other_pages_begin_and_end(folder: Path, kube_cluster: EmbeddedCluster) -> None:
    begun = 0
    for page in OTHERS:
        app = program(folder, page).get("app")
        if isinstance(app, App) and app.controllers:
            await kube_cluster.install_crds(*crds_of_app(app), crd_of("Page"))
            async with kube_cluster.running(app):
                begun += 1
    assert begun >= 5


def crd_of(kind: str) -> dict[str, Any]:
    """Of a kind of somebody else, anything."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_many_children_come_and_go(folder: Path, kube_cluster: EmbeddedCluster, client: Client) -> None:
    page = program(folder, "docs/how-to/many-children.md")
    await kube_cluster.install_crds(page["Fleet"])
    async with kube_cluster.running(page["app"]):
        fleet = await client.create(wire("Fleet", "a", spec={"size": 5}))
        for size in (5, 2):
            await client.patch(fleet, {"spec": {"size": size}})
            wanted = {f"a-{number}" for number in range(size)}

            async def all_there(wanted: set[str] = wanted) -> bool:
                found = await client.list(CONFIG_MAP, namespace="default", labels={"example.com/fleet": "a"})
                return {one.name for one in found} == wanted

            assert await until(all_there)


async def test_a_copy_follows_what_is_shared(folder: Path, kube_cluster: EmbeddedCluster, client: Client) -> None:
    page = program(folder, "docs/how-to/cross-namespace.md")
    await kube_cluster.install_crds(page["Copy"])
    await client.create(Unstructured(apiVersion="v1", kind="Namespace", metadata={"name": "shared"}))
    async with kube_cluster.running(page["app"]):
        await client.create(wire("Copy", "a", spec={"source": {"namespace": "shared", "name": "source"}}))
        source = wire("ConfigMap", "source", "shared", data={"x": "1"})
        source["metadata"]["annotations"] = {"example.com/share": "true"}
        source = await client.create(source)
        for value in ("1", "2"):
            await client.patch(source, {"data": {"x": value}})

            async def copied(value: str = value) -> bool:
                found = await client.find(CONFIG_MAP, "a", namespace="default")
                return found is not None and found["data"] == {"x": value}

            assert await until(copied)


async def test_pods_are_rolled_when_a_secret_changes(
    folder: Path, kube_cluster: EmbeddedCluster, client: Client
) -> None:
    page = program(folder, "docs/how-to/secrets.md")
    await kube_cluster.install_crds(page["Site"])
    async with kube_cluster.running(page["app"]):
        await client.create(wire("Site", "a", spec={"image": "i", "secret": "password"}))
        secret = wire("Secret", "password", stringData={"PASSWORD": "one"})
        secret["metadata"]["labels"] = {"example.com/used-by": "sites"}
        secret = await client.create(secret)
        digests: list[str] = []

        async def another() -> bool:
            found = await client.find(DEPLOYMENT, "a", namespace="default")
            if found is not None:
                digests.append(found["spec"]["template"]["metadata"]["annotations"]["example.com/secret"])
            return bool(digests) and len(set(digests)) == wanted

        wanted = 1
        page_is_there = until(another)
        assert await page_is_there
        wanted = 2
        await client.patch(secret, {"stringData": {"PASSWORD": "two"}})
        assert await until(another)


async def test_a_record_comes_and_goes_with_its_object(
    folder: Path, kube_cluster: EmbeddedCluster, client: Client
) -> None:
    page = program(folder, "docs/how-to/external-api.md")
    told: list[dict[str, str]] = []
    dns = page["Dns"]
    before = dns.__init__

    def noted(self: Any) -> None:
        before(self)
        told.append(self.records)

    dns.__init__ = noted
    await kube_cluster.install_crds(*crds_of_app(page["app"]))
    async with kube_cluster.running(page["app"]):
        myapp = await client.create(wire("MyApp", "a", spec={"image": "one"}))

        async def is_told() -> bool:
            return told[0] == {myapp.uid: "one"}

        async def is_gone() -> bool:
            return await client.find(Kind("example.com/v1", "MyApp"), myapp) is None

        await until(is_told)
        await client.delete(myapp)
        await until(is_gone)
        assert told == [{}]


async def test_an_old_version_is_read_as_the_new_one(
    folder: Path, kube_cluster: EmbeddedCluster, client: Client
) -> None:
    import backups  # type: ignore[import-not-found]

    assert_converts(backups.Backup)
    await kube_cluster.install_crds(*crds_of_app(backups.app))
    async with kube_cluster.running(backups.app):
        old = wire("Backup", "a", spec={"timeout_minutes": 2})
        old["apiVersion"], old["spec"] = "example.com/v1beta1", {"timeoutMinutes": 2}
        await client.create(old)
        new = await client.live.get(Kind("example.com/v1", "Backup"), "a", namespace="default")
        assert new["spec"] == {"timeoutSeconds": 120}
