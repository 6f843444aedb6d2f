"""The requests about Leases, each with a limit."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import pytest

from kopylite.errors import AlreadyExists, Conflict, NotFound, RequestTimeout
from kopylite.leaderelection.lease import Lease, absent
from kopylite.leaderelection.requests import LeaseRequests
from kopylite.testing.clock import VirtualClock
from tests.unit.leaderelection.leaseserver import LeaseServer


def wish(lease: Lease, holder: str) -> Lease:
    return lease.written(holder=holder, duration=15, acquired="t", renewed="t", transitions=0)


def test_a_lease_is_created_replaced_as_it_was_read_and_deleted_as_it_was_read() -> None:
    server = LeaseServer()

    async def play() -> None:
        requests = LeaseRequests(server, "default", 5)
        assert await requests.get("a") is None
        first = await requests.put(wish(absent("a", "default"), "one"))
        with pytest.raises(AlreadyExists):
            await requests.put(wish(absent("a", "default"), "two"))
        second = await requests.put(wish(first, "two"))
        with pytest.raises(Conflict):
            await requests.put(wish(first, "three"))
        with pytest.raises(Conflict):
            await requests.delete(first)
        found = await requests.get("a")
        assert found is not None
        assert (found.holder, found.version) == ("two", second.version)
        await requests.delete(second)
        with pytest.raises(NotFound):
            await requests.put(wish(second, "three"))

    VirtualClock().run(play)
    assert server.requests == [
        *("GET a", "POST", "POST", "PUT a", "PUT a", "DELETE a", "GET a", "DELETE a", "PUT a")
    ]  # fmt: skip


def test_a_request_without_an_answer_ends_at_the_limit() -> None:
    server, clock = LeaseServer(), VirtualClock()
    server.fault = lambda request: "cut"

    async def play() -> None:
        requests = LeaseRequests(server, "default", 5)
        for call in (requests.get("a"), requests.list("a=b"), requests.put(absent("a", "default"))):
            began = clock.elapsed()
            with pytest.raises(RequestTimeout, match="no answer within 5 s"):
                await call
            assert clock.elapsed() - began == pytest.approx(5)

    clock.run(play)


def test_a_list_is_of_those_that_match_and_a_watch_tells_each_state() -> None:
    server = LeaseServer()
    for name, label in (("a", "yes"), ("b", "no"), ("c", "yes")):
        server.put({"metadata": {"name": name, "labels": {"mine": label}}, "spec": {"holderIdentity": name}})

    async def play() -> None:
        requests = LeaseRequests(server, "default", 5)
        assert {lease.holder for lease in await requests.list("mine=yes")} == {"a", "c"}
        async with aclosing(requests.watch("a", "")) as states:
            first = await anext(states)
            assert first is not None
            assert first.holder == "a"
            await requests.delete(first)
            assert await anext(states) is None
            with anyio.move_on_after(3600) as silence:
                await anext(states)
            assert silence.cancelled_caught, "a watch has no limit: silence is no fault"

    VirtualClock().run(play)
