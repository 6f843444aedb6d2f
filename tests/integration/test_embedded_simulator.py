"""The played workloads, as kubectl and operators see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from kopylite.client import Client
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster, Simulation, VirtualClock
from tests.operators import eventually

DEPLOYMENT, REPLICA_SET = Kind("apps/v1", "Deployment"), Kind("apps/v1", "ReplicaSet")
STATEFUL_SET, DAEMON_SET = Kind("apps/v1", "StatefulSet"), Kind("apps/v1", "DaemonSet")
JOB, POD = Kind("batch/v1", "Job"), Kind("v1", "Pod")
EVENT, SERVICE = Kind("v1", "Event"), Kind("v1", "Service")
SLICE, CLAIM = Kind("discovery.k8s.io/v1", "EndpointSlice"), Kind("v1", "PersistentVolumeClaim")
REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster(simulator=Simulation(job_seconds=0)) as cluster, cluster.client() as client:
        yield client


def workload(kind: str, name: str, *, version: str = "apps/v1", image: str = "nginx:1", **spec: Any) -> Unstructured:
    labels = {"app": name}
    pod: dict[str, object] = {"containers": [{"name": "main", "image": image}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    metadata = {"name": name, "namespace": "default"}
    return Unstructured(
        {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {**spec, "template": template}}
    )


async def get(client: Client, kind: Kind, name: str) -> Unstructured:
    return await client.get(kind, name, namespace="default")


async def pods_of(client: Client, name: str) -> list[Unstructured]:
    return await client.list(POD, namespace="default", labels=f"app={name}")


def conditions(obj: Unstructured) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in obj.status.get("conditions", [])}


async def rolled_out(client: Client, name: str) -> bool:
    """As `kubectl rollout status` decides it."""
    now = await get(client, DEPLOYMENT, name)
    wanted, status = now["spec"]["replicas"], now.status
    return (
        status.get("observedGeneration") == now.generation
        and [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")] == [wanted] * 3
    )


async def test_a_deployment_becomes_ready_as_in_a_cluster(client: Client) -> None:
    await client.create(workload("Deployment", "web", replicas=3))
    await eventually(lambda: rolled_out(client, "web"), "the rollout ended")
    deployment = await get(client, DEPLOYMENT, "web")
    assert deployment.generation == 1
    assert deployment.annotations[REVISION] == "1"
    assert deployment.status["terminatingReplicas"] == 0
    assert conditions(deployment) == {
        "Progressing": ("True", "NewReplicaSetAvailable"),
        "Available": ("True", "MinimumReplicasAvailable"),
    }
    (replica_set,) = await client.list(REPLICA_SET, namespace="default")
    assert replica_set.name == f"web-{replica_set.labels['pod-template-hash']}"
    assert replica_set.status == {
        "observedGeneration": 1, "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "terminatingReplicas": 0,
    }  # fmt: skip
    pods = await pods_of(client, "web")
    assert len({pod.status["podIP"] for pod in pods}) == 3
    assert all(pod["spec"]["nodeName"].startswith("node-") for pod in pods)
    assert all(pod.generation == 1 for pod in pods)


async def test_an_update_keeps_within_its_limits_and_leaves_a_history(client: Client) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await client.create(workload("Deployment", "web", replicas=4, strategy=rolling))
    await eventually(lambda: rolled_out(client, "web"), "the first rollout ended")
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
    await client.patch(DEPLOYMENT, "web", patch, namespace="default", type="json")
    sizes: set[int] = set()

    async def done() -> bool:
        replica_sets = await client.list(REPLICA_SET, namespace="default")
        sizes.add(sum(replica_set["spec"]["replicas"] for replica_set in replica_sets))
        return await rolled_out(client, "web")

    await eventually(done, "the second rollout ended")
    assert max(sizes) <= 5
    assert min(sizes) >= 4
    history = {
        replica_set.annotations[REVISION]: replica_set["spec"]["replicas"]
        for replica_set in await client.list(REPLICA_SET, namespace="default")
    }
    assert history == {"1": 0, "2": 4}
    await client.patch(DEPLOYMENT, "web", [patch[0] | {"value": "nginx:1"}], namespace="default", type="json")
    await eventually(lambda: rolled_out(client, "web"), "the way back ended")
    found = await client.list(REPLICA_SET, namespace="default")
    assert sorted(replica_set.annotations[REVISION] for replica_set in found) == ["2", "3"], "the old one is used again"
    assert (await get(client, DEPLOYMENT, "web")).annotations[REVISION] == "3"


async def test_recreate_ends_the_old_before_it_begins_the_new(client: Client) -> None:
    await client.create(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    await eventually(lambda: rolled_out(client, "web"), "the first rollout ended")
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
    await client.patch(DEPLOYMENT, "web", patch, namespace="default", type="json")
    images: set[frozenset[str]] = set()

    async def done() -> bool:
        pods = await pods_of(client, "web")
        images.add(frozenset(pod["spec"]["containers"][0]["image"] for pod in pods))
        return await rolled_out(client, "web")

    await eventually(done, "the second rollout ended")
    assert frozenset({"nginx:1", "nginx:2"}) not in images


async def test_scaling_is_no_new_revision(client: Client) -> None:
    await client.create(workload("Deployment", "web", replicas=1))
    await eventually(lambda: rolled_out(client, "web"), "the rollout ended")
    for size in (4, 2, 0):
        await client.patch(DEPLOYMENT, "web", {"spec": {"replicas": size}}, namespace="default")
        await eventually(lambda: rolled_out(client, "web"), f"it was scaled to {size}")
    assert len(await client.list(REPLICA_SET, namespace="default")) == 1
    notes = [event["message"] for event in await client.list(EVENT, namespace="default")]
    (name,) = [replica_set.name for replica_set in await client.list(REPLICA_SET, namespace="default")]
    assert f"Scaled down replica set {name} from 4 to 2" in notes


async def test_a_paused_deployment_waits(client: Client) -> None:
    await client.create(workload("Deployment", "web", replicas=1, paused=True))

    async def told() -> bool:
        return "Progressing" in conditions(await get(client, DEPLOYMENT, "web"))

    await eventually(told, "the status told of it")
    assert conditions(await get(client, DEPLOYMENT, "web"))["Progressing"] == ("Unknown", "DeploymentPaused")
    assert await client.list(REPLICA_SET, namespace="default") == []
    await client.patch(DEPLOYMENT, "web", {"spec": {"paused": False}}, namespace="default")
    await eventually(lambda: rolled_out(client, "web"), "it went on")


async def test_what_cannot_run_says_so_and_holds_up_the_rollout() -> None:
    plan = Simulation(failing_images=("broken",))
    async with EmbeddedCluster(simulator=plan) as cluster, cluster.client() as client:
        await client.create(workload("Deployment", "web", replicas=2))
        await eventually(lambda: rolled_out(client, "web"), "the good one ran")
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "broken:1"}]
        await client.patch(DEPLOYMENT, "web", patch, namespace="default", type="json")

        async def stuck() -> bool:
            waiting = [pod.status.get("containerStatuses", [{}])[0] for pod in await pods_of(client, "web")]
            return any(
                status.get("state", {}).get("waiting", {}).get("reason") == "ImagePullBackOff" for status in waiting
            )

        await eventually(stuck, "a pod could not pull its image")
        deployment = await get(client, DEPLOYMENT, "web")
        assert deployment.status["availableReplicas"] == 2, "the old ones stay until the new ones are ready"
        assert conditions(deployment)["Available"] == ("True", "MinimumReplicasAvailable")


def test_a_rollout_that_takes_too_long_is_given_up_and_may_still_end() -> None:
    clock = VirtualClock()
    plan = Simulation(start_seconds=3600)
    seen: dict[tuple[str, str], float] = {}

    async def main() -> None:
        cluster = EmbeddedCluster(clock=clock, simulator=plan, tls=False)
        async with cluster, cluster.client() as client:
            await client.create(workload("Deployment", "web", replicas=2))
            while not await rolled_out(client, "web"):
                await anyio.sleep(10)
                shown = conditions(await get(client, DEPLOYMENT, "web")).get("Progressing", ("", ""))
                seen.setdefault(shown, clock.monotonic())

    clock.run(main)
    assert 600 <= seen["False", "ProgressDeadlineExceeded"] <= 620
    assert 3600 <= seen["True", "NewReplicaSetAvailable"] <= 3620


TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def test_a_stateful_set_counts_its_pods_and_keeps_their_claims(client: Client) -> None:
    await client.create(workload("StatefulSet", "db", replicas=3, serviceName="db", volumeClaimTemplates=[TEMPLATE]))

    async def ready(count: int, image: str = "nginx:1") -> bool:
        now = await get(client, STATEFUL_SET, "db")
        images = {pod["spec"]["containers"][0]["image"] for pod in await pods_of(client, "db")}
        status = now.status
        return (
            status.get("observedGeneration") == now.generation
            and status.get("readyReplicas", 0) == status.get("replicas") == count
            and images == {image}
            and status["currentRevision"] == status["updateRevision"]
        )

    await eventually(lambda: ready(3), "three were ready")
    pods = sorted(await pods_of(client, "db"), key=lambda pod: pod.name)
    assert [pod.name for pod in pods] == ["db-0", "db-1", "db-2"]
    made = [pod.metadata["creationTimestamp"] for pod in pods]
    assert made == sorted(made)
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
    await client.patch(STATEFUL_SET, "db", patch, namespace="default", type="json")
    await eventually(lambda: ready(3, "nginx:2"), "all were replaced")
    await client.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}}, namespace="default")
    await eventually(lambda: ready(1, "nginx:2"), "the last ones went")
    assert sorted(claim.name for claim in await client.list(CLAIM, namespace="default")) == [
        "data-db-0", "data-db-1", "data-db-2",
    ]  # fmt: skip


@pytest.mark.parametrize("deleted", ["Delete", "Retain"])
@pytest.mark.parametrize("scaled", ["Delete", "Retain"])
async def test_claims_go_or_stay_as_their_stateful_set_says(client: Client, deleted: str, scaled: str) -> None:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    stateful_set = workload("StatefulSet", "db", replicas=2, ordinals={"start": 5}, volumeClaimTemplates=[TEMPLATE])
    stateful_set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy
    await client.create(stateful_set)

    async def owners() -> dict[str, list[str]]:
        claims = await client.list(CLAIM, namespace="default")
        return {one.name: [ref.kind for ref in one.owner_references] for one in claims}

    async def become(wanted: dict[str, list[str]], pods: int) -> None:
        async def reached() -> bool:
            there = [pod for pod in await pods_of(client, "db") if pod.deletion_timestamp is None]
            return len(there) == pods and await owners() == wanted

        await eventually(reached, f"there were {pods} pods and claims {wanted}")

    owned = ["StatefulSet"] if deleted == "Delete" else []
    await become({"data-db-5": owned, "data-db-6": owned}, pods=2)
    await client.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}}, namespace="default")
    left = {"data-db-5": owned} | ({"data-db-6": owned} if scaled == "Retain" else {})
    await become(left, pods=1)
    patch = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}
    await client.patch(STATEFUL_SET, "db", patch, namespace="default")
    await become({**left, "data-db-5": []}, pods=1)
    patch["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = deleted
    await client.patch(STATEFUL_SET, "db", patch, namespace="default")
    await become(left, pods=1)
    await client.delete(STATEFUL_SET, "db", namespace="default")
    await become({} if deleted == "Delete" else left, pods=0)


async def test_a_daemon_set_has_a_pod_on_each_node(client: Client) -> None:
    await client.create(workload("DaemonSet", "agent"))

    async def ready(image: str) -> bool:
        now = await get(client, DAEMON_SET, "agent")
        pods = await pods_of(client, "agent")
        return (
            now.status.get("numberReady") == now.status.get("updatedNumberScheduled") == 2
            and now.status["observedGeneration"] == now.generation
            and {pod["spec"].get("nodeName") for pod in pods} == {"node-0", "node-1"}
            and {pod["spec"]["containers"][0]["image"] for pod in pods} == {image}
        )

    await eventually(lambda: ready("nginx:1"), "both nodes had one")
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
    await client.patch(DAEMON_SET, "agent", patch, namespace="default", type="json")
    await eventually(lambda: ready("nginx:2"), "both were replaced")


async def test_a_job_completes(client: Client) -> None:
    await client.create(workload("Job", "once", version="batch/v1", completions=3, parallelism=2))

    async def complete() -> bool:
        return "Complete" in conditions(await get(client, JOB, "once"))

    await eventually(complete, "it was complete")
    job = await get(client, JOB, "once")
    assert conditions(job)["Complete"] == ("True", "CompletionsReached")
    assert job.status["succeeded"] == 3
    assert "active" not in job.status
    assert job.status["completionTime"] >= job.status["startTime"]


async def test_a_job_fails_when_its_pods_do_too_often() -> None:
    plan = Simulation(failing_images=("broken",))
    async with EmbeddedCluster(simulator=plan) as cluster, cluster.client() as client:
        await client.create(workload("Job", "bad", version="batch/v1", image="broken", backoffLimit=1))

        async def failed() -> bool:
            return "Failed" in conditions(await get(client, JOB, "bad"))

        await eventually(failed, "it failed")
        job = await get(client, JOB, "bad")
        assert conditions(job)["Failed"] == ("True", "BackoffLimitExceeded")
        assert job.status["failed"] == 2


async def test_a_service_knows_the_addresses_of_its_pods(client: Client) -> None:
    await client.create(workload("Deployment", "web", replicas=2))
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    metadata = {"name": "web", "namespace": "default"}
    await client.create(Unstructured({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}))

    async def addresses() -> bool:
        slices = await client.list(SLICE, namespace="default", labels="kubernetes.io/service-name=web")
        shown = {a for found in slices for endpoint in found["endpoints"] or [] for a in endpoint["addresses"]}
        return len(shown) == 2 and shown == {pod.status.get("podIP") for pod in await pods_of(client, "web")}

    await eventually(addresses, "the slice had the addresses of both pods")


async def test_it_comes_to_rest() -> None:
    async with EmbeddedCluster(simulator=True) as cluster, cluster.client() as client:
        await client.create(workload("Deployment", "web", replicas=3))
        await client.create(workload("StatefulSet", "db", replicas=2, serviceName="db"))
        await client.create(workload("DaemonSet", "agent"))
        await eventually(lambda: rolled_out(client, "web"), "the rollout ended")

        async def quiet() -> bool:
            before = len(cluster.requests)
            await anyio.sleep(0.5)
            return len(cluster.requests) == before

        await eventually(quiet, "nobody asked for anything more")


async def test_workloads_and_collection_go_on_after_a_restart_of_the_server() -> None:
    async with EmbeddedCluster(simulator=True) as cluster, cluster.client() as client:
        await client.create(workload("Deployment", "before", replicas=1))
        await eventually(lambda: rolled_out(client, "before"), "the first rollout ended")
        await cluster.kill_api_server()
        await cluster.start_api_server()
        await client.create(workload("Deployment", "after", replicas=1))
        await eventually(lambda: rolled_out(client, "after"), "the second rollout ended")
        await client.delete(DEPLOYMENT, "before", namespace="default")

        async def collected() -> bool:
            return await pods_of(client, "before") == []

        await eventually(collected, "the pods of the first one were collected")


async def test_deleting_in_the_foreground_ends_with_the_pods(client: Client) -> None:
    await client.create(workload("Deployment", "web", replicas=2))
    await eventually(lambda: rolled_out(client, "web"), "the rollout ended")
    await client.delete(DEPLOYMENT, "web", namespace="default", propagation="Foreground")

    async def gone() -> bool:
        if await client.find(DEPLOYMENT, "web", namespace="default") is not None:
            return False
        assert await pods_of(client, "web") == [], "the pods go before their owner's owner"
        return True

    await eventually(gone, "it was gone")


async def test_a_claim_in_use_stays_until_its_pod_has_gone_and_an_unused_volume_goes(client: Client) -> None:
    size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    for name in ("used", "free"):
        metadata = {"name": name, "namespace": "default"}
        await client.create(Unstructured({**CLAIM_HEAD, "metadata": metadata, "spec": size}))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]
    spec = {"containers": [{"name": "main", "image": "nginx:1"}], "volumes": volumes}
    metadata = {"name": "user", "namespace": "default"}
    pod = await client.create(Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    capacity = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": capacity}
    disk = await client.create(Unstructured(volume))
    for name in ("used", "free"):
        await client.delete(CLAIM, name, namespace="default")
    await client.delete(disk)
    await eventually(lambda: _gone(client, CLAIM, "free", "default"), "the free claim went")
    await eventually(lambda: _gone(client, Kind("v1", "PersistentVolume"), "disk", ""), "the volume went")
    assert (await get(client, CLAIM, "used")).deletion_timestamp is not None
    await client.delete(pod)
    await eventually(lambda: _gone(client, CLAIM, "used", "default"), "the used claim went")


CLAIM_HEAD = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


async def _gone(client: Client, kind: Kind, name: str, namespace: str) -> bool:
    return await client.find(kind, name, namespace=namespace) is None


CRON_JOB = Kind("batch/v1", "CronJob")


def cron_job(schedule: str, **spec: Any) -> Unstructured:
    template = {"spec": workload("Job", "tick", version="batch/v1")["spec"]}
    return Unstructured(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "tick", "namespace": "default"},
            "spec": {"schedule": schedule, "jobTemplate": template, **spec},
        }
    )


@pytest.mark.parametrize(
    ("policy", "expected"), [("Allow", (10, 10)), ("Forbid", (1, 1)), ("Replace", (1, 1))]
)  # the number of Jobs after ten minutes, each of which takes an hour, and of those that run
def test_a_cron_job_starts_a_job_at_each_time(policy: str, expected: tuple[int, int]) -> None:
    clock = VirtualClock()
    found: list[tuple[int, int]] = []

    async def main() -> None:
        cluster = EmbeddedCluster(clock=clock, simulator=Simulation(job_seconds=3600), tls=False)
        async with cluster, cluster.client() as client:
            await client.create(cron_job("* * * * *", concurrencyPolicy=policy))
            await anyio.sleep(605)
            jobs = await client.list(JOB, namespace="default")
            cron = await get(client, CRON_JOB, "tick")
            found.append((len(jobs), len(cron.status["active"])))
            assert all(job.name.startswith("tick-") and job.name[5:].isdigit() for job in jobs)

    clock.run(main)
    assert found == [expected]


def test_a_cron_job_keeps_as_many_ended_jobs_as_wanted() -> None:
    clock = VirtualClock()
    kept: list[int] = []

    async def main() -> None:
        cluster = EmbeddedCluster(clock=clock, simulator=Simulation(job_seconds=1), tls=False)
        async with cluster, cluster.client() as client:
            await client.create(cron_job("*/2 * * * *", successfulJobsHistoryLimit=2))
            await anyio.sleep(1230)
            kept.append(len(await client.list(JOB, namespace="default")))
            assert (await get(client, CRON_JOB, "tick")).status["lastSuccessfulTime"]

    clock.run(main)
    assert kept == [2]


async def test_a_cron_job_that_never_comes_says_so(client: Client) -> None:
    await client.create(cron_job("59 23 31 2 *"))

    async def told() -> bool:
        events = await client.live.list(EVENT, namespace="default")
        return any(event["reason"] == "InvalidSchedule" and "59 23 31 2 *" in event["message"] for event in events)

    await eventually(told, "an Event says that the schedule is invalid")


def test_a_node_without_a_kubelet_is_unknown_after_a_minute() -> None:
    clock = VirtualClock()
    node = Unstructured({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "silent"}})
    seen: list[Any] = []

    async def main() -> None:
        cluster = EmbeddedCluster(clock=clock, simulator=Simulation(nodes=1), tls=False)
        async with cluster, cluster.client() as client:
            await client.create(node)
            for _ in range(2):
                await anyio.sleep(55)
                shown = [await client.live.get(Kind("v1", "Node"), name) for name in ("silent", "node-0")]
                seen.append([conditions(obj).get("Ready") for obj in shown])

    clock.run(main)
    ready = ("True", "KubeletReady")
    assert seen == [[None, ready], [("Unknown", "NodeStatusNeverUpdated"), ready]]
