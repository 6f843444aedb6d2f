"""The elector on the embedded server, in the real loop, with short leases; and its fence."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from kopylite.client import Client, HttpTransport, LiveClient, load_config
from kopylite.client.api import Api
from kopylite.errors import NotLeader
from kopylite.leaderelection import LEASE, Elector, FencedTransport, LeaseSettings
from kopylite.objects import Kind, ObjectKey, Unstructured
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
KEY = ObjectKey("default", "a")


def settings(**times: Any) -> LeaseSettings:
    chosen = {"lease_duration": 3, "renew_deadline": 2, "retry_period": 0.2} | times
    return LeaseSettings(name="a", namespace="default", **chosen)


@pytest.fixture
async def transport(embedded_cluster: EmbeddedCluster) -> AsyncIterator[HttpTransport]:
    async with HttpTransport(load_config(str(embedded_cluster.kubeconfig))) as transport:
        client = LiveClient(Api(transport))
        for kind in (LEASE, CONFIG_MAP):
            await client.delete(kind, KEY)
        metadata = {"name": KEY.name, "namespace": KEY.namespace}
        await client.create(Unstructured(apiVersion=LEASE.api_version, kind="Lease", metadata=metadata))
        yield transport


class Work:
    """What the leader does: nothing, until it is told to end."""

    def __init__(self) -> None:
        self.terms = 0
        self.runs = False
        self.end = anyio.Event()

    async def __call__(self) -> None:
        self.terms += 1
        self.runs = True
        try:
            await self.end.wait()
        finally:
            self.runs = False


async def stored(transport: HttpTransport) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await Api(transport).get(LEASE, KEY))["spec"]
    return found


async def test_one_leads_and_hands_over_in_order(transport: HttpTransport) -> None:
    first, second = Elector(settings(), "one", transport), Elector(settings(), "two", transport)
    work, other = Work(), Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.run, work)
        await eventually(lambda: work.runs, "the first leads")
        tasks.start_soon(second.run, other)
        await eventually(lambda: second.holder == "one", "the second has seen it")
        spec = await stored(transport)
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 3, 0)
        assert (first.leading, second.leading, other.runs) == (True, False, False)
        first.stop()
        work.end.set()
        await eventually(lambda: other.runs, "the second leads")
        assert (await stored(transport))["holderIdentity"] == "two"
        second.stop()
        other.end.set()
    spec = await stored(transport)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 1)


async def test_what_ends_with_an_error_or_is_cancelled_gives_its_lease_back(transport: HttpTransport) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        await Elector(settings(), "one", transport).run(fail)
    assert (await stored(transport))["holderIdentity"] == ""
    work = Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Elector(settings(), "two", transport).run, work)
        await eventually(lambda: work.runs, "it leads")
        tasks.cancel_scope.cancel()
    assert (await stored(transport))["holderIdentity"] == ""


async def test_a_leader_that_is_deposed_stops_and_campaigns_again(transport: HttpTransport) -> None:
    elector, work, client = Elector(settings(), "one", transport), Work(), LiveClient(Api(transport))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(elector.run, work)
        await eventually(lambda: work.runs, "it leads")
        taken = {"metadata": {"labels": {"by": "hand"}}, "spec": {"holderIdentity": "somebody"}}
        await client.patch(LEASE, KEY, taken)
        await eventually(lambda: not work.runs, "it has stopped")
        assert not elector.leading
        await eventually(lambda: work.terms == 2 and work.runs, "it leads again, when that lease has run out")
        assert json.loads(await Api(transport).get(LEASE, KEY))["metadata"]["labels"] == {"by": "hand"}
        elector.stop()
        work.end.set()


async def test_no_write_passes_the_fence_of_who_does_not_lead_also_of_work_that_heeds_nothing(
    transport: HttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    elector = Elector(settings(), "one", transport)
    client = Client(FencedTransport(transport, elector.fence))
    config_map = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": KEY.name, "namespace": "default"})
    refused = anyio.Event()

    async def stubborn() -> None:
        await client.create(config_map)
        with anyio.CancelScope(shield=True):
            await eventually(lambda: not elector.leading, "the lease is lost")
            with pytest.raises(NotLeader):
                await client.live.patch(CONFIG_MAP, KEY, {"data": {"a": "b"}})
            assert elector.overdue > 0
            await client.live.get(CONFIG_MAP, KEY)  # to read is harmless
            refused.set()

    with pytest.raises(NotLeader, match="does not hold the lease default/a"):
        await client.create(config_map)
    with caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elector.run, stubborn)
            await eventually(lambda: elector.leading, "it leads")
            await LiveClient(Api(transport)).patch(LEASE, KEY, {"spec": {"holderIdentity": "somebody"}})
            with anyio.fail_after(20):
                await refused.wait()
            tasks.cancel_scope.cancel()
    assert "it names somebody now. Leader work is cancelled" in caplog.text


async def test_a_write_that_was_waiting_for_its_connection_when_the_fence_closed_is_not_sent(
    transport: HttpTransport,
) -> None:
    """The last question is asked when the first byte is about to be written."""
    elector = Elector(settings(), "one", transport)
    fence, asked = elector.fence, 0
    client = LiveClient(Api(FencedTransport(transport, fence)))

    class Closing(type(fence)):  # type: ignore[misc]
        __slots__ = ()

        def check(self) -> None:
            nonlocal asked
            asked += 1
            if asked > 1:
                super().check()

    closed = Closing("default/a", elector._clock)
    client = LiveClient(Api(FencedTransport(transport, closed)))
    with pytest.raises(NotLeader):
        await client.patch(LEASE, KEY, {"metadata": {"labels": {"late": "yes"}}})
    assert asked == 2
    assert "labels" not in json.loads(await Api(transport).get(LEASE, KEY))["metadata"]


async def test_a_lease_is_not_given_back_while_a_write_has_no_answer(
    transport: HttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    elector, work = Elector(settings(), "one", transport), Work()
    with caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elector.run, work)
            await eventually(lambda: work.runs, "it leads")
            elector.fence.doubt()
            elector.stop()
            work.end.set()
    assert (await stored(transport))["holderIdentity"] == "one"
    assert "is left to run out" in caplog.text
