"""create_or_update(..., recreate=how) against the embedded server and, where there is one, a real one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kopylite import App, Client, Conflict, Context, Invalid, Kind, Outcome, Request, Unstructured
from kopylite.client import Api, recreating
from kopylite.client.recreating import Propagation
from kopylite.errors import NameStillTaken, UsageError
from kopylite.testing import EmbeddedCluster, EnvTest

SECRET = Kind("v1", "Secret")
CONFIG_MAP = Kind("v1", "ConfigMap")
EVENT = Kind("events.k8s.io/v1", "Event")
DEPLOYMENT = Kind("apps/v1", "Deployment")


def secret_of(kind: str) -> Callable[[Unstructured], None]:
    """A Secret whose type cannot be changed."""

    def mutate(secret: Unstructured) -> None:
        secret["type"] = kind

    return mutate


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.realserver)])
def client_of(request: pytest.FixtureRequest) -> Callable[[], Any]:
    if request.param == "real":
        real: EnvTest = request.getfixturevalue("real_cluster")
        return real.client

    @asynccontextmanager
    async def embedded() -> AsyncIterator[Client]:
        async with EmbeddedCluster() as cluster, cluster.client() as client:
            yield client

    return embedded


@pytest.fixture
def how(request: pytest.FixtureRequest, client_of: Callable[[], Any]) -> bool | Propagation:
    """What is deleted in the background goes at once, also where no garbage collector runs."""
    return "Background" if "real" in request.node.callspec.id else True


@asynccontextmanager
async def namespace(client: Client) -> AsyncIterator[str]:
    made = await client.create(Unstructured(apiVersion="v1", kind="Namespace", metadata={"generateName": "anew-"}))
    yield made.name
    await client.delete(made)


async def test_an_object_whose_field_cannot_change_is_made_anew_only_when_that_is_asked_for(
    client_of: Callable[[], Any], how: bool | Propagation
) -> None:
    told: list[str] = []
    async with client_of() as client, namespace(client) as where:
        client.on_recreate = lambda obj, why: told.append(f"{obj.name}: {why}")
        key = Request(where, "a")
        first, _ = await client.create_or_update(SECRET, key, secret_of("example.com/one"))
        with pytest.raises(Invalid, match=r"create_or_update\(..., recreate=True\) deletes the object"):
            await client.create_or_update(SECRET, key, secret_of("example.com/two"))
        assert (await client.live.get(SECRET, key)).uid == first.uid

        second, outcome = await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        assert (outcome, second["type"]) == (Outcome.RECREATED, "example.com/two")
        assert second.uid != first.uid
        assert told == ["a: Secret a was deleted to be made anew, since it cannot change: type"]
        again = await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        assert (again[1], again[0].uid) == (Outcome.UNCHANGED, second.uid)


async def test_what_would_be_refused_as_a_new_object_too_is_not_deleted(
    client_of: Callable[[], Any], how: bool | Propagation
) -> None:
    """A 422 that no recreation helps against must not cost the object that is there."""
    async with client_of() as client, namespace(client) as where:
        key = Request(where, "a")
        first, _ = await client.create_or_update(SECRET, key, secret_of("example.com/one"))

        def wrong(secret: Unstructured) -> None:
            secret["type"] = "kubernetes.io/tls"  # whose data it lacks

        with pytest.raises(Invalid):
            await client.create_or_update(SECRET, key, wrong, recreate=how)
        assert (await client.live.get(SECRET, key)).uid == first.uid
        with pytest.raises(Invalid):  # and a dry run deletes nothing
            await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how, dry_run=True)
        assert (await client.live.get(SECRET, key)).uid == first.uid


async def test_what_holds_the_old_object_is_waited_for_with_a_limit_and_the_next_run_goes_on(
    client_of: Callable[[], Any], how: bool | Propagation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recreating, "GONE_SECONDS", 0.2)
    told: list[str] = []
    async with client_of() as client, namespace(client) as where:
        client.on_recreate = lambda obj, why: told.append(why)
        key = Request(where, "a")
        first, _ = await client.create_or_update(SECRET, key, secret_of("example.com/one"))
        first = await client.add_finalizer(first, "example.com/hold")
        for _ in range(2):  # the second is a run after a crash, or 30 s later
            with pytest.raises(NameStillTaken, match="has not gone within"):
                await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        assert (await client.live.get(SECRET, key))["metadata"]["deletionTimestamp"]
        await client.remove_finalizer(first, "example.com/hold")
        monkeypatch.setattr(recreating, "GONE_SECONDS", 20.0)
        second, outcome = await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        assert second.uid != first.uid
        assert outcome in (Outcome.CREATED, Outcome.RECREATED)
        assert len(told) == 1  # one Event for one object


async def test_a_crash_between_delete_and_create_is_healed_by_the_next_run(
    client_of: Callable[[], Any], how: bool | Propagation
) -> None:
    class Crash(Exception):
        pass

    def crash(obj: Any, why: str) -> None:
        raise Crash

    async with client_of() as client, namespace(client) as where:
        key = Request(where, "a")
        await client.create_or_update(SECRET, key, secret_of("example.com/one"))
        client.on_recreate = crash
        with pytest.raises(Crash):
            await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        second, _ = await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        assert second["type"] == "example.com/two"


async def test_an_object_that_somebody_else_made_anew_is_not_deleted(
    client_of: Callable[[], Any], how: bool | Propagation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of() as client, namespace(client) as where:
        key = Request(where, "a")
        await client.create_or_update(SECRET, key, secret_of("example.com/one"))
        foreign: list[Unstructured] = []
        delete = Api.delete

        async def late(api: Api, *args: Any, **params: Any) -> bytes:
            """Somebody is faster, just before the deletion."""
            monkeypatch.setattr(Api, "delete", delete)
            await client.live.delete(SECRET, key)
            made = Unstructured(apiVersion="v1", kind="Secret", metadata={"name": "a", "namespace": where})
            foreign.append(await client.live.create(made))
            return await delete(api, *args, **params)

        monkeypatch.setattr(Api, "delete", late)
        with pytest.raises(Conflict):
            await client.create_or_update(SECRET, key, secret_of("example.com/two"), recreate=how)
        assert (await client.live.get(SECRET, key)).uid == foreign[0].uid


def test_the_choice_is_checked() -> None:
    assert [recreating.chosen(value) for value in (True, "Foreground", "Orphan", "Background", False)] == [
        "Foreground", "Foreground", "Orphan", "Background", None,
    ]  # fmt: skip
    with pytest.raises(UsageError, match="recreate='yes'"):
        recreating.chosen("yes")


async def test_an_operator_says_it_once_by_an_event_on_the_owner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    app = App("anew")

    @app.reconciler(CONFIG_MAP, owns=[SECRET])
    async def reconcile(ctx: Context, request: Request) -> None:
        owner = await ctx.client.find(CONFIG_MAP, request)
        if owner is not None and "type" in owner.get("data", {}):
            mutate = secret_of(owner["data"]["type"])
            await ctx.client.create_or_update(SECRET, request, mutate, owner=owner, recreate=True)

    async with EmbeddedCluster() as cluster, cluster.client() as client, cluster.running(app):
        made = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "a", "namespace": "default"})
        made["data"] = {"type": "example.com/one"}
        made = await client.create(made)

        for kind in ("example.com/one", "example.com/two"):
            await client.patch(CONFIG_MAP, made, {"data": {"type": kind}})
            with anyio.fail_after(20):
                found = await client.find(SECRET, made)
                while found is None or found["type"] != kind:
                    found = await client.find(SECRET, made)
        events: list[Unstructured] = []
        with anyio.fail_after(20):
            while not events:
                events = [event for event in await client.list(EVENT) if event["reason"] == "Recreated"]
    [event] = events
    assert event["regarding"]["kind"] == "ConfigMap"
    assert event["note"] == "Secret a was deleted to be made anew, since it cannot change: type"
