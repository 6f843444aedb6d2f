"""Fixtures of the whole suite: the control planes, a namespace per test, an operator as a real process."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from kopylite.client import Client
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster, EmbeddedCluster, EnvTest
from kopylite.testing.envtest import find_assets
from tests.machine import require, require_real_server

NAMESPACE = Kind("v1", "Namespace")


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[EnvTest]:
    """A real control plane with its controllers, shared by the session."""
    require_real_server()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EnvTest(controllers=True)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """The embedded control plane with its controllers, shared by the session."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EmbeddedCluster()) as cluster:
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Each test that uses it runs on every control plane."""
    found: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster" in metafunc.fixturenames:
        planes = ["embedded", pytest.param("real", marks=pytest.mark.realserver)]
        metafunc.parametrize("cluster", planes, indirect=True)


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """A client with every right, for the test itself."""
    async with cluster.client() as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A fresh namespace; its deletion is asked for at the end, not waited for."""
    created = await client.create(
        Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})
    )
    yield created.name
    await client.delete(NAMESPACE, created.name)


@pytest.fixture(scope="session")
def kubectl() -> str:
    """The path of a kubectl binary."""
    assets = find_assets()
    found = shutil.which("kubectl", path=str(assets) if assets else None) or shutil.which("kubectl")
    require(found, "no kubectl: put one on PATH or into KUBEBUILDER_ASSETS")
    return str(found)


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
