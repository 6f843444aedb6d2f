"""See the sample work: a cluster in this process, the operator, and what it does about each change.

    python -m samples.myapp.demo

Every line is checked against the cluster; the exit code is 1 if anything does not come true.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from kopylite import Client, Kind, Manager, Options, Unstructured
from kopylite.client import load_config
from kopylite.testing import Cluster, EmbeddedCluster
from samples.myapp.operator import ConfigMap, Deployment, MyApp, app

NAMESPACE = "default"
ReplicaSet, Pod = Kind("apps/v1", "ReplicaSet"), Kind("v1", "Pod")
LIMIT = 15.0  # seconds for each thing that should come true; most take some milliseconds

GO_ON = """
To go on by yourself, with kubectl:

    make dev                                     a cluster and this operator, until Ctrl-C

and, in another terminal, as it tells you:

    export KUBECONFIG=$PWD/kopylite.kubeconfig
    kubectl create -f - <<< '{"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": {"name": "demo"},
                              "spec": {"image": "nginx:1", "replicas": 2}}'
    kubectl get myapps,deployments,pods
    kubectl delete deployment demo               it comes back
"""


class NotSo(Exception):
    """Something that should have come true did not."""


class Demo:
    """The steps, each told and checked."""

    def __init__(self, client: Client, manager: Manager, cluster: EmbeddedCluster) -> None:
        self.client = client
        self.manager = manager
        self.cluster = cluster
        self.checks = 0

    async def run(self) -> None:
        """All steps, in order. Raises NotSo."""
        await self.created()
        await self.restored()
        await self.rebuilt()
        await self.rolled_out()
        await self.followed()
        await self.left_alone()
        await self.collected()

    async def created(self) -> None:
        step("Create a MyApp of 2 replicas that names a ConfigMap, and another one that does not")
        settings = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": named("settings"),
            "data": {"GREETING": "hello"},
        }
        await self.client.create(Unstructured(settings))
        await self.client.create(a_myapp("web", replicas=2, config="settings"))
        await self.client.create(a_myapp("other", replicas=1))
        await self.comes_true("the operator created a Deployment, owned by the MyApp", self.owned)
        await self.comes_true("its pods run, and the MyApp's status says 2 are ready", lambda: self.ready(2))

    async def restored(self) -> None:
        step("Scale the Deployment to 5 by hand, behind the operator's back")
        changed = await self.client.patch(
            Deployment, "web", {"spec": {"replicas": 5}}, namespace=NAMESPACE, field_manager="somebody"
        )

        async def back() -> bool:
            now = await self.client.get(Deployment, "web", namespace=NAMESPACE)
            return now["spec"]["replicas"] == 2 and now.generation > changed.generation

        await self.comes_true("the operator set it back to 2", back)

    async def rebuilt(self) -> None:
        step("Delete the Deployment")
        first = await self.client.get(Deployment, "web", namespace=NAMESPACE)
        await self.client.delete(first)

        async def again() -> bool:
            now = await self.client.find(Deployment, "web", namespace=NAMESPACE)
            return now is not None and now.uid != first.uid

        await self.comes_true("the operator built a new one", again)
        await self.comes_true("and 2 are ready again", lambda: self.ready(2))

    async def rolled_out(self) -> None:
        step("Change the image and the replicas of the MyApp")
        await self.client.patch(MyApp, "web", {"spec": {"image": "nginx:2", "replicas": 3}}, namespace=NAMESPACE)

        async def new_pods() -> bool:
            pods = await self.client.list(Pod, namespace=NAMESPACE, labels="app=web")
            images = [pod["spec"]["containers"][0]["image"] for pod in pods]
            return images == ["nginx:2"] * 3

        await self.comes_true("the Deployment rolled out: 3 pods, all with the new image", new_pods)
        await self.comes_true("and the MyApp's status says 3 are ready", lambda: self.ready(3))

    async def followed(self) -> None:
        step("Change the ConfigMap")
        await self.rest()
        before = self.runs()
        await self.client.patch(ConfigMap, "settings", {"data": {"GREETING": "good day"}}, namespace=NAMESPACE)

        async def ran() -> bool:
            return self.runs() > before

        await self.comes_true("the operator looked again at the MyApp that names it", ran)
        await self.rest()
        self.is_true("and at no other", self.runs() == before + 1)

    async def left_alone(self) -> None:
        step("Touch the ConfigMap 5 times, which changes nothing for the Deployment")
        before = self.runs()
        with self.cluster.requests.recording() as recorded:
            for number in range(5):
                patch = {"metadata": {"annotations": {"touched": str(number)}}}
                await self.client.patch(ConfigMap, "settings", patch, namespace=NAMESPACE)
                await self.rest()
        await self.comes_true("the operator looked each time", lambda: true(self.runs() >= before + 5))
        writes = [request for request in recorded if request.writes and request.agent.startswith(f"{app.name}/")]
        self.is_true("and wrote nothing", not writes)

    async def collected(self) -> None:
        step("Delete the MyApp")
        await self.client.delete(MyApp, "web", namespace=NAMESPACE)

        async def gone() -> bool:
            lists = [await self.client.list(kind, namespace=NAMESPACE) for kind in (Deployment, ReplicaSet, Pod)]
            return not any(obj.labels.get("app") == "web" or obj.name == "web" for found in lists for obj in found)

        await self.comes_true("the garbage collector took its Deployment, ReplicaSets and pods along", gone)
        other = await self.client.find(Deployment, "other", namespace=NAMESPACE)
        self.is_true("and left the other MyApp's", other is not None)

    async def owned(self) -> bool:
        deployment = await self.client.find(Deployment, "web", namespace=NAMESPACE)
        myapp = await self.client.get(MyApp, "web", namespace=NAMESPACE)
        return deployment is not None and [owner.uid for owner in deployment.owner_references] == [myapp.uid]

    async def ready(self, count: int) -> bool:
        myapp = await self.client.get(MyApp, "web", namespace=NAMESPACE)
        return myapp.status is not None and myapp.status.ready_replicas == count

    def runs(self) -> float:
        """How many reconciles there were."""
        families = self.manager.metrics.registry.collect()
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == "controller_runtime_reconcile_total"
        )

    async def rest(self) -> None:
        """Wait until the operator has nothing to do for a moment."""
        quiet_since, runs = time.monotonic(), self.runs()
        with anyio.fail_after(LIMIT):
            while time.monotonic() - quiet_since < 0.3:
                await anyio.sleep(0.02)
                if self.runs() != runs:
                    quiet_since, runs = time.monotonic(), self.runs()

    async def comes_true(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait for it, and say how long it took. Raises NotSo."""
        began = time.monotonic()
        while not await condition():
            if time.monotonic() - began > LIMIT:
                raise NotSo(f"{what}: not within {LIMIT:.0f} s")
            await anyio.sleep(0.01)
        self._tell(f"{what} ({time.monotonic() - began:.2f} s)")

    def is_true(self, what: str, condition: bool) -> None:
        """Raises NotSo."""
        if not condition:
            raise NotSo(what)
        self._tell(what)

    def _tell(self, what: str) -> None:
        self.checks += 1
        print(f"  ok  {what}", flush=True)


async def true(value: bool) -> bool:
    return value


def step(what: str) -> None:
    print(f"\n{what}", flush=True)


def named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": NAMESPACE}


def a_myapp(name: str, *, replicas: int, config: str | None = None) -> Unstructured:
    spec = {"image": "nginx:1", "replicas": replicas} | ({"config": config} if config else {})
    return Unstructured({"apiVersion": "example.com/v1", "kind": "MyApp", "metadata": named(name), "spec": spec})


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[Manager]:
    """The operator, at work."""
    options = Options(metrics_address="off", health_address="off", grace_period=5)
    manager = Manager(app, load_config(str(cluster.kubeconfig)), options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_synced()
        try:
            yield manager
        finally:
            manager.stop()


async def main() -> int:
    """The exit code."""
    began = time.monotonic()
    print("Start a cluster in this process: API server, garbage collector, workloads", flush=True)
    async with EmbeddedCluster(crds=[MyApp], simulator=True) as cluster:
        print(f"  ok  Kubernetes at {cluster.url} ({time.monotonic() - began:.2f} s)", flush=True)
        step("Start the operator, samples/myapp/operator.py")
        async with running(cluster) as manager, cluster.client() as client:
            print("  ok  its caches are in sync", flush=True)
            demo = Demo(client, manager, cluster)
            try:
                await demo.run()
            except NotSo as error:
                print(f"  NOT SO: {error}", flush=True)
                return 1
    print(f"\n{demo.checks} checks passed in {time.monotonic() - began:.1f} s.\n{GO_ON}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(anyio.run(main))
