"""The client against what a real API server does: defaults, rewrites, preconditions, refusals."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
import yaml
from kubernetes_asyncio.client import (
    V1Container,
    V1Deployment,
    V1DeploymentSpec,
    V1LabelSelector,
    V1ObjectMeta,
    V1PodSpec,
    V1PodTemplateSpec,
)

from kopylite.client import (
    Client,
    LineSplitter,
    ListWatch,
    MissingPermissions,
    Outcome,
    connect,
    decode_event,
    load_config,
)
from kopylite.errors import Conflict, Forbidden, Invalid, KindNotFound, NotFound
from kopylite.objects import Kind, ObjectKey, Unstructured
from kopylite.observers import ClientObserver
from kopylite.testing import Cluster
from tests.operators import eventually

CREATED, UPDATED, UNCHANGED = Outcome.CREATED, Outcome.UPDATED, Outcome.UNCHANGED
CONFIG_MAP = Kind("v1", "ConfigMap")
DEPLOYMENT = Kind("apps/v1", "Deployment")


class Writes(ClientObserver):
    """Counts the requests that are no reads."""

    def __init__(self) -> None:
        self.count = 0

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        self.count += method != "GET"


class Operator:
    """A client that can lose its memory, and counts its writes."""

    def __init__(self, client: Client, writes: Writes) -> None:
        self.client = client
        self.writes = writes

    def restart(self) -> None:
        self.client = Client(self.client.api.transport)


@pytest.fixture
async def operator(cluster: Cluster) -> AsyncIterator[Operator]:
    writes = Writes()
    async with connect(cluster.kubeconfig, observer=writes) as client:
        yield Operator(client, writes)


def config_map(namespace: str, name: str = "a", **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


LABELS = {"app": "web"}
POD: dict[str, Any] = {
    "metadata": {"labels": LABELS},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "env": [
                    {"name": "A", "value": "b"},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "ports": [{"containerPort": 80}],
                "args": [],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
                "livenessProbe": {"httpGet": {"port": 80}},
            }
        ],
        "volumes": [{"name": "v", "configMap": {"name": "c"}}],
    },
}
JOB_POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}
ONCE = ["ReadWriteOnce"]

SERVICE = {"service": {"name": "s", "port": {"number": 80}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}

SPECS: dict[Kind, dict[str, Any]] = {
    DEPLOYMENT: {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": POD},
    Kind("apps/v1", "StatefulSet"): {"serviceName": "s", "selector": {"matchLabels": LABELS}, "template": POD},
    Kind("apps/v1", "DaemonSet"): {"selector": {"matchLabels": LABELS}, "template": POD},
    Kind("batch/v1", "Job"): {"template": JOB_POD},
    Kind("batch/v1", "CronJob"): {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB_POD}}},
    Kind("v1", "Service"): {"selector": LABELS, "ports": [{"port": 80}]},
    Kind("v1", "Pod"): {"containers": [{"name": "a", "image": "x"}]},
    Kind("v1", "PersistentVolumeClaim"): {"accessModes": ONCE, "resources": {"requests": {"storage": "1024Mi"}}},
    Kind("networking.k8s.io/v1", "Ingress"): {"rules": [{"host": "x.example.com"}], "defaultBackend": SERVICE},
    Kind("networking.k8s.io/v1", "NetworkPolicy"): {"podSelector": {}, "ingress": []},
    Kind("policy/v1", "PodDisruptionBudget"): {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
    Kind("autoscaling/v2", "HorizontalPodAutoscaler"): {"maxReplicas": 3, "scaleTargetRef": TARGET},
}


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.kind)
async def test_a_wish_with_its_spec_put_in_whole_is_written_once_also_over_a_restart(
    operator: Operator, namespace: str, kind: Kind
) -> None:
    if kind.kind == "Pod":  # its service account is made by a controller, in a moment
        account = ObjectKey(namespace, "default")
        await eventually(lambda: operator.client.find(Kind("v1", "ServiceAccount"), account), "the account existed")
    owner = await operator.client.create(config_map(namespace, "owner"))
    key = ObjectKey(namespace, "web")
    operator.writes.count = 0

    def mutate(obj: Unstructured) -> None:
        obj["metadata"]["labels"] = {"app": "web"}
        obj["spec"] = copy.deepcopy(SPECS[kind])

    obj, outcome = await operator.client.create_or_update(kind, key, mutate, owner=owner)
    assert outcome is CREATED
    for _ in range(2):
        _, outcome = await operator.client.create_or_update(kind, key, mutate, owner=owner)
        assert outcome is UNCHANGED
        operator.restart()
    assert operator.writes.count == 1
    await operator.client.delete(obj, grace_period=0)


async def test_a_models_spec_put_in_whole_is_written_once_also_over_a_restart(
    operator: Operator, namespace: str
) -> None:
    def mutate(deployment: V1Deployment) -> None:
        container = V1Container(name="a", image="x")
        template = V1PodTemplateSpec(metadata=V1ObjectMeta(labels=LABELS), spec=V1PodSpec(containers=[container]))
        deployment.spec = V1DeploymentSpec(selector=V1LabelSelector(match_labels=LABELS), template=template)

    for expected in (CREATED, UNCHANGED, UNCHANGED):
        deployment, outcome = await operator.client.create_or_update(V1Deployment, ObjectKey(namespace, "web"), mutate)
        assert outcome is expected
        operator.restart()
    assert deployment.spec.replicas == 1
    assert operator.writes.count == 1


async def test_a_dropped_field_goes_and_a_hand_made_change_is_put_back(client: Client, namespace: str) -> None:
    key = ObjectKey(namespace, "web")
    spec = copy.deepcopy(SPECS[DEPLOYMENT])

    def mutate(obj: Unstructured) -> None:
        obj["spec"] = copy.deepcopy(spec)

    await upsert(client, key, mutate)
    del spec["template"]["spec"]["containers"][0]["livenessProbe"]
    obj, outcome = await upsert(client, key, mutate)
    assert outcome is UPDATED
    assert "livenessProbe" not in obj["spec"]["template"]["spec"]["containers"][0]
    scaled = await client.patch(DEPLOYMENT, key, {"spec": {"replicas": 5}}, subresource="scale")
    assert scaled.kind == "Scale"
    assert (await client.get_subresource(DEPLOYMENT, key, "scale")).spec["replicas"] == 5
    obj, outcome = await upsert(client, key, mutate)
    assert (outcome, obj["spec"]["replicas"]) == (UPDATED, 2)
    assert (await upsert(client, key, mutate))[1] is UNCHANGED


async def upsert(
    client: Client, key: ObjectKey, mutate: Callable[[Unstructured], None]
) -> tuple[Unstructured, Outcome]:
    """As a reconcile does it: the Deployment's own controller may write its status in between."""
    while True:
        try:
            return await client.create_or_update(DEPLOYMENT, key, mutate)
        except Conflict:
            continue


async def test_every_kind_of_patch_is_understood(client: Client, namespace: str) -> None:
    key = ObjectKey(namespace, "web")
    await client.create_or_update(DEPLOYMENT, key, lambda obj: obj.update(spec=copy.deepcopy(SPECS[DEPLOYMENT])))
    await client.patch(DEPLOYMENT, key, {"spec": {"replicas": 3}})
    steps = [
        {"op": "test", "path": "/spec/replicas", "value": 3},
        {"op": "replace", "path": "/spec/replicas", "value": 4},
    ]
    assert (await client.patch(DEPLOYMENT, key, steps, type="json")).spec["replicas"] == 4
    with pytest.raises(Conflict):
        await client.patch(DEPLOYMENT, key, steps, type="json")
    pod = {"spec": {"containers": [{"name": "web", "image": "other"}]}}
    patched = await client.patch(DEPLOYMENT, key, {"spec": {"template": pod}}, type="strategic")
    assert patched.spec["template"]["spec"]["containers"][0]["env"], "merged by name"
    with pytest.raises(Invalid) as caught:
        await client.patch(DEPLOYMENT, key, {"spec": {"replicas": -1}})
    assert caught.value.causes[0].field == "spec.replicas"


async def test_an_applied_object_is_shared_by_its_managers(client: Client, namespace: str) -> None:
    mine, theirs = config_map(namespace, a="1", b="1"), config_map(namespace, a="2")
    await client.apply(mine)
    with pytest.raises(Conflict) as caught:
        await client.apply(theirs, field_manager="other")
    assert caught.value.causes[0].field == ".data.a"
    assert (await client.apply(theirs, field_manager="other", force=True))["data"] == {"a": "2", "b": "1"}
    del mine["data"]["b"]
    mine["data"]["a"] = "2"
    assert (await client.apply(mine))["data"] == {"a": "2"}


async def test_finalizers_come_and_go_by_tested_patches(client: Client, namespace: str) -> None:
    created = await client.create(config_map(namespace))
    one = await client.add_finalizer(created, "example.com/x")
    with pytest.raises(Conflict):
        await client.add_finalizer(created, "example.com/y")
    two = await client.add_finalizer(one, "example.com/y")
    assert two.finalizers == ["example.com/x", "example.com/y"]
    three = await client.remove_finalizer(replaced(two, ["example.com/y"]), "example.com/y")
    assert three.finalizers == ["example.com/x"], "another one had moved meanwhile; the removal looks again"
    two = await client.add_finalizer(three, "example.com/y")
    assert await client.delete(two)
    marked = await client.get(CONFIG_MAP, two)
    assert marked.deletion_timestamp
    marked = await client.remove_finalizer(marked, "example.com/x")
    await client.remove_finalizer(marked, "example.com/y")
    assert await client.find(CONFIG_MAP, two) is None
    assert await client.remove_finalizer(marked, "example.com/y") is marked


def replaced(obj: Unstructured, finalizers: list[str]) -> Unstructured:
    return Unstructured({**obj, "metadata": {**obj.metadata, "finalizers": finalizers}})


async def test_a_delete_with_the_wrong_uid_deletes_nothing(client: Client, namespace: str) -> None:
    old = await client.create(config_map(namespace))
    await client.delete(old)
    new = await client.create(config_map(namespace))
    with pytest.raises(Conflict):
        await client.delete(old)
    assert await client.delete(CONFIG_MAP, new, dry_run=True)
    assert (await client.get(CONFIG_MAP, new)).uid == new.uid


async def test_lists_are_paged_selected_and_complete(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopylite.client.api.PAGE_SIZE", 3)
    for number in range(10):
        obj = config_map(namespace, f"n{number}")
        obj["metadata"]["labels"] = {"odd": str(number % 2)}
        await client.create(obj)
    found = await client.list(CONFIG_MAP, namespace=namespace, labels="odd in (0,1)")
    assert sorted(m.name for m in found) == [f"n{number}" for number in range(10)]
    assert {m.kind for m in found} == {"ConfigMap"}
    assert len(await client.list(CONFIG_MAP, namespace=namespace, labels="odd=1")) == 5
    assert [
        m.name for m in await client.list(CONFIG_MAP, fields=f"metadata.name=n3,metadata.namespace={namespace}")
    ] == ["n3"]
    await client.delete_all(CONFIG_MAP, namespace=namespace, labels="odd=0")
    assert await client.list(CONFIG_MAP, namespace=namespace, labels="odd=0") == []


async def test_a_kind_that_is_not_served_is_told_from_an_object_that_is_missing(client: Client, namespace: str) -> None:
    for foo in (
        Kind("none.example.com/v1", "Foo"),
        Kind("none.example.com/v1", "Foo", "foos", True),
        Kind("apps/v1", "Foo"),
    ):
        with pytest.raises(KindNotFound):
            await client.find(foo, "a", namespace=namespace)
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.live.get(CONFIG_MAP, "a", namespace=namespace)
    with pytest.raises(NotFound, match="namespaces"):
        await client.create(config_map("no-such-namespace"))


async def test_names_with_colons_reach_their_object(client: Client) -> None:
    role = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert (await client.get(role, "system:discovery")).name == "system:discovery"


async def test_a_refusal_of_rbac_prints_the_rule_that_cures_it(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    config = replace(load_config(cluster.kubeconfig), headers=(("Impersonate-User", "alice"),))
    async with connect(config=config) as alice:
        with pytest.raises(Forbidden) as caught:
            await alice.list(CONFIG_MAP, namespace=namespace)
        missing = MissingPermissions("alice", limited=True)
        missing.note(caught.value, 0.0)
        [text] = missing.news(0.0)
        [rule] = yaml.safe_load(text.partition("\n")[2])
        group = "rbac.authorization.k8s.io"
        metadata = {"name": "alice", "namespace": namespace}
        await client.create(
            Unstructured({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]})
        )
        await client.create(Unstructured({
            "apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "alice"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
        }))  # fmt: skip
        await eventually(lambda: may_list(alice, namespace), "the authorizer had heard of the binding")


async def may_list(client: Client, namespace: str) -> bool:
    try:
        await client.list(CONFIG_MAP, namespace=namespace)
    except Forbidden:
        return False
    return True


async def test_a_watch_streams_the_present_objects_and_what_follows(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "first"))
    resource = await client.api.resources.find(CONFIG_MAP)
    collection = ListWatch(client.api.transport, resource, namespace)
    splitter = LineSplitter()
    seen: list[str] = []
    with anyio.fail_after(20):
        async with collection.watch(send_initial_events=True) as stream:
            async for chunk in stream.chunks():
                for line in splitter.feed(chunk):
                    kind, body = decode_event(line)
                    if kind == "BOOKMARK" and b"initial-events-end" in body:
                        await client.create(config_map(namespace, "second"))
                    seen += [name for name in ("first", "second") if f'"name":"{name}"'.encode() in body]
                if "second" in seen:
                    break
    assert seen == ["first", "second"]
