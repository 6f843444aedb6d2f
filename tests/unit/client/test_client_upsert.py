from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import BaseModel

from kopylite.client import Client, Outcome
from kopylite.client.draft import Draft
from kopylite.client.overlay import NONE, Names, Overlay
from kopylite.errors import AlreadyOwned, Conflict, UsageError
from kopylite.objects import CustomResource, Kind, ObjectKey, Unstructured
from tests.unit.client.memcache import MemoryCache
from tests.unit.client.memory import MemoryServer

DEPLOYMENT = Kind("apps/v1", "Deployment")
KEY = ObjectKey("shop", "web")
PATH = "/apis/apps/v1/namespaces/shop/deployments/web"
CREATED, UPDATED, UNCHANGED = Outcome.CREATED, Outcome.UPDATED, Outcome.UNCHANGED


def owner(uid: str = "ou") -> Unstructured:
    metadata = {"name": "o", "namespace": "shop", "uid": uid}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def default(obj: dict[str, Any]) -> None:
    """What a server does to a Deployment: adds defaults, also inside lists; rewrites quantities; drops the unknown."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("strategy", {"type": "RollingUpdate"})
    spec.pop("unknownField", None)
    template = spec.get("template", {}).get("spec", {})
    for container in [*spec.get("containers", []), *template.get("containers", [])]:
        container.setdefault("imagePullPolicy", "Always")
        if container.get("args") == []:
            del container["args"]
        limits = container.get("resources", {}).get("limits", {})
        if limits.get("cpu") == "1000m":
            limits["cpu"] = "1"
    if obj.get("case"):
        obj["case"] = obj["case"].lower()


class World:
    def __init__(self) -> None:
        self.inject: Callable[[dict[str, Any]], object] = lambda obj: None  # into what is created
        self.server = MemoryServer(self.admit)
        self.restart()

    def admit(self, obj: dict[str, Any]) -> None:
        default(obj)
        if PATH not in self.server.objects:
            self.inject(obj)

    def restart(self) -> None:
        """A new process: no memory of what was sent."""
        self.client = Client(self.server)

    async def run(self, mutate: Callable[[Unstructured], None], *outcomes: Outcome, **params: Any) -> Unstructured:
        """Upsert once per expected outcome."""
        for outcome in outcomes:
            obj, done = await self.client.create_or_update(DEPLOYMENT, KEY, mutate, **params)
            assert done is outcome
        return obj

    @property
    def stored(self) -> dict[str, Any]:
        return self.server.objects[PATH]


@pytest.fixture
def world() -> World:
    return World()


def spec(**fields: Any) -> Callable[[Unstructured], None]:
    """A mutate function that puts the spec in whole, as most do."""

    def mutate(obj: Unstructured) -> None:
        obj["spec"] = copy.deepcopy(fields)

    return mutate


CONTAINERS = [{"name": "a", "image": "x", "args": []}]


async def test_an_object_is_created_once_and_then_left_alone(world: World) -> None:
    obj = await world.run(spec(containers=CONTAINERS), CREATED, UNCHANGED, UNCHANGED, owner=owner())
    assert world.server.writes == ["POST /apis/apps/v1/namespaces/shop/deployments"]
    assert (obj.name, obj.namespace, obj.kind) == ("web", "shop", "Deployment")
    assert obj.spec["containers"][0]["imagePullPolicy"] == "Always"
    assert [r.uid for r in obj.owner_references] == ["ou"]


async def test_what_the_server_adds_to_a_new_object_and_the_wish_takes_out_again_is_sent(world: World) -> None:
    def mutate(obj: Unstructured) -> None:
        obj["metadata"].pop("annotations", None)
        obj["spec"] = {"replicas": 2}

    world.inject = lambda obj: obj["metadata"].update(annotations={"injected": "true"})
    await world.run(mutate, CREATED)
    await world.run(mutate, UPDATED, UNCHANGED)
    assert "annotations" not in world.stored["metadata"]


async def test_an_element_that_somebody_adds_to_a_list_and_the_wish_takes_out_again_is_sent(world: World) -> None:
    def mutate(obj: Unstructured) -> None:
        containers = obj.setdefault("spec", {}).setdefault("containers", [{"name": "a", "image": "x"}])
        obj["spec"] = {"containers": containers}
        containers[:] = [{"name": "a", "image": "x"}]

    await world.run(mutate, CREATED)
    world.stored["spec"]["containers"].append({"name": "sidecar", "image": "y"})
    world.stored["metadata"]["resourceVersion"] = "900"
    await world.run(mutate, UPDATED)
    assert [container["name"] for container in world.stored["spec"]["containers"]] == ["a"]


async def test_after_a_write_the_same_wish_is_not_compared_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.run(spec(selector={"app": "web"}, replicas=2), CREATED)
    merge, merged = Overlay.merge, list[object]()

    def noted(*args: Any) -> Any:
        merged.append(args)
        return merge(*args)

    monkeypatch.setattr(Overlay, "merge", noted)
    await world.run(spec(replicas=2, selector={"app": "web"}), UNCHANGED)  # in whatever order
    assert not merged


async def test_an_answer_that_holds_the_wish_is_not_looked_into_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.run(spec(replicas=2), CREATED)
    monkeypatch.setattr(Draft, "is_held_by", lambda draft, stored: pytest.fail("it was compared"))
    await world.run(spec(replicas=2), UNCHANGED)


async def test_after_a_restart_an_unchanged_wish_sends_nothing(world: World) -> None:
    container = {"name": "a", "resources": {"limits": {"cpu": "1000m"}}}
    mutate = spec(template={"spec": {"containers": [container]}})
    await world.run(mutate, CREATED, owner=owner())
    world.restart()
    await world.run(mutate, UNCHANGED, UNCHANGED, owner=owner())
    assert len(world.server.writes) == 1


async def test_a_changed_wish_is_sent_once_with_the_version_that_was_read(world: World) -> None:
    await world.run(spec(containers=CONTAINERS), CREATED)
    version = world.stored["metadata"]["resourceVersion"]
    await world.run(spec(containers=CONTAINERS, replicas=3), UPDATED, UNCHANGED)
    assert world.server.writes[1:] == [f"PUT {PATH}"]
    body = json.loads(next(r.body for r in world.server.sent if r.method == "PUT") or b"")
    assert body["metadata"]["resourceVersion"] == version
    assert world.stored["spec"]["replicas"] == 3


async def test_a_field_that_the_wish_drops_goes(world: World) -> None:
    await world.run(spec(containers=CONTAINERS, paused=True), CREATED)
    await world.run(spec(containers=CONTAINERS), UPDATED, UNCHANGED)
    assert "paused" not in world.stored["spec"]


async def test_after_a_restart_managed_fields_say_what_was_named_before(world: World) -> None:
    await world.run(spec(containers=CONTAINERS, paused=True, minReadySeconds=5), CREATED)
    world.restart()
    await world.run(spec(containers=CONTAINERS), UNCHANGED)
    assert world.stored["spec"]["paused"], "a server that does not say whose fields these are"
    mine: dict[str, object] = {"f:spec": {"f:paused": {}}}
    another: dict[str, object] = {"f:spec": {"f:minReadySeconds": {}}}
    world.stored["metadata"]["managedFields"] = [
        {"manager": "kopylite-upsert", "operation": "Update", "fieldsV1": mine},
        {"manager": "kopylite", "operation": "Update", "fieldsV1": another},
    ]
    world.restart()
    await world.run(spec(containers=CONTAINERS), UPDATED, UNCHANGED)
    assert "paused" not in world.stored["spec"]
    assert world.stored["spec"]["minReadySeconds"] == 5


async def test_a_list_item_dropped_over_a_restart_goes(world: World) -> None:
    await world.run(spec(containers=[*CONTAINERS, {"name": "b"}]), CREATED)
    world.restart()
    await world.run(spec(containers=CONTAINERS), UPDATED)
    assert len(world.stored["spec"]["containers"]) == 1


async def test_a_field_taken_out_in_place_goes_also_after_a_restart(world: World) -> None:
    await world.run(spec(containers=CONTAINERS, paused=True), CREATED)
    world.restart()

    def resume(obj: Unstructured) -> None:
        obj["spec"].pop("paused", None)

    await world.run(resume, UPDATED, UNCHANGED)
    assert "paused" not in world.stored["spec"]


async def test_what_a_human_changed_is_put_back(world: World) -> None:
    mutate = spec(containers=CONTAINERS, replicas=2)
    await world.run(mutate, CREATED)
    world.server.put_in(PATH, json.loads(json.dumps(world.stored)) | {"spec": {"replicas": 9, "containers": []}})
    await world.run(mutate, UPDATED, UNCHANGED)
    assert world.stored["spec"]["replicas"] == 2


async def test_what_others_added_beside_the_wish_stays(world: World) -> None:
    mutate = spec(containers=CONTAINERS)
    await world.run(mutate, CREATED)
    world.stored["spec"]["replicas"] = 7  # an autoscaler
    await world.run(mutate, UNCHANGED)
    world.restart()
    await world.run(mutate, UNCHANGED)


@pytest.mark.parametrize("refused", [{"unknownField": 1}, {"containers": [{"name": "a", "resources": {"limits": {}}}]}])
async def test_what_the_server_does_not_take_is_sent_once(world: World, refused: dict[str, Any]) -> None:
    await world.run(spec(**refused), CREATED, UNCHANGED, UNCHANGED)
    world.stored["status"] = {"replicas": 1}
    world.server.put_in(PATH, world.stored | {"note": "the version moves"})
    await world.run(spec(**refused), UNCHANGED)


async def test_a_value_that_the_server_rewrites_costs_one_request_after_a_restart(world: World) -> None:
    def mutate(obj: Unstructured) -> None:
        obj["case"] = "LOUD"

    await world.run(mutate, CREATED, UNCHANGED)
    world.restart()
    await world.run(mutate, UNCHANGED, UNCHANGED, UNCHANGED)
    assert [w.split()[0] for w in world.server.writes] == ["POST", "PUT"]
    world.stored["case"] = "other"
    world.stored["metadata"]["resourceVersion"] = "900"
    await world.run(mutate, UPDATED, UNCHANGED)


async def test_a_wish_is_compared_with_a_version_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[ObjectKey] = []
    whole = Draft.over

    def counted(draft: Draft, stored: dict[str, Any], overlay: Overlay, names: Names = NONE) -> dict[str, Any]:
        compared.append(KEY)
        return whole(draft, stored, overlay, names)

    monkeypatch.setattr(Draft, "over", counted)
    mutate = spec(containers=CONTAINERS)
    await world.run(mutate, CREATED, UNCHANGED)
    compared.clear()
    await world.run(mutate, UNCHANGED, UNCHANGED)
    assert not compared
    await world.run(spec(containers=CONTAINERS, replicas=3), UPDATED)
    assert compared, "another desired state"
    await world.run(spec(containers=CONTAINERS, replicas=3), UNCHANGED)
    world.stored["spec"]["replicas"] = 9
    world.stored["metadata"]["resourceVersion"] = "900"
    await world.run(spec(containers=CONTAINERS, replicas=3), UPDATED)


async def test_what_the_server_keeps_for_itself_is_no_part_of_a_wish(world: World) -> None:
    mutate = spec(containers=CONTAINERS)
    await world.run(mutate, CREATED, UNCHANGED)
    world.stored["metadata"] |= {"managedFields": [{"manager": "x"}], "generation": 5}
    await world.run(mutate, UNCHANGED)
    world.stored["metadata"]["managedFields"].append({"manager": "y"})
    await world.run(mutate, UNCHANGED)


async def test_a_label_edited_in_place_is_sent_once(world: World) -> None:
    def mutate(obj: Unstructured) -> None:
        obj["metadata"].setdefault("labels", {})["a"] = "b"

    await world.run(mutate, CREATED, UNCHANGED)
    world.stored["metadata"]["labels"]["other"] = "stays"
    await world.run(mutate, UNCHANGED)


async def test_metadata_put_in_whole_keeps_what_it_leaves_out(world: World) -> None:
    def mutate(obj: Unstructured) -> None:
        obj["metadata"] = {"name": "web", "labels": {"a": "b"}}

    await world.run(spec(), CREATED, owner=owner())
    world.stored["metadata"]["finalizers"] = ["example.com/x"]
    await world.run(mutate, UPDATED, UNCHANGED, owner=owner())
    metadata = world.stored["metadata"]
    assert metadata["finalizers"] == ["example.com/x"]
    assert metadata["ownerReferences"][0]["uid"] == "ou"
    assert metadata["labels"] == {"a": "b"}


async def test_the_status_is_not_written(world: World) -> None:
    await world.run(spec(), CREATED)
    world.stored["status"] = {"replicas": 1}

    def mutate(obj: Unstructured) -> None:
        obj["status"] = {"replicas": 5}

    await world.run(mutate, UNCHANGED)


async def test_a_cache_that_has_not_seen_the_object_costs_a_read_and_no_second_object(world: World) -> None:
    await world.run(spec(), CREATED)
    world.client = Client(world.server, cache=MemoryCache(DEPLOYMENT))
    await world.run(spec(), UNCHANGED)


async def test_a_change_since_the_read_is_a_conflict(world: World) -> None:
    await world.run(spec(), CREATED)

    def mutate(obj: Unstructured) -> None:
        obj["spec"]["replicas"] = 5
        world.server.put_in(PATH, json.loads(json.dumps(world.stored)) | {"note": "x"})

    with pytest.raises(Conflict):
        await world.run(mutate, UPDATED)


async def test_another_controllers_object_is_not_touched(world: World) -> None:
    await world.run(spec(), CREATED, owner=owner("someone"))
    with pytest.raises(AlreadyOwned):
        await world.run(spec(replicas=5), UPDATED, owner=owner("me"))
    assert len(world.server.writes) == 1


@pytest.mark.parametrize("field", ["name", "namespace"])
async def test_a_shape_that_renames_is_refused(world: World, field: str) -> None:
    def mutate(obj: Unstructured) -> None:
        obj["metadata"][field] = "other"

    with pytest.raises(UsageError, match=f"changed its {field} to 'other'"):
        await world.run(mutate, CREATED)
    assert world.server.writes == []


async def test_an_async_shape_is_refused(world: World) -> None:
    async def mutate(obj: Unstructured) -> None: ...

    with pytest.raises(UsageError, match="plain function"):
        await world.run(cast("Callable[[Unstructured], None]", mutate), CREATED)


async def test_a_dry_run_is_not_remembered(world: World) -> None:
    await world.run(spec(replicas=1), CREATED)
    await world.run(spec(replicas=5), UPDATED, dry_run=True)
    sent = world.server.sent[-1]
    assert sent.params["dryRun"] == "All"


async def test_a_patch_carries_only_what_differs(world: World) -> None:
    await world.run(spec(containers=CONTAINERS, replicas=1), CREATED)

    def mutate(obj: Unstructured) -> None:
        obj["spec"]["replicas"] = 5
        world.server.put_in(PATH, json.loads(json.dumps(world.stored)) | {"note": "changed meanwhile"})

    obj, outcome = await world.client.create_or_patch(DEPLOYMENT, KEY, mutate)
    assert outcome is UPDATED
    uid = world.stored["metadata"]["uid"]
    assert json.loads(world.server.sent[-1].body or b"") == {"metadata": {"uid": uid}, "spec": {"replicas": 5}}
    assert obj["note"] == "changed meanwhile"
    assert (await world.client.create_or_patch(DEPLOYMENT, KEY, lambda obj: None))[1] is UNCHANGED


class AppSpec(BaseModel):
    image: str
    replicas: int | None = None


class MyApp(CustomResource[AppSpec, None], group="example.com", version="v1"):
    pass


async def test_a_custom_resource_class_is_shaped_as_an_instance(world: World) -> None:
    def mutate(app: MyApp) -> None:
        app.spec = AppSpec(image="x")

    async def run(edit: Callable[[MyApp], None], *outcomes: Outcome) -> MyApp:
        for expected in outcomes:
            app, outcome = await world.client.create_or_update(MyApp, KEY, edit, owner=owner())
            assert outcome is expected
        return app

    assert (await run(mutate, CREATED, UNCHANGED)).spec.replicas == 1
    world.restart()
    await run(mutate, UNCHANGED)

    def scale(app: MyApp) -> None:
        app.spec.replicas = 3

    assert (await run(scale, UPDATED, UNCHANGED)).spec.replicas == 3


async def test_an_applied_wish_is_applied_once_and_again_when_it_no_longer_holds(world: World) -> None:
    desired = Unstructured(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"a": 1},
        }
    )
    for _ in range(3):
        applied = await world.client.apply(desired, owner=owner(), force=True)
    assert world.server.writes == [f"PATCH {PATH}"]
    assert applied.spec["replicas"] == 1
    request = next(r for r in world.server.sent if r.method == "PATCH")
    assert request.content_type == "application/apply-patch+yaml"
    assert request.params == {"fieldManager": "kopylite", "force": "true"}
    world.stored["spec"]["a"] = 2
    await world.client.apply(desired, owner=owner())
    assert world.stored["spec"]["a"] == 1
    assert len(world.server.writes) == 2
    desired["spec"] = {"b": 1}
    await world.client.apply(desired, owner=owner())
    assert len(world.server.writes) == 3
    assert desired.owner_references == []


async def test_two_managers_applying_to_one_object_do_not_forget_each_other(world: World) -> None:
    by_manager = {
        name: Unstructured(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {name: 1},
            }
        )
        for name in ("one", "two")
    }
    for _ in range(3):
        for name, desired in by_manager.items():
            await world.client.apply(desired, field_manager=name)
    assert len(world.server.writes) == 2


async def test_an_object_that_was_read_can_be_applied(world: World) -> None:
    await world.run(spec(), CREATED)
    read = await world.client.get(DEPLOYMENT, KEY)
    read["metadata"]["managedFields"] = [{"manager": "x"}]
    await world.client.apply(read)
    assert "managedFields" not in json.loads(world.server.sent[-1].body or b"")["metadata"]
    assert "managedFields" in read["metadata"]
