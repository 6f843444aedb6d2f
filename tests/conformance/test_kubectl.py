"""kubectl cannot tell the embedded server from a real one: the same commands print the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from kopylite.testing import Cluster, EmbeddedCluster, EnvTest
from tests.conformance.kubectl.transcript import SCRIPTS, Output, differences, play
from tests.conformance.likeness.run import CONTROLLERS
from tests.machine import require_real_server

Environment = dict[str, str]


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[tuple[Environment, Environment]]:
    """A real and an embedded control plane with the same controllers: what kubectl needs in its environment."""
    require_real_server()
    with start_blocking_portal() as portal:
        real: Cluster = EnvTest(controllers=CONTROLLERS)
        embedded: Cluster = EmbeddedCluster(own_warnings=False)
        with portal.wrap_async_context_manager(real), portal.wrap_async_context_manager(embedded):
            yield (
                _environment(real, kubectl, tmp_path_factory.mktemp("real")),
                _environment(embedded, kubectl, tmp_path_factory.mktemp("embedded")),
            )


def _environment(cluster: Cluster, kubectl: str, folder: Path) -> Environment:
    return {
        "KUBECONFIG": str(cluster.kubeconfig),
        "KUBECACHEDIR": str(folder / "cache"),
        "SCRATCH": str(folder),
        "PATH": f"{Path(kubectl).parent}:{os.environ['PATH']}",
    }


@pytest.mark.realserver
@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.stem)
def test_kubectl_prints_the_same(script: Path, planes: tuple[Environment, Environment]) -> None:
    real, embedded = play_on_both(script, planes)
    if found := differences(real, embedded):
        pytest.fail(found, pytrace=False)


def play_on_both(script: Path, planes: tuple[Environment, Environment]) -> tuple[list[Output], list[Output]]:
    """Play a script in a namespace of its own on both, at the same time."""
    setup = f"kubectl create namespace {script.stem}\n\nkubectl config set-context --current --namespace {script.stem}"
    text = f"{setup}\n\n{script.read_text()}"
    with ThreadPoolExecutor(2) as threads:
        real, embedded = threads.map(lambda environment: play(text, environment), planes)
    return real, embedded


def test_a_rollout_ends_with_the_simulator(kubectl: str, tmp_path: Path) -> None:
    script = """
kubectl create -f web.yaml; kubectl rollout status deployment/web --timeout=30s | tail -n 1

kubectl set image deployment/web server=nginx:2; kubectl rollout status deployment/web --timeout=30s | tail -n 1

kubectl get deployment web

kubectl get pods -l app=web --field-selector status.phase=Running -o jsonpath='{.items[*].spec.containers[0].image}'

kubectl rollout history deployment/web

kubectl rollout undo deployment/web; kubectl rollout status deployment/web --timeout=30s | tail -n 1

kubectl get events --field-selector involvedObject.name=web -o custom-columns=REASON:.reason --no-headers | sort -u
"""
    with start_blocking_portal() as portal:
        cluster = EmbeddedCluster(simulator=True)
        with portal.wrap_async_context_manager(cluster):
            outputs = [output.text for output in play(script, _environment(cluster, kubectl, tmp_path))]
    done = 'deployment "web" successfully rolled out\n'
    assert outputs == [
        f"deployment.apps/web created\n{done}",
        f"deployment.apps/web image updated\n{done}",
        "NAME  READY  UP-TO-DATE  AVAILABLE  AGE\nweb  2/2  2  2  AGE\n",
        "nginx:2 nginx:2",
        "deployment.apps/web\nREVISION  CHANGE-CAUSE\n1  <none>\n2  <none>\n\n",
        f"deployment.apps/web rolled back\n{done}",
        "ScalingReplicaSet\n",
    ]
