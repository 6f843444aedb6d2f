"""The plugin, as pytest loads it, in a process of its own: alone, and with xdist's workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kopylite.deploy import ApiCall, Recording

TESTS = """
from kopylite import App, Context, Kind, Request
from tests.operators import eventually

ConfigMap = Kind("v1", "ConfigMap")
app = App("greeter")

@app.reconciler(ConfigMap)
async def reconcile(ctx: Context, request: Request) -> None:
    found = await ctx.client.find(ConfigMap, request)
    if found is not None and request.namespace == "default":
        await ctx.client.patch(found, {"data": {"greeting": "hi"}})

async def greets(cluster, name):
    async with cluster.client() as client, cluster.running(app):
        metadata = {"name": name, "namespace": "default"}
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        async def greeted():
            return (await client.get(ConfigMap, name, namespace="default")).get("data")
        await eventually(greeted, "it is greeted")
"""
ONE = "from tests_of_it import *\nasync def test_it(kube_cluster): await greets(kube_cluster, 'one')\n"
OTHER = """
import pytest
from tests_of_it import *
@pytest.mark.kube_cluster(simulator=True)
async def test_it(kube_cluster):
    await greets(kube_cluster, 'two')
    with open(__file__ + '.ran', 'w'): pass
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_calls_of_the_app_are_recorded_and_not_those_of_the_test(
    tmp_path: Path, repository: Path, workers: str
) -> None:
    (tmp_path / "tests_of_it.py").write_text(TESTS)
    (tmp_path / "test_one.py").write_text(ONE)
    (tmp_path / "test_two.py").write_text(OTHER)
    recording = tmp_path / "recording.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--kopylite-rbac", str(recording), "-o",
               "asyncio_mode=auto", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]  # fmt: skip
    path = f"{repository}:{tmp_path}"
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": path, "PATH": ""}, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert Recording.read(recording).apps == ["greeter"], "not the simulator's"
    calls = Recording.read(recording).of("greeter")
    assert ApiCall("", "configmaps", "patch", "*") in calls
    assert ApiCall("", "configmaps", "watch", "") in calls
    assert not [call for call in calls if call.verb == "create" and call.resource == "configmaps"]
    assert (tmp_path / "test_two.py.ran").exists()
