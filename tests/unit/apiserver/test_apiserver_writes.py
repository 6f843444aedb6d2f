from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.world import Admission
from kopylite.apiserver.writes import metadata as meta

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


async def test_a_new_object_gets_uid_time_and_version_and_loses_what_only_the_server_sets(api: Any) -> None:
    given = {"name": "a", "uid": "mine", "selfLink": "x", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    made = await api.create(CONFIG_MAPS, {"metadata": given, "data": {"x": "1"}})
    metadata = made["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"].endswith("Z")
    assert not {"selfLink", "deletionTimestamp"} & metadata.keys()
    assert int(metadata["resourceVersion"]) > 1000
    assert await api.get(f"{CONFIG_MAPS}/a") == made


async def test_a_taken_name_is_already_there(api: Any) -> None:
    await api.config_map("a")
    status, answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (status, answer["reason"]) == (409, "AlreadyExists")
    assert answer["message"] == 'configmaps "a" already exists'


async def test_a_generated_name_is_the_prefix_and_five_characters_and_does_not_collide(api: Any) -> None:
    names = {
        (await api.create(CONFIG_MAPS, {"metadata": {"generateName": "job-"}}))["metadata"]["name"] for _ in range(20)
    }
    assert len(names) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_a_version_on_create_is_refused_as_the_real_server_does(api: Any) -> None:
    status, answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a", "resourceVersion": "1"}})
    assert status == 500
    assert answer["message"] == "resourceVersion should not be set on objects to be created"
    assert "reason" not in answer


async def test_a_missing_namespace_takes_no_objects(api: Any) -> None:
    status, answer = await api.call("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}})
    assert (status, answer["message"]) == (404, 'namespaces "nope" not found')


async def test_a_terminating_namespace_takes_no_new_objects_but_lets_old_ones_change(api: Any) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": "going"}})
    path = "/api/v1/namespaces/going/configmaps"
    await api.create(path, {"metadata": {"name": "old"}})
    status, namespace = await api.call("DELETE", "/api/v1/namespaces/going")
    assert (status, namespace["status"]["phase"]) == (200, "Terminating")
    status, answer = await api.call("POST", path, {"metadata": {"name": "new"}})
    assert status == 403
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    status, _ = await api.call("PATCH", f"{path}/old", {"data": {"x": "1"}})
    assert status == 200


async def test_a_namespace_goes_when_its_finalizers_are_emptied(api: Any) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": "going"}})
    await api.call("DELETE", "/api/v1/namespaces/going")
    status, _ = await api.call("PUT", "/api/v1/namespaces/going/finalize", {"metadata": {"name": "going"}, "spec": {}})
    assert status == 200
    status, _ = await api.call("GET", "/api/v1/namespaces/going")
    assert status == 404


async def test_an_update_from_an_old_version_conflicts(api: Any) -> None:
    made = await api.config_map("a")
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
    status, answer = await api.call("PUT", f"{CONFIG_MAPS}/a", made)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer["message"]


async def test_an_update_that_changes_nothing_writes_nothing(api: Any) -> None:
    made = await api.config_map("a", data={"x": "1"})
    before = api.world.store.version
    status, answer = await api.call("PUT", f"{CONFIG_MAPS}/a", made)
    assert (status, answer["metadata"]["resourceVersion"]) == (200, made["metadata"]["resourceVersion"])
    assert api.world.store.version == before


@pytest.mark.parametrize(
    ("plural", "config"),
    [
        ("configmaps", {"kind": "ConfigMap", "data": {}}),
        ("configmaps", {"kind": "ConfigMap", "data": {"a": "1"}, "metadata": {"name": "a", "annotations": None}}),
        ("secrets", {"kind": "Secret", "stringData": {"a": "b"}}),
    ],
)
async def test_a_later_apply_whose_result_is_what_is_stored_writes_nothing(
    api: Any, monkeypatch: pytest.MonkeyPatch, plural: str, config: dict[str, Any]
) -> None:
    path = f"/api/v1/namespaces/default/{plural}/a?fieldManager=me"
    body = {"apiVersion": "v1", "metadata": {"name": "a"}, **config}
    _, made = await api.call("PATCH", path, body, content_type="application/apply-patch+yaml")
    monkeypatch.setattr(meta, "timestamp", lambda moment: "2099-01-01T00:00:00Z")
    status, again = await api.call("PATCH", path, body, content_type="application/apply-patch+yaml")
    assert (status, again) == (200, made)


async def test_an_update_without_a_version_overwrites_a_built_in_but_no_custom_resource(widgets: Any) -> None:
    await widgets.config_map("a")
    status, _ = await widgets.call("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "2"}})
    assert status == 200
    made = await widgets.create(WIDGETS, {**_widget(1)})
    del made["metadata"]["resourceVersion"]
    status, answer = await widgets.call("PUT", f"{WIDGETS}/w", made)
    assert status == 422
    assert answer["details"]["causes"][0]["message"] == "Invalid value: 0: must be specified for an update"


async def test_another_uid_is_another_object(api: Any) -> None:
    await api.config_map("a")
    status, answer = await api.call("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a", "uid": "other"}})
    assert status == 409
    assert "Precondition failed: UID in precondition: other" in answer["message"]


@pytest.mark.parametrize(
    ("method", "path", "name", "text"),
    [
        ("PUT", f"{CONFIG_MAPS}/a", "b", "the name of the object (b) does not match the name on the URL (a)"),
        ("PUT", f"{CONFIG_MAPS}/a", "", "the name of the object (a based on URL) was undeterminable"),
        ("PATCH", f"{CONFIG_MAPS}/a", "b", "the name of the object (b) does not match the name on the URL (a)"),
    ],
)
async def test_the_name_in_the_body_must_be_that_of_the_url(
    api: Any, method: str, path: str, name: str, text: str
) -> None:
    await api.config_map("a")
    status, answer = await api.call(method, path, {"metadata": {"name": name} if name else {}})
    assert status == 400
    assert text in answer["message"]


async def test_generation_counts_changes_of_the_spec_only(widgets: Any) -> None:
    made = await widgets.create(WIDGETS, _widget(1))
    assert made["metadata"]["generation"] == 1
    steps = [
        (f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}}, 1),
        (f"{WIDGETS}/w", {"spec": {"size": 2}}, 2),
        (f"{WIDGETS}/w/status", {"status": {"size": 2}}, 2),
        (f"{WIDGETS}/w", {"status": {"size": 9}}, 2),
        (f"{WIDGETS}/w/scale", {"spec": {"replicas": 3}}, 3),
    ]
    for path, change, generation in steps:
        status, _ = await widgets.call("PATCH", path, change)
        assert status == 200
        assert (await widgets.get(f"{WIDGETS}/w"))["metadata"]["generation"] == generation
    now = await widgets.get(f"{WIDGETS}/w")
    assert (now["spec"], now["status"]) == ({"size": 3}, {"size": 2})


async def test_the_last_finalizer_takes_the_object_with_it_and_watchers_see_one_deletion(widgets: Any) -> None:
    made = await widgets.create(WIDGETS, _widget(1, finalizers=["a.b/c"]))
    status, going = await widgets.call("DELETE", f"{WIDGETS}/w")
    assert (status, going["metadata"]["generation"]) == (200, 2)
    events = await widgets.watch(f"{WIDGETS}?watch=1&resourceVersion={going['metadata']['resourceVersion']}")
    status, answer = await widgets.call("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
    assert (status, "finalizers" in answer["metadata"]) == (200, False)
    event = await events.next()
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["finalizers"] == ["a.b/c"]
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    await events.close()


async def test_no_finalizer_is_added_to_an_object_that_goes(widgets: Any) -> None:
    await widgets.create(WIDGETS, _widget(1, finalizers=["a.b/c"]))
    await widgets.call("DELETE", f"{WIDGETS}/w")
    status, answer = await widgets.call("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})
    assert status == 422
    assert 'found new finalizers []string{"d.e/f"}' in answer["message"]


async def test_a_dry_run_answers_like_a_write_and_leaves_nothing_behind(api: Any) -> None:
    before = api.world.store.version
    made = await api.create(f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    await api.config_map("b")
    status, changed = await api.call("PATCH", f"{CONFIG_MAPS}/b?dryRun=All", {"data": {"x": "1"}})
    assert (status, changed["data"]) == (200, {"x": "1"})
    status, _ = await api.call("DELETE", f"{CONFIG_MAPS}/b?dryRun=All")
    assert status == 200
    assert "data" not in await api.get(f"{CONFIG_MAPS}/b")
    assert api.world.store.version == before + 1


async def test_unknown_and_duplicate_fields_warn_or_fail_in_the_order_of_the_body(api: Any) -> None:
    body = b'{"metadata":{"name":"a","foo":1},"data":{"a":"1","a":"2"},"x":1}'
    response = await api.respond("POST", CONFIG_MAPS, body)
    assert response.status == 201
    assert response.warnings == ['unknown field "metadata.foo"', 'duplicate field "data.a"', 'unknown field "x"']
    status, answer = await api.call("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body)
    assert status == 400
    assert answer["message"].endswith(", ".join(response.warnings))
    response = await api.respond(
        "POST", f"{CONFIG_MAPS}?fieldValidation=Ignore&dryRun=All", body.replace(b'"a",', b'"b",')
    )
    assert (response.status, response.warnings) == (201, [])


async def test_an_object_too_large_for_etcd_is_refused_in_etcds_words(api: Any, open_crd: dict[str, Any]) -> None:
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", open_crd)
    status, answer = await api.call("POST", WIDGETS, {**_widget(1), "data": "x" * 1_600_000})
    assert (status, answer["message"]) == (500, "etcdserver: request is too large")
    status, _ = await api.call("GET", f"{WIDGETS}/w")
    assert status == 404


async def test_a_body_beyond_three_mebibytes_is_not_even_decoded(api: Any) -> None:
    status, answer = await api.call("POST", CONFIG_MAPS, {"data": {"x": "x" * 3_200_000}})
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
    assert "limit is 3145728" in answer["message"]


async def test_several_writers_between_read_and_write_make_a_patch_begin_anew(api: Any) -> None:
    await api.config_map("a", data={"n": "0"})
    raced: list[str] = []

    async def race(admission: Any) -> None:
        if admission.operation == "UPDATE" and admission.call.request.agent != "racer" and len(raced) < 3:
            raced.append("x")
            await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {f"r{len(raced)}": "1"}}, user_agent="racer")

    api.world.mutating.append(race)
    status, answer = await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"n": "1"}})
    assert status == 200
    assert answer["data"] == {"n": "1", "r1": "1", "r2": "1", "r3": "1"}


async def test_a_hook_can_refuse_a_write_before_anything_is_stored(api: Any) -> None:
    from kopylite.errors import ServiceUnavailable

    async def refuse(call: Any) -> None:
        raise ServiceUnavailable("down")

    api.world.hooks.write.append(refuse)
    before = api.world.store.version
    status, answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (status, answer["reason"]) == (503, "ServiceUnavailable")
    assert api.world.store.version == before


async def test_a_fault_of_the_server_is_an_answer_of_500(api: Any) -> None:
    async def stumble(call: Any) -> None:
        raise ZeroDivisionError("oops")

    api.world.hooks.read.append(stumble)
    status, answer = await api.call("GET", f"{CONFIG_MAPS}/a")
    assert (status, answer["reason"], answer["message"]) == (500, "InternalError", "Internal error occurred: oops")


def _widget(size: int, **metadata: Any) -> dict[str, Any]:
    meta = {"name": "w", **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": {"size": size}}


async def test_an_update_of_any_version_is_made_again_when_somebody_wrote_meanwhile(api: Any) -> None:
    before = await api.create("/api/v1/nodes", {"metadata": {"name": "a"}})
    between: list[str] = []

    async def write(admission: Admission) -> None:
        """Somebody else, once, in the middle of the other's request."""
        if admission.operation == "UPDATE" and not between:
            between.append("wrote")
            assert (await api.call("PATCH", "/api/v1/nodes/a", {"metadata": {"labels": {"b": "c"}}}))[0] == 200

    api.world.mutating.append(write)
    # A namespace that the kind has not is taken out each time.
    sent = {"metadata": {"name": "a", "namespace": "x", "labels": {"d": "e"}}}
    status, obj = await api.call("PUT", "/api/v1/nodes/a", sent)
    assert (status, obj["metadata"]["labels"]) == (200, {"d": "e"})
    assert "namespace" not in obj["metadata"]
    between.clear()
    sent["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    assert (await api.call("PUT", "/api/v1/nodes/a", sent))[0] == 409
