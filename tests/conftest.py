"""Fixtures of the whole suite: the control planes, a namespace per test, an operator as a real process."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from anyio.from_thread import start_blocking_portal

from kopylite.objects import Kind, Unstructured
from kopylite.testing.envtest import find_assets
from tests.leftovers import Loops, Process
from tests.machine import require, require_real_server
from tests.sizes import load_profile

if TYPE_CHECKING:  # loaded when a fixture is used: the process that only hands tests out needs none of it
    from kopylite.client import Client
    from kopylite.testing import Cluster, EmbeddedCluster, EnvTest

# No test trusts the authorities of the machine, and reading them takes 50 ms for each client that could.
os.environ |= {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}

NAMESPACE = Kind("v1", "Namespace")

RUNTIME = ("cache", "client", "controller", "manager", "workqueue")

load_profile()


@pytest.fixture(scope="session", autouse=True)
def watched_loops() -> Iterator[Loops]:
    """Every event loop of the session is looked at when it ends; see tests/leftovers.py."""
    loops = Loops()
    loops.install()
    uvloop.run(asyncio.sleep(0))  # opens two pipes that belong to the process from then on
    loops.taken()
    yield loops
    loops.uninstall()


@pytest.fixture(autouse=True)
def nothing_left_over(request: pytest.FixtureRequest, watched_loops: Loops) -> Iterator[None]:
    """Fails the test that leaves something behind. It is set up first, so it looks after all others are gone."""
    for name in request.fixturenames:
        if name.endswith("_cluster"):
            request.getfixturevalue(name)  # shared by many tests; not this one's
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster")
    if request.node.get_closest_marker("realserver") is not None and needs_the_real_cluster(request.node):
        request.getfixturevalue("real_cluster")
    watched_loops.taken()  # of a session's fixture that ended between
    before = Process(watched_loops.watched)
    yield
    left = watched_loops.taken() + before.left()
    if left and request.node.get_closest_marker("leaves") is None:
        pytest.fail("left over:\n" + "\n".join(f"- {one}" for one in left), pytrace=False)


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[EnvTest]:
    """A real control plane with its controllers, shared by the session."""
    from kopylite.testing import EnvTest

    require_real_server()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(EnvTest(controllers=True, start_timeout=150)) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """The embedded control plane with its controllers, shared by a module.

    Not longer: its thread raises the interpreter's recursion limit while it reads, which tests of others notice.
    """
    from kopylite.testing import EmbeddedCluster

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


# Where the event loop is what the code under test lives on. Elsewhere asyncio's own is enough.
BOTH_LOOPS = (
    "tests/integration/",
    "tests/chaos/",
    "tests/unit/serving/test_serving_door",
    *(f"tests/unit/{room}/" for room in RUNTIME),
)
# One event loop is enough for what is about the answers of a server, or about processes with a loop of their own.
ONE_LOOP = tuple(
    f"tests/integration/test_{name}"
    for name in (
        "client_",
        "cluster_webhooks",
        "webhook",
        "apiserver_killed",
        "deployed_rights",
        "embedded_dev",
        "embedded_simulator",
        "operator_imports",
        "other_libraries",
    )
)


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The tests of the runtime run on uvloop too: with it installed, that is what operators run on."""
    loops = {"asyncio": asyncio.new_event_loop}
    both = item.nodeid.startswith(BOTH_LOOPS) and not item.nodeid.startswith(ONE_LOOP)
    return loops | {"uvloop": uvloop.new_event_loop} if both else loops


# The first of parallel processes: what compares a whole server, before other tests have put their kinds there, and the
# files that take longest, by measured CPU: begun late, one of them would keep one process at work, and others idle.
FIRST = (
    "tests/conformance/test_openapi_protobuf.py",
    "tests/conformance/test_bootstrap_objects.py",
    "tests/conformance/test_likeness.py",
    "tests/conformance/test_kubectl.py",
    "tests/conformance/test_kinds.py",
    "tests/conformance/test_myapp_sample.py",
    "tests/conformance/test_fuzz_codes.py",
    "tests/conformance/test_objects_zoo.py",
    "tests/elections/test_processes.py",
    "tests/elections/test_shards.py",
    "tests/integration/test_deployed_rights.py",
    "tests/properties/test_leaderelection_roster.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Parallel processes take files in this order; those of the real server come last, as it eats while it is there."""
    real, size = set(), Counter(file_of(item) for item in items)
    for item in items:
        if any(name.endswith("cluster") for name in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)
        if needs_the_real_cluster(item) or item.get_closest_marker("realserver") is not None:
            real.add(file_of(item))

    def turn(item: pytest.Item) -> tuple[bool, int, int, str]:
        file = file_of(item)
        return file in real, FIRST.index(file) if file in FIRST else len(FIRST), -size[file], file

    items.sort(key=turn)


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is there at its end stays to the end: no look for garbage goes through it, half a second each. And the
    looks are rarer than Python's own, as an example of hypothesis alone makes thousands of objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report: pytest.TestReport | pytest.CollectReport) -> Generator[None, Any, Any]:
    """A lone surrogate in what a test logged would end xdist, and all tests with it. Of what passed nobody reads more
    than that; thousands of logs and lists of marks take seconds to be sent and read."""
    data = yield
    return data | {"keywords": {}, "sections": []} if report.passed else told(data)


def told(data: Any) -> Any:
    """A report as it can be sent to another process."""
    if isinstance(data, str):
        return data.encode(errors="backslashreplace").decode()
    if isinstance(data, dict):
        return {told(key): told(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(map(told, data))
    return data


def needs_the_real_cluster(item: pytest.Item) -> bool:
    if "real_cluster" in getattr(item, "fixturenames", ()):
        return True
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "real" in callspec.params.values()


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
