"""The pytest plugin: loaded by pytest when kopylite is installed; imports nothing heavy until a fixture is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kopylite.devcluster.embedded import EmbeddedCluster
    from kopylite.testing.envtest import EnvTest


@pytest.fixture(scope="session")
def envtest() -> Iterator[EnvTest]:
    """A real kube-apiserver with etcd for the whole session; the test is skipped where the binaries are missing.

    It runs in a thread of its own, so that tests of any event loop can share it: use its `kubeconfig`, `client()`
    and `install_crds()`, and a namespace for each test.
    """
    from anyio.from_thread import start_blocking_portal

    from kopylite.testing.envtest import EnvTest, find_assets

    if find_assets() is None:
        pytest.skip("no kube-apiserver and etcd: let KUBEBUILDER_ASSETS name their folder")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EnvTest()) as env:
        yield env


def pytest_configure(config: pytest.Config) -> None:
    text = "kube_cluster(**options): the options of the EmbeddedCluster that the fixture kube_cluster makes"
    config.addinivalue_line("markers", text)


@pytest.fixture
def kube_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """An embedded control plane of its own for each test: an empty world, with garbage collector and namespaces.

        async def test_a_deployment_appears(kube_cluster):
            await kube_cluster.install_crds(MyApp)
            async with kube_cluster.client() as client:
                ...

    It starts in milliseconds, and runs in a thread of its own, so that it serves tests of any event loop, and
    answers while a test blocks. A mark gives it the options of an EmbeddedCluster, on a test, a class or a module:

        @pytest.mark.kube_cluster(simulator=True, crds=[MyApp])

    One for many tests is a fixture of three lines:

        @pytest.fixture(scope="session")
        def shared_cluster():
            with start_blocking_portal() as portal, portal.wrap_async_context_manager(EmbeddedCluster()) as cluster:
                yield cluster
    """
    from anyio.from_thread import start_blocking_portal

    from kopylite.devcluster.embedded import EmbeddedCluster

    options: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("kube_cluster"))):  # the test's own comes last
        options |= mark.kwargs
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EmbeddedCluster(**options)) as cluster:
        yield cluster
