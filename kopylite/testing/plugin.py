"""The pytest plugin: loaded by pytest when kopylite is installed; imports nothing heavy until a fixture is used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kopylite.deploy.recorder import Recorder
    from kopylite.devcluster.embedded import EmbeddedCluster
    from kopylite.testing.envtest import EnvTest

_OPTION = "kopylite_rbac"
_SWEEPS = "kopylite.sweep.plugin"
_RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
_FOLDER: pytest.StashKey[tempfile.TemporaryDirectory[str]] = pytest.StashKey()
# Read by `kopylite run`: operators that tests start as processes record too, each into a file of its own.
_VARIABLE = "KOPYLITE_RECORD_RBAC"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("kopylite").addoption(
        "--kopylite-rbac",
        dest=_OPTION,
        metavar="FILE",
        help="record which calls the Apps under test make of the API server, for `kopylite manifests --rbac-from`; "
        "those that the file has already stay in it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and begin to record calls if that is asked for: in each process of xdist."""
    text = "kube_cluster(**options): the options of the EmbeddedCluster that the fixture kube_cluster makes"
    config.addinivalue_line("markers", text)
    if not config.pluginmanager.has_plugin(_SWEEPS):
        config.pluginmanager.import_plugin(_SWEEPS)
    if not config.getoption(_OPTION):
        return
    from kopylite.deploy.recorder import Recorder
    from kopylite.manager import Manager

    config.stash[_RECORDER] = Manager.recorder = Recorder()
    config.stash[_FOLDER] = tempfile.TemporaryDirectory(prefix="kopylite-rbac-")
    os.environ[_VARIABLE] = config.stash[_FOLDER].name


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its calls over; the process that was started by the user writes the file."""
    config = session.config
    recorder = config.stash.get(_RECORDER, None)
    if recorder is None:
        return
    from kopylite.deploy.recording import Recording

    for path in sorted(Path(config.stash[_FOLDER].name).glob("*.json")):
        recorder.recording.merge(Recording.read(path))
    if (output := getattr(config, "workeroutput", None)) is not None:
        output[_OPTION] = recorder.recording.to_wire()
    else:
        recorder.recording.add_to(Path(config.getoption(_OPTION)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """xdist's: a worker has ended; one that crashed has nothing to hand over."""
    recorder = node.config.stash.get(_RECORDER, None)
    if recorder is not None and _OPTION in (output := getattr(node, "workeroutput", {})):
        from kopylite.deploy.recording import Recording

        recorder.recording.merge(Recording.of_wire(output[_OPTION], "the recording of a worker"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the process as it was."""
    if _RECORDER in config.stash:
        from kopylite.manager import Manager

        Manager.recorder = None
        os.environ.pop(_VARIABLE, None)
        config.stash[_FOLDER].cleanup()


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
