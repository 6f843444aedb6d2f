"""What becomes of others' writes between a read and a write: every verb, every form of a field, every kind of change.

An operator sets `mine` from 1 to 2 in one field, while somebody else adds, changes or removes `theirs` beside it. The
operator runs again after a Conflict, as a reconcile does.

| field | both | in the end |
|---|---|---|
| map | two keys of it | mine is 2, and all that the other did is there |
| keyed list | two elements of it | the same |
| plain list | two items of it | the same, if the operator's list is made of what it read; else it is the operator's |
| scalar | two scalars | mine is 2, and the other's scalar as the other left it |

A PUT fails at the first try, whatever was changed. A patch fails where it replaces a plain list, server-side apply
never: it takes a plain list over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from kopylite.client import Client
from kopylite.client.api import Api
from kopylite.errors import Conflict
from kopylite.objects import CustomResource, Kind, ObjectKey, Unstructured, list_map
from kopylite.testing import Cluster


class Element(BaseModel):
    type: str
    value: str = ""


class Body(BaseModel):
    map: dict[str, str] | None = None
    conditions: Annotated[list[Element], list_map("type")] | None = None
    plain: list[str] | None = None
    scalar: str | None = None
    other: str | None = None
    third: str | None = None


class Thing(CustomResource[Body, Body], group="matrix.example.com", version="v1"):
    """Has each form of a field, twice."""


THING = Kind("matrix.example.com/v1", "Thing")
Part = dict[str, Any]


def body(mine: str, theirs: str | None = "1", *, more: bool = False) -> Part:
    """A spec or status as it is stored."""
    rest = {"theirs": theirs} if theirs else {}
    rest |= {"more": "1"} if more else {}
    return {
        "map": {"mine": mine, **rest},
        "conditions": [{"type": "mine", "value": mine}, *({"type": n, "value": v} for n, v in rest.items())],
        "plain": [f"mine-{mine}", *(f"{n}-{v}" for n, v in rest.items())],
        "scalar": mine,
        **({"other": theirs} if theirs else {}),
        **({"third": "1"} if more else {}),
    }


ACTIONS: dict[str, Part] = {
    "added": body("1", more=True),
    "changed": body("1", "9"),
    "removed": body("1", None),
}
FIELDS = ("map", "conditions", "plain", "scalar")
BESIDE = {"scalar": ("other", "third")}


def only(part: Part, field: str) -> Part:
    """The part of a body that a test of one field is about."""
    return {name: part[name] for name in (field, *BESIDE.get(field, ())) if name in part}


def wanted(field: str) -> Part:
    """What an operator names that knows of its own things only."""
    return only(body("2", None), field)


def edited(read: Part, field: str) -> Any:
    """The field's new value, made of what was read."""
    if field == "map":
        return {**read["map"], "mine": "2"}
    if field == "conditions":
        return [e | {"value": "2"} if e["type"] == "mine" else e for e in read["conditions"]]
    return ["mine-2", *read["plain"][1:]] if field == "plain" else "2"


Meanwhile = Callable[[], Awaitable[None]]
Verb = Callable[["World", str, Meanwhile], Awaitable[Any]]


class World:
    def __init__(self, operator: Client, other: Client, key: ObjectKey) -> None:
        self.operator, self.other, self.key = operator, other, key

    async def read(self) -> Thing:
        return await self.operator.live.get(Thing, self.key)

    async def stored(self) -> Unstructured:
        return await self.other.live.get(THING, self.key)


def plain(body: Body) -> Part:
    return body.model_dump(exclude_none=True)


def set_field(body: Body, field: str) -> None:
    setattr(body, field, getattr(Body.model_validate({field: edited(plain(body), field)}), field))


async def upsert(world: World, edit: Callable[[Thing], None], meanwhile: Meanwhile, *, by_patch: bool) -> None:
    # The write in between comes after the read.
    name = "patch" if by_patch else "update"
    write = getattr(Api, name)

    async def after_the_other(api: Api, *args: Any, **params: Any) -> bytes:
        if api is world.operator.api:
            await meanwhile()
        answer: bytes = await write(api, *args, **params)
        return answer

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Api, name, after_the_other)
        verb = world.operator.create_or_patch if by_patch else world.operator.create_or_update
        await verb(Thing, world.key, edit)


async def put_in_whole(world: World, field: str, meanwhile: Meanwhile, *, by_patch: bool = False) -> None:
    def edit(obj: Thing) -> None:
        obj.spec = Body.model_validate(wanted(field))

    await upsert(world, edit, meanwhile, by_patch=by_patch)


async def in_place(world: World, field: str, meanwhile: Meanwhile, *, by_patch: bool = False) -> None:
    def edit(obj: Thing) -> None:
        if field == "map":
            (obj.spec.map or {})["mine"] = "2"
        elif field == "conditions":
            (obj.spec.conditions or [])[0].value = "2"
        elif field == "plain":
            (obj.spec.plain or [])[0] = "mine-2"
        else:
            obj.spec.scalar = "2"

    await upsert(world, edit, meanwhile, by_patch=by_patch)


async def merge_patch(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.read()
    await meanwhile()
    value = {"mine": "2"} if field == "map" else edited(plain(read.spec), field)
    await world.operator.patch(read, {"spec": {field: value}})


async def json_patch(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.read()
    await meanwhile()
    path, value = {
        "map": ("/spec/map/mine", "2"),
        "conditions": ("/spec/conditions/0/value", "2"),
        "plain": ("/spec/plain/0", "mine-2"),
        "scalar": ("/spec/scalar", "2"),
    }[field]
    await world.operator.patch(read, [{"op": "replace", "path": path, "value": value}], type="json")


async def status_map(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.stored()
    await meanwhile()
    value = edited(read["status"], field) if field == "plain" else wanted(field)[field]
    await world.operator.patch_status(read, {field: value})


async def status_of_what_was_read(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.stored()
    await meanwhile()
    read["status"][field] = edited(read["status"], field)
    await world.operator.patch_status(read, read["status"])


async def status_model(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.read()
    await meanwhile()
    await world.operator.patch_status(read, Body.model_validate({field: edited(plain(read.status), field)}))


async def own_model(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.read()
    await meanwhile()
    set_field(read.status, field)
    await world.operator.patch_status(read, read.status)


async def update(world: World, field: str, meanwhile: Meanwhile) -> None:
    read = await world.read()
    await meanwhile()
    set_field(read.spec, field)
    await world.operator.update(read)


async def apply(world: World, field: str, meanwhile: Meanwhile) -> None:
    await meanwhile()
    metadata = {"name": world.key.name, "namespace": world.key.namespace}
    thing = {"apiVersion": THING.api_version, "kind": THING.kind, "metadata": metadata, "spec": wanted(field)}
    await world.operator.apply(Unstructured(thing), force=True)


# Each verb, the part that it writes, and the fields where its first try meets a Conflict.
VERBS: dict[str, tuple[Verb, str, set[str]]] = {
    "create_or_update put in whole": (put_in_whole, "spec", {*FIELDS}),
    "create_or_update in place": (in_place, "spec", {*FIELDS}),
    "create_or_patch put in whole": (partial(put_in_whole, by_patch=True), "spec", {"plain"}),
    "create_or_patch in place": (partial(in_place, by_patch=True), "spec", {"plain"}),
    "patch merge": (merge_patch, "spec", {"plain"}),
    "patch json": (json_patch, "spec", {"plain", "conditions"}),
    "patch_status map": (status_map, "status", {"plain"}),
    "patch_status edited": (status_of_what_was_read, "status", {"plain"}),
    "patch_status model": (status_model, "status", {"plain"}),
    "patch_status own model": (own_model, "status", {"plain"}),
    "update": (update, "spec", {*FIELDS}),
    "apply": (apply, "spec", set()),
}
# Verbs that name a whole list, whatever others have in it.
NAME_THE_LIST = {"create_or_update put in whole", "create_or_patch put in whole", "apply"}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", VERBS)
async def test_both_writes_are_there_in_the_end(
    cluster: Cluster, client: Client, namespace: str, name: str, action: str, field: str
) -> None:
    await cluster.install_crds(Thing)
    verb, part, refused = VERBS[name]
    metadata = {"name": "thing", "namespace": namespace}
    thing = {"apiVersion": THING.api_version, "kind": THING.kind, "metadata": metadata, "spec": only(body("1"), field)}
    stored = await client.create(Unstructured(thing))
    if part == "status":
        await client.update(stored | {"status": only(body("1"), field)}, subresource="status")
    async with cluster.client() as operator:
        world = World(operator, client, ObjectKey(namespace, "thing"))
        done: list[bool] = []

        async def meanwhile() -> None:
            if not done:
                done.append(True)
                now = await client.live.get(THING, world.key)
                changed = Unstructured(now | {part: only(ACTIONS[action], field)})
                await client.update(changed, subresource=None if part == "spec" else "status")

        try:
            await verb(world, field, meanwhile)
        except Conflict:
            assert field in refused
            await verb(world, field, meanwhile)
        else:
            assert field not in refused
        end = (await world.stored())[part]
    expected = only({**ACTIONS[action], field: edited(ACTIONS[action], field)}, field)
    if field == "plain" and name in NAME_THE_LIST:
        expected = wanted(field)
    assert end == expected


async def test_a_status_of_an_object_that_was_not_read_takes_and_leaves_others_theirs(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    await cluster.install_crds(Thing)
    metadata = {"name": "thing", "namespace": namespace}
    named = {"apiVersion": THING.api_version, "kind": THING.kind, "metadata": metadata}
    stored = await client.create(Unstructured(named))
    read = await client.patch_status(stored, body("1"))
    await client.patch(
        THING, read, {"status": {"conditions": body("1", more=True)["conditions"]}}, subresource="status"
    )
    copied = Unstructured(dict(read))  # without what it was read from
    copied["status"] = {"scalar": "2", "conditions": [{"type": "mine", "value": "2"}]}
    await client.patch_status(copied, copied["status"])
    by_hand = Unstructured(named | {"status": {"scalar": "2", "conditions": [{"type": "theirs", "value": "3"}]}})
    await client.patch_status(by_hand, by_hand["status"])
    values = {"mine": "2", "theirs": "3", "more": "1"}
    conditions = [{"type": name, "value": value} for name, value in values.items()]
    end = (await client.live.get(THING, read))["status"]
    assert end == body("1") | {"scalar": "2", "conditions": conditions}
    changed = Unstructured(dict(copied))  # with a list that somebody else has changed meanwhile
    with pytest.raises(Conflict, match="plain was changed"):
        await client.patch_status(changed, {"plain": ["mine"]})
