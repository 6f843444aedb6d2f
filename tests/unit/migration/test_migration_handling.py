from __future__ import annotations

from typing import Any

import pytest

from kopylite.client import Client
from kopylite.errors import TerminalError
from kopylite.migration.calling import Origin
from kopylite.migration.handling import Handling
from kopylite.migration.memory import ObjectMemory
from kopylite.objects import Kind, Unstructured
from kopylite.reconcile import Context, Environment, Request, Retry
from kopylite.testing import EmbeddedCluster

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])

MAP = Kind("v1", "ConfigMap")
ORIGIN = Origin("shop.example.com")


async def made(client: Client, name: str = "a", **metadata: Any) -> tuple[Context, Unstructured]:
    metadata = {"name": name, "namespace": "default", **metadata}
    stored = await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"x": "1"}))
    environment = Environment("shop", client)
    environment.state[ObjectMemory] = ObjectMemory()
    return Context(environment, Request("default", name)), stored


async def again(client: Client, name: str = "a") -> Unstructured:
    return await client.live.get(MAP, name, namespace="default")


async def test_one_that_fails_keeps_no_other_from_its_turn_and_what_is_tried_soonest_is_raised() -> None:
    calls: list[str] = []

    async def waits(patch: Any) -> None:
        calls.append("waits")
        patch["data"] = {"said": "waiting"}
        raise Retry("later", after=30)

    async def never() -> None:
        calls.append("never")
        raise TerminalError("no")

    async def works() -> None:
        calls.append("works")

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        ctx, obj = await made(client)
        for _ in range(2):
            run = Handling(ctx, obj, ORIGIN)
            await run.created(waits)
            await run.created(never)
            await run.created(works)
            with pytest.raises(Retry) as raised:
                await run.__aexit__(None)
            assert 29 < raised.value.result.delay <= 30
            assert not raised.value.result.hold, "a deletion need not wait"
            obj = await again(client)
            assert obj["data"] == {"x": "1", "said": "waiting"}, "what it wanted written is written"
        assert calls == ["waits", "never", "works"], (
            "who waits has its time, who has failed for good or is done is done"
        )


async def test_what_a_handler_wants_written_is_written_before_it_counts_as_done_and_beside_what_others_write() -> None:
    async def handler(patch: Any, spec: Any) -> None:
        await client.patch(MAP, "a", {"data": {"other": "y"}}, namespace="default")
        patch["data"] = {"mine": "z"}

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        ctx, obj = await made(client)
        crashing = Handling(ctx, obj, ORIGIN)

        async def crash() -> None:
            raise RuntimeError("the process ends here")

        original, crashing.write = crashing.write, crash  # type: ignore[method-assign]
        await crashing.created(handler)
        assert "shop.example.com/handler.created" not in (await again(client)).annotations, "it is not done"
        crashing.write = original  # type: ignore[method-assign]
        async with Handling(ctx, obj, ORIGIN) as run:
            await run.created(handler)
        stored = await again(client)
        assert stored["data"] == {"x": "1", "other": "y", "mine": "z"}
        assert "shop.example.com/handler.created" in stored.annotations


async def test_an_object_that_is_gone_or_made_anew_gets_nothing_of_the_old_one() -> None:
    async def handler(patch: Any) -> None:
        patch["data"] = {"old": "yes"}

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        ctx, obj = await made(client)
        await client.delete(obj)
        async with Handling(ctx, obj, ORIGIN) as run:
            await run.always(handler)
        await made(client)
        async with Handling(ctx, obj, ORIGIN) as run:
            await run.always(handler)
        assert (await again(client))["data"] == {"x": "1"}


async def test_what_is_resumed_is_called_once_in_each_process_until_it_succeeds() -> None:
    calls: list[str] = []

    async def handler(uid: str) -> None:
        calls.append(uid)
        if len(calls) == 1:
            raise ValueError("not yet")

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        ctx, obj = await made(client)
        for _ in range(3):
            await Handling(ctx, obj, ORIGIN).resumed(handler)
        assert calls == [obj.uid] * 2
        await client.delete(obj)
        _, other = await made(client)
        await Handling(ctx, other, ORIGIN).resumed(handler)
        assert calls[2:] == [other.uid]


async def test_a_field_is_told_when_it_comes_changes_and_goes_and_filters_hold() -> None:
    told: list[Any] = []

    async def field(new: Any) -> None:
        told.append(new)

    async def filtered(new: Any) -> None:
        told.append(("filtered", new))

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        ctx, obj = await made(client)
        for patch in ({}, {"data": {"x": "2"}}, {"metadata": {"labels": {"a": "b"}}}, {"data": {"x": None}}, {}):
            await client.patch(MAP, "a", patch, namespace="default")
            obj = await again(client)
            async with Handling(ctx, obj, ORIGIN) as run:
                await run.field(field, "data.x")
                await run.field(filtered, "data.x", new="2")
    assert told == ["1", "2", ("filtered", "2"), None]


@pytest.mark.parametrize(
    ("errors", "raised"), [("permanent", TerminalError), ("ignored", None), ("temporary", ValueError)]
)
async def test_what_an_exception_means_is_said_by_the_declaration(errors: Any, raised: Any) -> None:
    async def broken() -> None:
        raise ValueError("no")

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client:
        ctx, obj = await made(client)
        run = Handling(ctx, obj, ORIGIN)
        await run.always(broken, errors=errors)
        if raised is None:
            await run.__aexit__(None)
            return
        with pytest.raises(raised):
            await run.__aexit__(None)
