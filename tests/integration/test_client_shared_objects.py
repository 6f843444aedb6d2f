"""Objects that an operator shares: with autoscalers, controllers, people, an earlier version of itself."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from kopylite.client import Client, Outcome
from kopylite.client.schemas import Schemas
from kopylite.errors import Conflict
from kopylite.objects import CustomResource, Kind, ObjectKey, Unstructured, list_map
from kopylite.testing import Cluster, EnvTest
from samples.bucket.operator import Bucket, BucketSpec, BucketStatus
from samples.myapp.operator import MyApp, MyAppSpec
from tests.operators import eventually

CREATED, UPDATED, UNCHANGED = Outcome.CREATED, Outcome.UPDATED, Outcome.UNCHANGED
DEPLOYMENT, STATEFUL_SET = Kind("apps/v1", "Deployment"), Kind("apps/v1", "StatefulSet")
JOB, POD = Kind("batch/v1", "Job"), Kind("v1", "Pod")
CLAIM, STORAGE_CLASS = Kind("v1", "PersistentVolumeClaim"), Kind("storage.k8s.io/v1", "StorageClass")
SERVICE, CONFIG_MAP = Kind("v1", "Service"), Kind("v1", "ConfigMap")
LABELS = {"app": "web"}
Part = dict[str, Any]


def spec(**fields: Any) -> Callable[[Unstructured], None]:
    def mutate(obj: Unstructured) -> None:
        obj["spec"] = copy.deepcopy(fields)

    return mutate


def deployment(image: str = "x:1", *, container: Part | None = None, **fields: Any) -> Part:
    containers = [{"name": "web", "image": image, **(container or {})}]
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}
    return {"selector": {"matchLabels": LABELS}, "template": template, **fields}


class Book(BaseModel):
    title: str
    pages: int = 1


class ShelfSpec(BaseModel):
    books: Annotated[list[Book], list_map("title")] = []
    size: int = 3


class Shelf(CustomResource[ShelfSpec, None], group="shared.example.com", version="v1"):
    """Has defaults, and a list with keys."""


class Operator:
    """Upserts one object; can be restarted."""

    def __init__(self, client: Client, kind: Kind, namespace: str) -> None:
        self.client, self.kind, self.key = client, kind, ObjectKey(namespace, "web")

    def restart(self) -> None:
        self.client = Client(self.client.api.transport)

    async def run(self, mutate: Callable[[Any], None], *outcomes: Outcome, by_patch: bool = False) -> Unstructured:
        verb = self.client.create_or_patch if by_patch else self.client.create_or_update
        for expected in outcomes:
            while True:
                try:
                    obj, outcome = await verb(self.kind, self.key, mutate)
                    break
                except Conflict:  # the workload controllers write too
                    continue
            assert outcome is expected
        return obj


@pytest.fixture(params=[False, True], ids=["update", "patch"])
def by_patch(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def test_the_replicas_of_an_autoscaler_stay_when_the_image_changes(
    client: Client, namespace: str, by_patch: bool
) -> None:
    operator = Operator(client, DEPLOYMENT, namespace)
    await operator.run(spec(**deployment()), CREATED)
    await client.patch(DEPLOYMENT, operator.key, {"spec": {"replicas": 3}})
    restarted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    await client.patch(DEPLOYMENT, operator.key, {"spec": {"template": restarted}})
    await operator.run(spec(**deployment()), UNCHANGED)
    stored = await operator.run(spec(**deployment("x:2")), UPDATED, UNCHANGED, by_patch=by_patch)
    operator.restart()
    stored = await operator.run(spec(**deployment("x:3")), UPDATED, UNCHANGED, by_patch=by_patch)
    assert stored["spec"]["replicas"] == 3
    template = stored["spec"]["template"]
    assert template["metadata"]["annotations"] == {"kubectl.kubernetes.io/restartedAt": "now"}
    assert template["spec"]["containers"][0]["image"] == "x:3"


async def test_a_sidecar_and_variables_of_others_stay_and_ones_own_go(
    client: Client, namespace: str, by_patch: bool
) -> None:
    operator = Operator(client, DEPLOYMENT, namespace)
    mine = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}], "args": ["-v"]}
    await operator.run(spec(**deployment(container=mine)), CREATED)
    containers = [{"name": "web", "env": [{"name": "THEIRS", "value": "1"}]}, {"name": "proxy", "image": "envoy"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await client.patch(DEPLOYMENT, operator.key, patch, type="strategic", field_manager="mesh")
    now = {"env": [{"name": "B", "value": "2"}]}
    stored = await operator.run(spec(**deployment(container=now)), UPDATED, UNCHANGED, by_patch=by_patch)
    found = {container["name"]: container for container in stored["spec"]["template"]["spec"]["containers"]}
    assert {variable["name"]: variable["value"] for variable in found["web"]["env"]} == {"B": "2", "THEIRS": "1"}
    assert "args" not in found["web"]
    assert found["proxy"]["image"] == "envoy"


async def test_what_an_earlier_process_named_goes_and_what_others_own_stays(
    client: Client, namespace: str, by_patch: bool
) -> None:
    operator = Operator(client, DEPLOYMENT, namespace)
    before = {"env": [{"name": "A", "value": "1"}], "livenessProbe": {"httpGet": {"path": "/", "port": 80}}}
    await operator.run(spec(**deployment(container=before, paused=True, minReadySeconds=5)), CREATED)
    await client.patch(DEPLOYMENT, operator.key, {"spec": {"replicas": 2, "minReadySeconds": 7}})
    operator.restart()
    stored = await operator.run(spec(**deployment()), UPDATED, UNCHANGED, by_patch=by_patch)
    container = stored["spec"]["template"]["spec"]["containers"][0]
    assert "env" not in container
    assert "livenessProbe" not in container
    assert not stored["spec"].get("paused")
    assert (stored["spec"]["replicas"], stored["spec"]["minReadySeconds"]) == (2, 7)
    operator.restart()
    await operator.run(spec(**deployment()), UNCHANGED)


async def test_a_custom_resources_field_that_is_no_longer_named_goes_over_a_restart(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    await cluster.install_crds(MyApp)
    operator = Operator(client, Kind("example.com/v1", "MyApp"), namespace)
    await operator.run(spec(image="x", config="settings"), CREATED)
    operator.restart()
    stored = await operator.run(spec(image="x"), UPDATED, UNCHANGED)
    assert "config" not in stored["spec"]


async def test_a_custom_resource_without_a_class_is_known_by_its_schema(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    await cluster.install_crds(Shelf)
    operator = Operator(client, Kind("shared.example.com/v1", "Shelf"), namespace)

    async def published() -> bool:
        schemas = Schemas(client.api.transport)
        return (await schemas.fields(operator.kind, operator.kind)).child("spec").child("books").keys == ("title",)

    await eventually(published, "the schema was published")
    operator.restart()
    await operator.run(spec(books=[{"title": "mine"}, {"title": "old"}]), CREATED)
    for _ in range(2):
        operator.restart()
        stored = await operator.run(spec(books=[{"title": "mine"}, {"title": "old"}]), UNCHANGED)
        assert stored["metadata"]["generation"] == 1
    stored = await client.live.get(operator.kind, operator.key)
    stored["spec"]["books"].insert(0, {"title": "theirs"})
    await client.update(stored, field_manager="another")
    operator.restart()
    stored = await operator.run(spec(books=[{"title": "mine"}, {"title": "new"}]), UPDATED, UNCHANGED)
    assert stored["spec"] == {"books": [{"title": name, "pages": 1} for name in ("theirs", "mine", "new")], "size": 3}


async def test_a_suspended_job_is_resumed(client: Client, namespace: str) -> None:
    operator = Operator(client, JOB, namespace)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}
    await operator.run(spec(suspend=True, template=template), CREATED, UNCHANGED)
    operator.restart()
    stored = await operator.run(spec(suspend=False, template=template), UPDATED, UNCHANGED)
    assert stored["spec"]["suspend"] is False


async def test_the_image_of_a_pod_changes(client: Client, namespace: str) -> None:
    account = ObjectKey(namespace, "default")
    await eventually(lambda: client.find(Kind("v1", "ServiceAccount"), account), "the account existed")
    operator = Operator(client, POD, namespace)
    await operator.run(spec(containers=[{"name": "a", "image": "x:1"}]), CREATED, UNCHANGED)
    operator.restart()
    stored = await operator.run(spec(containers=[{"name": "a", "image": "x:2"}]), UPDATED, UNCHANGED)
    assert stored["spec"]["containers"][0]["image"] == "x:2"
    await client.delete(stored, grace_period=0)


async def test_a_bound_claim_grows(cluster: Cluster, client: Client, namespace: str) -> None:
    metadata = {"name": f"grows-{namespace}"}
    fields = {"provisioner": "example.com/x", "allowVolumeExpansion": True}
    await client.create(
        Unstructured({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, **fields})
    )
    operator = Operator(client, CLAIM, namespace)

    def of_size(size: str) -> Callable[[Unstructured], None]:
        wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return spec(storageClassName=metadata["name"], **wants)

    claim = await operator.run(of_size("1Gi"), CREATED)
    volume = {"hostPath": {"path": "/x"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    reference = {"claimRef": {"namespace": namespace, "name": "web", "uid": claim.uid}}
    wanted = {"storageClassName": metadata["name"], **volume, **reference}
    await client.create(
        Unstructured({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": wanted})
    )
    # What its controller does, where there is one.
    await client.patch(CLAIM, operator.key, {"spec": {"volumeName": metadata["name"]}})
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}

    async def is_bound() -> bool:
        await client.patch(CLAIM, operator.key, bound, subresource="status")
        volume = await client.get(Kind("v1", "PersistentVolume"), metadata["name"])
        return (await client.get(CLAIM, operator.key)).status["phase"] == "Bound" and (
            not isinstance(cluster, EnvTest) or volume.status.get("phase") == "Bound"
        )

    await eventually(is_bound, "the claim was bound")
    await operator.run(of_size("1024Mi"), UNCHANGED)
    stored = await operator.run(of_size("2Gi"), UPDATED, UNCHANGED)
    assert stored["spec"]["volumeName"] == metadata["name"]


@pytest.mark.parametrize(
    ("kind", "field", "other", "more"),
    [
        (DEPLOYMENT, "strategy", "Recreate", {}),
        (STATEFUL_SET, "updateStrategy", "OnDelete", {"serviceName": "s"}),
        (Kind("apps/v1", "DaemonSet"), "updateStrategy", "OnDelete", {}),
    ],
    ids=str,
)
async def test_a_union_changes_its_type(
    client: Client, namespace: str, kind: Kind, field: str, other: str, more: Part
) -> None:
    operator = Operator(client, kind, namespace)
    await operator.run(spec(**deployment(), **more), CREATED)
    stored = await operator.run(spec(**deployment(), **more, **{field: {"type": other}}), UPDATED, UNCHANGED)
    assert stored["spec"][field] == {"type": other}
    stored = await operator.run(spec(**deployment(), **more, **{field: {"type": "RollingUpdate"}}), UPDATED, UNCHANGED)
    assert stored["spec"][field]["type"] == "RollingUpdate"


async def test_a_service_keeps_its_addresses(client: Client, namespace: str, by_patch: bool) -> None:
    operator = Operator(client, SERVICE, namespace)
    created = await operator.run(spec(selector=LABELS, type="NodePort", ports=[{"port": 80}]), CREATED, UNCHANGED)
    operator.restart()
    ports = [{"port": 80, "name": "web"}, {"port": 81, "name": "more"}]
    stored = await operator.run(
        spec(selector=LABELS, type="NodePort", ports=ports), UPDATED, UNCHANGED, by_patch=by_patch
    )
    assert stored["spec"]["clusterIP"] == created["spec"]["clusterIP"]
    assert stored["spec"]["ports"][0]["nodePort"] == created["spec"]["ports"][0]["nodePort"]


async def test_owners_and_finalizers_of_others_stay(client: Client, namespace: str, by_patch: bool) -> None:
    def reference(obj: Unstructured) -> Part:
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": obj.name, "uid": obj.uid}

    def named(name: str) -> Unstructured:
        return Unstructured(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
        )

    one, two = [await client.create(named(name)) for name in ("one", "two")]
    operator = Operator(client, CONFIG_MAP, namespace)

    def owned(obj: Unstructured) -> None:
        obj["metadata"]["ownerReferences"] = [reference(one)]
        obj["metadata"]["finalizers"] = ["example.com/mine"]
        obj["data"] = {"a": "1"}

    stored = await operator.run(owned, CREATED)
    theirs = {"ownerReferences": [reference(one), reference(two)], "finalizers": ["example.com/mine", "example.com/b"]}
    await client.patch(CONFIG_MAP, operator.key, {"metadata": theirs}, field_manager="other")

    def changed(obj: Unstructured) -> None:
        owned(obj)
        obj["data"] = {"a": "2"}

    stored = await operator.run(changed, UPDATED, by_patch=by_patch)
    assert {owner.uid for owner in stored.owner_references} == {one.uid, two.uid}
    assert stored.finalizers == ["example.com/mine", "example.com/b"]
    await client.patch(CONFIG_MAP, operator.key, {"metadata": {"finalizers": None}})


@pytest.fixture
async def renewed(client: Client, namespace: str) -> tuple[Unstructured, Unstructured]:
    """A Deployment as it was read before it was deleted and made anew, and the new one."""
    metadata = {"name": "web", "namespace": namespace}
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment(replicas=0)}
    old = await client.create(Unstructured(wanted))
    await client.delete(old)
    return old, await client.create(Unstructured(wanted))


WRITES: dict[str, Callable[[Client, Unstructured], Any]] = {
    "json": lambda c, old: c.patch(old, [{"op": "add", "path": "/spec/paused", "value": True}], type="json"),
    "strategic": lambda c, old: c.patch(old, {"spec": {"paused": True}}, type="strategic"),
    "apply patch": lambda c, old: c.patch(
        old, {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"paused": True}}, type="apply", force=True
    ),
    "apply": lambda c, old: c.apply(old, force=True),
    "scale": lambda c, old: c.patch(old, {"spec": {"replicas": 1}}, subresource="scale"),
    "status json": lambda c, old: c.patch(
        old, [{"op": "add", "path": "/status/observedGeneration", "value": 9}], type="json", subresource="status"
    ),
    "status strategic": lambda c, old: c.patch(
        old, {"status": {"observedGeneration": 9}}, type="strategic", subresource="status"
    ),
}


@pytest.mark.parametrize("write", WRITES)
async def test_no_write_through_an_object_lands_on_another_one(
    client: Client, renewed: tuple[Unstructured, Unstructured], write: str
) -> None:
    old, new = renewed
    with pytest.raises(Conflict):
        await WRITES[write](client, old)
    now = await client.live.get(DEPLOYMENT, new)
    assert (now.uid, now["spec"].get("paused"), now["spec"]["replicas"]) == (new.uid, None, 0)


async def test_an_upsert_by_patch_does_not_land_on_an_object_made_anew(client: Client, namespace: str) -> None:
    operator = Operator(client, CONFIG_MAP, namespace)

    def mutate(obj: Unstructured) -> None:
        obj["data"] = {"a": "1"}

    created = await operator.run(mutate, CREATED)
    patch = client.api.patch

    async def renewed(*args: Any, **params: Any) -> bytes:
        await client.delete(created)
        metadata = {"name": "web", "namespace": namespace}
        await client.create(Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
        return await patch(*args, **params)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(client.api), "patch", lambda _, *args, **params: renewed(*args, **params))
        with pytest.raises(Conflict):
            await client.create_or_patch(CONFIG_MAP, operator.key, lambda obj: obj["data"].update(b="2"))
    assert "data" not in await client.live.get(CONFIG_MAP, operator.key)


async def test_a_strategic_patch_of_a_plain_list_is_for_the_version_that_was_read(
    client: Client, renewed: tuple[Unstructured, Unstructured]
) -> None:
    read = await client.live.get(DEPLOYMENT, renewed[1])
    await client.patch(DEPLOYMENT, read, {"metadata": {"labels": {"a": "b"}}})
    container: Part = {"name": "web", "env": [{"name": "A", "value": "1"}]}
    template = {"spec": {"containers": [container]}}
    await client.patch(read, {"spec": {"template": template}}, type="strategic")
    container["args"] = ["-v"]
    with pytest.raises(Conflict):
        await client.patch(read, {"spec": {"template": template}}, type="strategic")


@pytest.fixture
async def app(cluster: Cluster, client: Client, namespace: str) -> MyApp:
    await cluster.install_crds(MyApp)
    return await client.create(MyApp(metadata={"name": "web", "namespace": namespace}, spec=MyAppSpec(image="x")))


def condition(name: str, status: str = "True") -> Part:
    when = "2026-01-01T00:00:00Z"
    return {"type": name, "status": status, "reason": "R", "message": "", "lastTransitionTime": when}


BUCKET = Kind("storage.example.com/v1", "Bucket")


@pytest.mark.parametrize("kind", [BUCKET, Bucket], ids=["dict", "model"])
async def test_a_second_status_from_the_same_read_is_no_conflict_with_the_first(
    cluster: Cluster, client: Client, namespace: str, kind: Any
) -> None:
    await cluster.install_crds(Bucket)
    read: Any = await client.create(Bucket(metadata={"name": "web", "namespace": namespace}, spec=BucketSpec()))
    if kind is BUCKET:
        read = await client.live.get(BUCKET, read)
    await client.patch_status(read, {"conditions": [condition("Mine")], "url": "a"})
    await client.patch_status(read, {"conditions": [condition("Mine", "False")]})
    another = await client.live.get(BUCKET, read)
    await client.patch_status(another, {"conditions": [condition("Theirs")]})
    await client.patch_status(read, {"conditions": [condition("Mine", "Unknown")], "url": "b"})
    now = await client.live.get(BUCKET, read)
    assert {c["type"]: c["status"] for c in now.status["conditions"]} == {"Mine": "Unknown", "Theirs": "True"}
    assert now.status["url"] == "b"
    with pytest.raises(Conflict):  # it has not seen the other's, and would add a second one
        await client.patch_status(read, {"conditions": [condition("Theirs", "False")]})


async def test_a_model_clears_and_shrinks_and_exact_is_exact(cluster: Cluster, client: Client, namespace: str) -> None:
    await cluster.install_crds(Bucket)
    bucket = await client.create(Bucket(metadata={"name": "web", "namespace": namespace}, spec=BucketSpec()))
    bucket = await client.patch_status(bucket, {"url": "a", "conditions": [condition("Mine"), condition("Theirs")]})
    bucket = await client.patch_status(bucket, BucketStatus(url=None))
    assert bucket.status.url is None
    assert len(bucket.status.conditions) == 2, "what the model leaves out stays"
    conditions = [one for one in bucket.status.conditions if one.type == "Mine"]
    bucket = await client.patch_status(bucket, BucketStatus(url="b", conditions=conditions))
    assert len(bucket.status.conditions) == 2, "an element that is left out may be another's"
    bucket = await client.patch_status(bucket, BucketStatus(conditions=conditions), exact=True)
    assert (bucket.status.url, [one.type for one in bucket.status.conditions]) == (None, ["Mine"])
    bucket.status.conditions.clear()
    assert (await client.patch_status(bucket, bucket.status)).status.conditions == []


async def test_a_status_edited_in_place_is_sent(client: Client, app: MyApp) -> None:
    app.status.ready_replicas = 2
    stored = await client.patch_status(app, app.status)
    assert stored.status.ready_replicas == 2
    app.status.ready_replicas = 3
    await client.patch_status(app, app.status)
    read = await client.live.get(Kind("example.com/v1", "MyApp"), app)
    assert read.status == {"readyReplicas": 3}
    read["status"]["readyReplicas"] = 4
    assert (await client.patch_status(read, read["status"])).status == {"readyReplicas": 4}
    copied = read.copy()
    del copied["status"]["readyReplicas"]
    assert (await client.patch_status(copied, copied["status"])).status == {}
    read["spec"]["image"] = "y"
    assert (await client.patch(read, {"spec": read["spec"]}))["spec"]["image"] == "y"


async def test_a_whole_float_is_written_as_the_integer_that_was_read(
    cluster: Cluster, client: Client, app: MyApp
) -> None:
    class Replicas(float, enum.Enum):
        ONE = 1.0

    read = await client.live.get(Kind("example.com/v1", "MyApp"), app)
    for one in (1.0, Replicas.ONE):
        read["spec"]["replicas"] = one
        read = await client.update(read)
        assert await client.patch(read, {"spec": {"replicas": one}}) is read, "nothing to change"
        await client.live.patch(read, {"spec": {"replicas": one}})

    def mutate(obj: Unstructured) -> None:
        obj["spec"] = {"image": "x", "replicas": 1.0}

    _, outcome = await client.create_or_update(Kind("example.com/v1", "MyApp"), app, mutate)
    assert outcome is UNCHANGED
    assert (await client.live.get(MyApp, app)).generation == 1
