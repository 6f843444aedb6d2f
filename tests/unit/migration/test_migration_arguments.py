"""What a moved handler is called with: its arguments, filters, helpers for children and sub-handlers."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from kubernetes_asyncio.client import V1Pod

from kopylite.errors import TerminalError, UsageError
from kopylite.migration.arguments import Body, HandlerPatch, Memo, Missing, NotMoved, Unknown, Views
from kopylite.migration.calling import invoke
from kopylite.migration.children import (
    CURRENT,
    Current,
    adopt,
    append_owner_reference,
    event,
    label,
    remove_owner_reference,
)
from kopylite.migration.filters import ABSENT, PRESENT, all_, any_, matches, none_, not_
from kopylite.migration.memory import Stopped
from kopylite.migration.subhandlers import collected, register, subhandler
from kopylite.objects import Unstructured

OWNER = Body(
    {"apiVersion": "example.com/v1", "kind": "Page", "spec": {"a": {"b": 1}, "none": None},
     "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"l": "1"}, "annotations": {"x": ""}}}
)  # fmt: skip


def test_a_patch_has_its_parts_when_they_are_asked_for_and_empty_ones_are_nothing() -> None:
    patch = HandlerPatch()
    assert patch.status == patch.spec == patch.meta == {}
    assert patch.taken() == ({}, {})
    patch.status["a"] = 1
    patch.metadata.labels["b"] = "2"
    assert patch.metadata.annotations == {}
    patch["spec"] = {"c": None}
    assert patch.taken() == ({"spec": {"c": None}, "metadata": {"labels": {"b": "2"}}}, {"a": 1})
    assert patch.taken() == ({}, {})


USES = [bool, list, len, lambda x: x["a"], lambda x: x == 1, lambda x: x - 1, lambda x: x.get("a"), lambda x: "a" in x]


@pytest.mark.parametrize("use", USES)
def test_what_is_not_known_is_no_answer(use: Any) -> None:
    with pytest.raises(NotMoved, match="`old` is not known"):
        use(Unknown("old"))
    assert f"{Unknown('old')}" == "(unknown old)"


def test_a_missing_name_can_be_imported_inherited_from_and_called_but_not_relied_on() -> None:
    missing: Any = Missing("kopf.Server", "shop.py:3")

    class Server(missing): ...  # type: ignore[misc]

    assert Server() is not None
    with pytest.raises(NotMoved, match=r"shop.py:3: kopf.Server.thing has no counterpart"):
        bool(missing(port=1).thing)


def test_views_show_a_newer_state_in_the_same_dicts() -> None:
    views = Views(OWNER)
    spec, body = views.spec, views.body
    assert (body.meta.name, body.meta.labels, body.spec) == ("p", {"l": "1"}, {"a": {"b": 1}, "none": None})
    views.show(Unstructured(apiVersion="example.com/v1", kind="Page", metadata={"name": "p"}, spec={"new": 1}))
    assert (spec, body.spec, views.arguments()["uid"]) == ({"new": 1}, {"new": 1}, None)


def test_a_memo_has_its_keys_as_attributes() -> None:
    memo = Memo(a=1)
    memo.b = 2
    del memo.a
    assert memo == {"b": 2}
    with pytest.raises(AttributeError):
        memo.a  # noqa: B018


@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        ({}, True),
        ({"labels": {"l": "1"}}, True),
        ({"labels": {"l": "2"}}, False),
        ({"labels": {"l": PRESENT, "m": ABSENT}}, True),
        ({"labels": {"l": None}}, True),  # older kopf: that it is there
        ({"labels": {"l": ABSENT}}, False),
        ({"labels": {"l": lambda value, **_: value == "1"}}, True),
        ({"annotations": {"x": PRESENT, "y": PRESENT}}, False),
        ({"field": "spec.a.b"}, True),
        ({"field": ("spec", "a", "c")}, False),
        ({"field": "spec.none"}, True),
        ({"field": "spec.a.b", "value": 1}, True),
        ({"field": "spec.a.b", "value": 2}, False),
        ({"field": "spec.a.c", "value": ABSENT}, True),
        ({"field": "spec.a.b", "value": lambda value, **_: value > 1}, False),
        ({"field": "spec.a.b", "new": 1}, True),
        ({"when": lambda name, **_: name == "p"}, True),
        ({"when": all_([lambda **_: True, not_(lambda **_: True)])}, False),
        ({"when": any_([lambda **_: False, none_([lambda **_: False])])}, True),
    ],
)
def test_filters_pass_what_kopfs_did(filters: Any, fits: bool) -> None:
    assert matches(Views(OWNER).arguments(), filters) is fits


@pytest.fixture
def posted() -> Any:
    found: list[tuple[Any, ...]] = []
    token = CURRENT.set(Current(OWNER, lambda *args: found.append(args)))
    yield found
    CURRENT.reset(token)


def test_a_child_gets_owner_name_namespace_and_labels_unless_it_has_them(posted: Any) -> None:
    child: dict[str, Any] = {"spec": {"template": {}}}
    named: dict[str, Any] = {"metadata": {"name": "own", "namespace": "other", "labels": {"l": "mine"}}}
    adopt([child, named], nested=["spec.template"])
    adopt([child], nested="spec.template")
    reference = {"apiVersion": "example.com/v1", "kind": "Page", "name": "p", "uid": "u", "controller": True,
                 "blockOwnerDeletion": True}  # fmt: skip
    assert child == {
        "metadata": {"ownerReferences": [reference], "generateName": "p-", "namespace": "n", "labels": {"l": "1"}},
        "spec": {"template": {"metadata": {"labels": {"l": "1"}}}},
    }
    assert named["metadata"] == {
        "name": "own",
        "namespace": "other",
        "labels": {"l": "mine"},
        "ownerReferences": [reference],
    }
    adopt(named, strict=True, forced=True)
    assert named["metadata"]["name"] == "p"
    remove_owner_reference(named)
    assert named["metadata"]["ownerReferences"] == []


def test_a_model_is_a_child_too(posted: Any) -> None:
    pod = V1Pod()
    adopt(pod)
    label(pod, {"a": "b"})
    assert pod.metadata is not None
    assert (pod.metadata.generate_name, pod.metadata.namespace, pod.metadata.labels) == (
        "p-",
        "n",
        {"l": "1", "a": "b"},
    )
    append_owner_reference(pod)
    assert [each.uid for each in pod.metadata.owner_references or ()] == ["u"]


def test_events_are_published_for_each_object_with_types_that_kubernetes_knows(posted: Any) -> None:
    event([OWNER, OWNER], type="SomeType", reason="R", message="m")
    event(OWNER, type="Normal", reason="R")
    assert posted == [(OWNER, "R", "m", "Warning")] * 2 + [(OWNER, "R", "R", "Normal")]


def test_outside_of_a_handler_an_owner_has_to_be_named() -> None:
    with pytest.raises(UsageError, match="name the owner"):
        adopt({})
    adopt({}, owner=dict(OWNER))


def test_sub_handlers_are_collected_and_nowhere_else() -> None:
    with collected() as found:

        @subhandler(id="a", param=1, labels={"l": "1"})
        def sub() -> None: ...

    assert [(each.function, each.param, each.filters) for each in found] == [(sub, 1, {"labels": {"l": "1"}})]
    with pytest.raises(UsageError, match="outside of a handler"):
        register(sub)


async def test_a_handler_gets_what_it_takes_in_a_thread_if_it_is_plain() -> None:
    async def some(a: int) -> Any:
        return a, threading.get_ident()

    def every(**kwargs: Any) -> Any:
        return kwargs, threading.get_ident()

    here = threading.get_ident()
    assert await invoke(some, {"a": 1, "b": 2}) == (1, here)
    kwargs, thread = await invoke(every, {"a": 1, "b": 2})
    assert kwargs == {"a": 1, "b": 2}
    assert thread != here


async def test_a_daemon_is_told_to_stop_in_a_coroutine_and_in_a_thread() -> None:
    stopped = Stopped()
    assert not await stopped.wait(0.001)
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, stopped.wait, 10)
        stopped.set("gone")
    assert await stopped.wait()
    assert stopped
    assert stopped.reason == "gone"


def test_what_needs_a_person_is_a_terminal_error() -> None:
    assert issubclass(NotMoved, TerminalError)
