"""Every way in which a list or a watch can go wrong, over real sockets, with default settings, in virtual time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from kopylite.cache import Delta, Informer, Phase, SharedCache
from kopylite.cache.steps import Replacement
from kopylite.client.config import ClientConfig
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.errors import Forbidden, KindNotFound
from kopylite.objects import Kind, ObjectKey
from kopylite.testing.clock import VirtualClock
from tests.chaos.faultserver import Call, Fault, FaultServer, Wire, bookmark, line, status

THING = Kind("example.com/v1", "Thing")


class Mirror:
    """An informer on a FaultServer, and what its handler was told."""

    def __init__(self, server: FaultServer, cache: SharedCache, clock: VirtualClock) -> None:
        self.server = server
        self.cache = cache
        self.clock = clock
        self.informer: Informer = cache.acquire(THING)
        self.deltas: list[Delta] = []
        self.informer.add_handler(self.deltas.append)

    @property
    def names(self) -> set[str]:
        return {record.name for record in self.informer.store.list()}

    @property
    def told(self) -> list[str]:
        return [_describe(delta) for delta in self.deltas]

    async def until(self, condition: Callable[[], bool], limit: float = 150.0) -> None:
        """Wait, in virtual time, until something is so."""
        with anyio.fail_after(limit):
            while not condition():  # noqa: ASYNC110  (the condition is the world's)
                await asyncio.sleep(0.05)

    async def in_step(self, limit: float = 150.0) -> None:
        """Wait until the store equals the server's world."""
        await self.until(self.is_in_step, limit)

    def is_in_step(self) -> bool:
        mine = {record.name: record.resource_version for record in self.informer.store.list()}
        return mine == {name: obj["metadata"]["resourceVersion"] for name, obj in self.server.objects.items()}


def _describe(delta: Delta) -> str:
    record = delta.new or delta.old
    assert record is not None
    word = "deleted" if delta.new is None else "created" if delta.old is None else "updated"
    return f"{record.name} {word}"


def mirror(scenario: Callable[[Mirror], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario with a server that has one thing, "a"."""
    clock = VirtualClock()

    async def main() -> None:
        server = FaultServer(**settings)
        server.put("a")
        async with server.running(), HttpTransport(ClientConfig(server=server.url), clock=clock) as transport:
            cache = SharedCache(transport, Resources(transport, clock), clock=clock)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cache.run)
                await scenario(Mirror(server, cache, clock))
                tasks.cancel_scope.cancel()

    clock.run(main)


async def _cut(m: Mirror) -> None:
    """Break the open stream."""
    m.server.break_connections()
    await asyncio.sleep(0.01)


def sends(*data: bytes, then: Callable[[Wire], Any] = Wire.cut) -> Fault:
    """A watch that sends some chunks, and then ends in some way."""

    async def fault(server: FaultServer, call: Call, wire: Wire) -> None:
        await wire.open()
        for part in data:
            await wire.chunk(part)
        done = then(wire)
        if done is not None:
            await done

    return fault


def answers(code: int, body: bytes | dict[str, Any], **headers: str) -> Fault:
    async def fault(server: FaultServer, call: Call, wire: Wire) -> None:
        await wire.answer(code, body, **headers)

    return fault


async def hangs(server: FaultServer, call: Call, wire: Wire) -> None:
    """Open, and never a byte again."""
    await wire.open()
    await asyncio.sleep(10_000)


async def says_nothing(server: FaultServer, call: Call, wire: Wire) -> None:
    """Not even headers."""
    await asyncio.sleep(10_000)


def behaves_after(*data: bytes) -> Fault:
    """A watch that begins with some bytes and goes on as it should."""

    async def fault(server: FaultServer, call: Call, wire: Wire) -> None:
        await wire.open()
        for part in data:
            await wire.chunk(part)
        await server.follow(int(call.params["resourceVersion"]), wire)

    return fault


# The normal way


def test_a_streamed_start_delivers_the_world_and_then_every_change() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.put("b")
        m.server.put("a", x=1)
        await m.in_step()
        m.server.delete("b")
        await m.in_step()
        assert m.told == ["a created", "b created", "a updated", "b deleted"]
        assert [delta.initial for delta in m.deltas] == [True, False, False, False]
        assert m.server.count("list") == 0

    mirror(scenario)


def test_bookmarks_move_the_version_and_reach_no_handler() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.version = 5000  # other resources of the server moved on
        await m.until(lambda: m.informer.store.newest() == "5000")
        assert m.told == ["a created"]
        assert m.server.count("watch") == 0, "a bookmark each minute keeps the stream alive"

    mirror(scenario)


# The start


@pytest.mark.parametrize("code", [400, 405, 422])
def test_a_server_that_refuses_streaming_is_listed_and_never_asked_again(code: int) -> None:
    async def scenario(m: Mirror) -> None:
        m.server.streams.append(
            answers(code, status(code, {400: "BadRequest", 405: "MethodNotAllowed"}.get(code, "Invalid")))
        )
        await m.informer.wait_synced()
        m.server.compacted = m.server.version + 10
        m.server.version += 20
        m.server.watches.append(sends(line("ERROR", status(410, "Expired")), then=Wire.end))
        m.server.put("b")
        await m.in_step()
        other = m.cache.acquire(THING, namespace="ns")
        await other.wait_synced()
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_a_server_that_never_ends_the_initial_state_is_listed_within_a_limit() -> None:
    async def scenario(m: Mirror) -> None:
        m.server.streams.append(sends(line("ADDED", m.server.objects["a"]), then=lambda wire: asyncio.sleep(10_000)))
        await m.informer.wait_synced()
        assert m.clock.monotonic() < 20
        assert m.server.count("list") == 1
        assert m.told == ["a created"]

    mirror(scenario)


def test_a_server_that_ignores_send_initial_events_and_is_busy_is_listed_within_a_limit() -> None:
    async def chatters(server: FaultServer, call: Call, wire: Wire) -> None:
        await wire.open()
        while not wire.closed:
            await wire.event("MODIFIED", server.put("a", at=server.version))
            await asyncio.sleep(3)

    async def scenario(m: Mirror) -> None:
        m.server.streams.append(chatters)
        await m.informer.wait_synced()
        assert m.clock.monotonic() < 130
        assert m.server.count("list") == 1

    mirror(scenario)


def test_an_initial_stream_that_breaks_is_tried_again_and_then_replaced_by_a_list() -> None:
    async def scenario(m: Mirror) -> None:
        broken = sends(line("ADDED", m.server.objects["a"]))
        m.server.streams.extend([broken, broken])
        await m.informer.wait_synced()
        assert m.told == ["a created"]
        assert (m.server.count("stream"), m.server.count("list")) == (2, 1)

    mirror(scenario)


def test_a_list_comes_in_pages_of_five_hundred_and_never_from_version_zero() -> None:
    async def scenario(m: Mirror) -> None:
        for number in range(1200):
            m.server.put(f"t{number}")
        await m.informer.wait_synced()
        await m.in_step()
        lists = [call.params for call in m.server.calls if call.role == "list"]
        assert [params.get("limit") for params in lists] == ["500", "500", "500"]
        assert [params.get("continue") for params in lists] == [None, "500", "1000"]
        assert all("resourceVersion" not in params for params in lists)

    mirror(scenario, streaming=False)


def test_a_token_that_expires_leads_to_one_list_in_one_piece() -> None:
    async def scenario(m: Mirror, details: dict[str, Any]) -> None:
        for number in range(1200):
            m.server.put(f"t{number}")
        expired = status(410, "Expired", "the provided continue parameter is too old")
        expired["metadata"] = details

        async def expires(server: FaultServer, call: Call, wire: Wire) -> None:
            await wire.answer(410, expired)

        async def behaves(server: FaultServer, call: Call, wire: Wire) -> None:
            await server.behave(call, wire)

        m.server.lists.extend([behaves, expires])
        await m.informer.wait_synced()
        assert m.is_in_step()
        lists = [call.params for call in m.server.calls if call.role == "list"]
        assert len(lists) == 3
        assert "limit" not in lists[2]
        assert "continue" not in lists[2]

    mirror(lambda m: scenario(m, {}), streaming=False)
    mirror(lambda m: scenario(m, {"continue": "fresh", "resourceVersion": "9999"}), streaming=False)


def test_a_page_that_breaks_is_asked_for_again_without_starting_over() -> None:
    async def scenario(m: Mirror) -> None:
        for number in range(1200):
            m.server.put(f"t{number}")

        async def behaves(server: FaultServer, call: Call, wire: Wire) -> None:
            await server.behave(call, wire)

        m.server.lists.extend([behaves, answers(500, status(500, "InternalError"))])
        await m.informer.wait_synced()
        assert m.is_in_step()
        lists = [call.params.get("continue") for call in m.server.calls if call.role == "list"]
        assert lists == [None, "500", "500", "1000"]

    mirror(scenario, streaming=False)


def test_items_null_and_continue_empty_are_an_empty_world() -> None:
    async def scenario(m: Mirror) -> None:
        del m.server.objects["a"]
        m.server.lists.append(answers(200, {"metadata": {"resourceVersion": "7", "continue": ""}, "items": None}))
        await m.informer.wait_synced()
        assert m.names == set()
        assert m.told == []

    mirror(scenario, streaming=False)


# The watch ends


def test_a_clean_end_goes_on_from_the_same_version_without_a_list() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        b = m.server.put("b")
        m.server.watches.append(sends(line("ADDED", b), then=Wire.end))
        await m.in_step()
        m.server.watches.extend([sends(then=Wire.end)] * 3)
        await _cut(m)
        m.server.put("c")
        await m.in_step()
        assert m.told == ["a created", "b created", "c created"]
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_a_watch_that_ends_at_once_for_ever_is_not_opened_in_a_hot_loop() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([sends(then=Wire.end)] * 1000)
        await _cut(m)
        begin = m.clock.monotonic()
        await asyncio.sleep(300)
        assert m.server.count("watch") < 25
        assert m.informer.problem is not None
        m.server.watches.clear()
        m.server.put("b")
        await m.in_step(60)
        assert m.clock.monotonic() - begin < 400
        assert m.server.count("stream") == 1, "the version stayed good"

    mirror(scenario)


@pytest.mark.parametrize("end", [Wire.cut, Wire.reset, Wire.end], ids=["fin", "rst", "clean"])
def test_a_watch_cut_after_every_event_loses_nothing(end: Callable[[Wire], Any]) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()

        async def one_event(server: FaultServer, call: Call, wire: Wire) -> None:
            await wire.open()
            since = int(call.params["resourceVersion"])
            for number, word, obj in server.history:
                if number > since:
                    await wire.event(word, obj)
                    break
            await asyncio.sleep(0.01)  # a reset overtakes what was sent before it
            done = end(wire)
            if done is not None:
                await done

        m.server.watches.extend([one_event] * 30)
        await _cut(m)
        for number in range(10):
            m.server.put("b", number=number)
            m.server.put("c")
            m.server.delete("c")
        await m.in_step()
        assert m.told.count("c created") == 10
        assert m.told.count("c deleted") == 10
        assert m.told.count("b updated") == 9
        assert m.server.count("stream") == 1

    mirror(scenario)


@pytest.mark.parametrize("end", [Wire.cut, Wire.reset, Wire.end], ids=["fin", "rst", "clean"])
def test_an_end_in_mid_line_goes_on_from_the_last_whole_line(end: Callable[[Wire], Any]) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        b, c = m.server.put("b"), m.server.put("c")
        m.server.watches.append(sends(line("ADDED", b), line("ADDED", c)[:40], then=end))
        await _cut(m)
        await m.in_step()
        assert m.told == ["a created", "b created", "c created"]
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_a_half_open_connection_is_left_within_two_minutes() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(hangs)
        await _cut(m)
        await m.until(lambda: m.server.count("watch") == 1)
        begin = m.clock.monotonic()
        m.server.put("b")
        await m.in_step(120)
        assert m.clock.monotonic() - begin > 60, "a bookmark may take a minute: shorter silence is no fault"
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_a_server_that_accepts_and_never_answers_is_left_soon() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(says_nothing)
        await _cut(m)
        m.server.put("b")
        await m.in_step(60)

    mirror(scenario)


def test_a_server_that_sends_one_byte_a_second_is_waited_for() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        b = m.server.put("b")

        async def trickles(server: FaultServer, call: Call, wire: Wire) -> None:
            await wire.open()
            for byte in line("ADDED", b):
                await wire.chunk(bytes([byte]))
                await asyncio.sleep(1)
            await server.follow(server.version, wire)

        m.server.watches.append(trickles)
        await _cut(m)
        await m.in_step(400)
        assert m.server.count("watch") == 1

    mirror(scenario)


# Too old


def test_a_410_in_the_stream_leads_to_one_new_list() -> None:
    async def scenario(m: Mirror) -> None:
        m.server.put("b")
        await m.informer.wait_synced()
        m.server.watches.append(sends(line("ERROR", status(410, "Expired")), then=Wire.end))
        await _cut(m)
        m.server.delete("b")
        m.server.put("c")
        await m.in_step()
        assert m.told == ["a created", "b created", "b deleted", "c created"]
        assert m.server.count("stream") == 2

    mirror(scenario)


@pytest.mark.parametrize("reason", ["Expired", "Gone"])
def test_a_410_as_http_status_leads_to_one_new_list(reason: str) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(answers(410, status(410, reason)))
        await _cut(m)
        m.server.put("c")
        await m.in_step()
        assert m.server.count("stream") == 2

    mirror(scenario)


def test_a_storm_of_410_is_bounded_and_visible() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        expired = sends(line("ERROR", status(410, "Expired")), then=Wire.end)

        async def lists_and_expires(server: FaultServer, call: Call, wire: Wire) -> None:
            await wire.open()
            for obj in server.objects.values():
                await wire.event("ADDED", obj)
            await wire.event("BOOKMARK", bookmark(server.version, initial_end=True))
            await wire.event("ERROR", status(410, "Expired"))
            await wire.end()

        m.server.watches = deque([expired] * 1000)
        m.server.streams = deque([lists_and_expires] * 1000)
        await _cut(m)
        await asyncio.sleep(600)
        assert len(m.server.calls) < 60
        assert not m.informer.synced
        m.server.watches.clear()
        m.server.streams.clear()
        m.server.put("b")
        await m.in_step(60)
        await m.until(lambda: m.informer.synced, 60)

    mirror(scenario)


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
def test_a_relist_keeps_the_bytes_of_what_has_not_changed(streaming: bool) -> None:
    async def scenario(m: Mirror) -> None:
        m.server.put("b")
        await m.informer.wait_synced()
        await m.in_step()
        before = {record.name: record for record in m.informer.store.list()}
        m.server.watches.append(answers(410, status(410, "Expired")))
        m.server.put("b", changed=True)
        m.server.history.clear()
        await _cut(m)
        await m.in_step()
        after = {record.name: record for record in m.informer.store.list()}
        assert after["a"] is before["a"]
        assert after["b"] is not before["b"]

    mirror(scenario, streaming=streaming)


def test_a_list_that_is_streamed_anew_never_holds_unchanged_bodies_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(m: Mirror) -> None:
        for number in range(20):
            m.server.put(f"t{number}")
        await m.informer.wait_synced()
        given: list[Replacement] = []
        replace = m.informer.replace

        async def spy(snapshot: Replacement) -> None:
            given.append(snapshot)
            await replace(snapshot)

        monkeypatch.setattr(m.informer, "replace", spy)
        m.server.watches.append(answers(410, status(410, "Expired")))
        await _cut(m)
        await m.until(lambda: bool(given))
        held = {record.name: record for record in m.informer.store.list()}
        assert len(held) == 21
        assert all(record is held[record.name] for record in given[0].records["ns"].values())

    mirror(scenario)


def test_a_missed_delete_and_recreate_is_a_delete_and_a_create() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(answers(410, status(410, "Expired")))
        m.server.delete("a")
        m.server.put("a")
        m.server.history.clear()
        await _cut(m)
        await m.until(lambda: len(m.deltas) >= 3)
        assert m.told == ["a created", "a deleted", "a created"]

    mirror(scenario)


# Bad frames


def test_lines_of_several_megabytes_and_characters_cut_in_two_come_through() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        b = m.server.put("b", text="äöü€😀" * 400_000)
        data = line("ADDED", b)
        assert len(data) > 5_000_000
        cut = data.index("€".encode()) + 1
        m.server.watches.append(behaves_after(data[:cut], data[cut : cut + 70_001], data[cut + 70_001 :]))
        m.server.history.clear()
        await _cut(m)
        await m.in_step()
        record = m.informer.store.get(ObjectKey("ns", "b"))
        assert record is not None
        assert json.loads(record.body)["spec"] == b["spec"]
        assert m.server.count("watch") == 1

    mirror(scenario)


@pytest.mark.parametrize(
    "garbage",
    [b"<html>bad gateway</html>\n", b'{"type":"ADDED","object":{"meta\n', b"\xff\xfe\x00\n", b'{"type":"ADDED"}\n',
     b'{"type":"SURPRISE","object":{"metadata":{"name":"x"}}}\n', b'{"type":"ADDED","object":{"metadata":{}}}\n',
     b"[]\n", b'{"type":"ERROR","object":7}\n'],
)  # fmt: skip
def test_garbage_breaks_the_stream_and_loses_nothing(garbage: bytes) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        b = m.server.put("b")
        m.server.watches.append(sends(line("ADDED", b), garbage, then=lambda wire: asyncio.sleep(10_000)))
        await _cut(m)
        m.server.put("c")
        await m.in_step(30)
        assert m.told == ["a created", "b created", "c created"]
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_garbage_that_stays_is_passed_by_with_a_list() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([sends(b"garbage\n")] * 3)
        await _cut(m)
        m.server.put("c")
        await m.in_step(60)
        assert m.server.count("stream") == 2

    mirror(scenario)


def test_empty_lines_are_nothing() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(behaves_after(b"\n\n", b"\n"))
        await _cut(m)
        m.server.put("c")
        await m.in_step(30)
        assert m.server.count("watch") == 1

    mirror(scenario)


# Refusals


def test_retry_after_is_honoured() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(answers(429, b"slow down", retry_after="50", content_type="text/plain"))
        await _cut(m)
        await m.until(lambda: m.server.count("watch") == 1)
        begin = m.clock.monotonic()
        m.server.put("b")
        await m.in_step()
        assert 49.9 < m.clock.monotonic() - begin < 55

    mirror(scenario)


def test_a_proxy_that_answers_html_is_no_news() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.extend([answers(502, b"<html>bad gateway</html>", content_type="text/html")] * 2)
        await _cut(m)
        m.server.put("b")
        await m.in_step(30)
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_forbidden_is_retried_quietly_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(m: Mirror) -> None:
        no = answers(403, status(403, "Forbidden", "things is forbidden: User alice cannot list things"))
        m.server.streams = deque([no] * 1000)
        m.server.lists = deque([no] * 1000)
        await m.until(lambda: m.informer.problem is not None)
        problem = m.informer.problem
        assert problem is not None
        assert isinstance(problem.error, Forbidden)
        assert "alice" in m.informer.statistics().problem
        await asyncio.sleep(600)
        assert not m.informer.synced
        assert len(m.server.calls) < 40
        assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 1
        m.server.streams.clear()
        m.server.lists.clear()
        await m.informer.wait_synced()
        await m.until(lambda: m.informer.problem is None)

    with caplog.at_level(logging.INFO, "kopylite.cache"):
        mirror(scenario)


def test_permission_lost_at_run_time_keeps_the_store_and_shows_within_two_minutes() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([answers(403, status(403, "Forbidden"))] * 1000)
        await _cut(m)
        assert m.informer.synced
        await m.until(lambda: not m.informer.synced, 120)
        assert m.names == {"a"}
        m.server.watches.clear()
        m.server.put("b")
        await m.in_step(60)
        await m.until(lambda: m.informer.synced, 60)
        assert m.server.count("stream") == 1

    mirror(scenario)


# The server goes and comes back


def test_a_server_that_is_away_for_a_minute_is_found_again_without_a_list() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        await m.server.stop()
        await asyncio.sleep(60)
        assert m.informer.statistics().phase is Phase.RETRYING, "no watch is open that could be called dead"
        m.server.put("b")
        await m.server.start()
        await m.in_step(60)
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_a_server_that_comes_back_with_lower_versions_is_listed_anew() -> None:
    async def scenario(m: Mirror) -> None:
        m.server.put("b")
        await m.informer.wait_synced()
        await m.server.stop()
        m.server.version = 10  # restored from a backup
        m.server.history.clear()
        m.server.objects.clear()
        m.server.put("a", restored=True)
        await m.server.start()
        await m.in_step(60)
        m.server.put("c")
        await m.in_step(60)
        assert m.told == ["a created", "b created", "b deleted", "a deleted", "a created", "c created"]

    mirror(scenario)


def test_events_that_go_back_in_time_lead_to_a_new_list() -> None:
    async def scenario(m: Mirror) -> None:
        old = m.server.put("a", x=1)
        m.server.put("a", x=2)
        await m.informer.wait_synced()
        m.server.watches.append(behaves_after(line("MODIFIED", old)))
        await _cut(m)
        await m.until(lambda: m.server.count("stream") == 2)
        await m.in_step(30)
        assert m.told == ["a created"], "the old state was not taken for news"

    mirror(scenario)


# The kind goes and comes back


def test_a_kind_that_is_missing_is_waited_for_and_found_when_it_appears() -> None:
    async def scenario(m: Mirror) -> None:
        m.server.served = False
        await m.until(lambda: m.informer.statistics().phase is Phase.WAITING_FOR_KIND)
        problem = m.informer.problem
        assert problem is not None
        assert isinstance(problem.error, KindNotFound)
        await asyncio.sleep(300)
        assert len(m.server.calls) < 60
        assert m.cache.store_for(THING, "") is None
        m.server.served = True
        await m.in_step(15)
        await m.informer.wait_synced()

    mirror(scenario)


def test_a_kind_that_goes_takes_its_objects_along_and_comes_back() -> None:
    async def scenario(m: Mirror) -> None:
        m.server.put("b")
        await m.informer.wait_synced()
        m.server.served = False
        await _cut(m)
        await m.until(lambda: m.names == set())
        assert sorted(m.told[2:]) == ["a deleted", "b deleted"]
        assert not m.informer.synced
        assert m.cache.store_for(THING, "") is None
        m.server.served = True
        m.server.objects.clear()
        m.server.put("c")
        await m.in_step(30)
        await m.until(lambda: m.informer.synced)
        assert m.told[4:] == ["c created"]

    mirror(scenario)


def test_a_404_that_discovery_denies_deletes_nothing() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.extend([answers(404, b"404 page not found")] * 2)
        m.server.streams.extend([answers(404, b"404 page not found")] * 2)
        await _cut(m)
        m.server.put("b")
        await m.in_step(60)
        assert m.told == ["a created", "b created"]

    mirror(scenario)


# What is everyday life


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("idle", [6.0, 20.0, 55.0])
@pytest.mark.parametrize("cut", [Wire.cut, Wire.reset, Wire.end], ids=["fin", "rst", "clean"])
def test_a_load_balancer_that_cuts_idle_watches_makes_nobody_deaf_and_no_noise(
    idle: float, cut: Callable[[Wire], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        for number in range(100):
            await asyncio.sleep(36.0 + number / 10)  # an hour, with changes at any moment between two cuts
            begin = m.clock.monotonic()
            m.server.put("a", number=number)
            await m.in_step(3)
            assert m.clock.monotonic() - begin <= 0.5
            assert m.informer.synced
        assert m.server.count("stream") == 1
        assert m.server.count("watch") < 4200 / idle + 110
        assert warnings_of(caplog) == []

    with caplog.at_level(logging.INFO):
        mirror(scenario, idle_cut=idle, cut=cut)


@pytest.mark.parametrize("life", [0.0, 0.3, 1.0, 3.0])
def test_a_watch_that_opens_and_breaks_for_ever_is_no_hot_loop(life: float) -> None:
    async def breaks(server: FaultServer, call: Call, wire: Wire) -> None:
        await wire.open()
        await asyncio.sleep(life)
        wire.cut()

    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([breaks] * 10_000)
        await _cut(m)
        await asyncio.sleep(3600)
        assert m.server.count("watch") < 3600 / 15 + 20
        assert m.informer.problem is not None
        assert not m.informer.synced
        m.server.watches.clear()
        m.server.put("b")
        await m.in_step(35)
        await m.until(lambda: m.informer.synced, 10)
        assert m.server.count("stream") == 1

    mirror(scenario)


def test_a_storm_of_410_after_a_while_each_is_bounded_too() -> None:
    async def lists_and_expires(server: FaultServer, call: Call, wire: Wire) -> None:
        await wire.open()
        for obj in server.objects.values():
            await wire.event("ADDED", obj)
        await wire.event("BOOKMARK", bookmark(server.version, initial_end=True))
        await asyncio.sleep(6)
        await wire.event("MODIFIED", server.put("a", at=server.version))
        await wire.event("ERROR", status(410, "Expired"))
        await wire.end()

    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(answers(410, status(410, "Expired")))
        m.server.streams = deque([lists_and_expires] * 1000)
        await _cut(m)
        await asyncio.sleep(3600)
        assert m.server.count("stream") < 3600 / 20 + 20

    mirror(scenario)


def test_failures_are_forgotten_by_success_and_not_by_time() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([answers(500, status(500, "InternalError"))] * 6)
        await _cut(m)
        await m.until(lambda: not m.server.watches)
        m.server.put("b")
        await m.in_step(60)
        await m.server.stop()
        await asyncio.sleep(0.2)
        m.server.put("c")
        await m.server.start()
        begin = m.clock.monotonic()
        await m.in_step(3)
        assert m.clock.monotonic() - begin < 1.5

    mirror(scenario)


@pytest.mark.parametrize("away", [0.2, 1.0, 4.0, 30.0, 600.0])
@pytest.mark.parametrize("before", [0, 5], ids=["healthy", "after failures"])
def test_a_kind_that_is_replaced_is_seen_again_in_about_a_second(away: float, before: int) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([answers(500, status(500, "InternalError"))] * before)
        await _cut(m)
        await m.until(lambda: not m.server.watches)
        await asyncio.sleep(40)  # the watch works again
        assert m.informer.problem is None
        m.server.delete("a")
        m.server.served = False
        await _cut(m)
        calls = len(m.server.calls)
        await asyncio.sleep(away)
        assert len(m.server.calls) - calls < 25 + away / 7
        m.server.served = True
        m.server.put("new")
        begin = m.clock.monotonic()
        await m.until(lambda: m.names == {"new"})
        assert m.clock.monotonic() - begin <= min(10.1, max(1.1, away / 5 + 0.1))
        await m.until(lambda: m.informer.synced)

    mirror(scenario)


def test_a_resource_that_answers_404_though_discovery_lists_it_is_not_asked_in_a_hot_loop() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        no = answers(404, b"404 page not found")
        m.server.watches, m.server.streams, m.server.lists = deque([no] * 9999), deque([no] * 9999), deque([no] * 9999)
        await _cut(m)
        await asyncio.sleep(3600)
        assert len(m.server.calls) < 3600 / 7.5 * 2 + 60
        assert m.names == {"a"}, "nobody said that the objects are gone"

    mirror(scenario)


@pytest.mark.parametrize("others", [False, True], ids=["quiet server", "others change"])
def test_a_quiet_watch_of_a_kind_without_bookmarks_is_healthy(others: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        for _ in range(360):
            await asyncio.sleep(10)
            m.server.version += others
            assert m.informer.problem is None
            assert m.informer.synced
            assert (m.informer.statistics().last_byte_age or 0) < 120
        assert m.server.count("stream") == 1, "never listed anew"
        assert len(m.server.calls) < 3600 / 40
        assert m.server.count("watch") == 0 or others, "a version that has not moved says enough"
        begin = m.clock.monotonic()
        m.server.put("b")
        await m.in_step(3)
        assert m.clock.monotonic() - begin < 0.5, "on the stream that was open all the time"
        assert m.told == ["a created", "b created"]
        assert warnings_of(caplog) == []

    with caplog.at_level(logging.INFO):
        mirror(scenario, bookmarks=False)


def test_a_half_open_watch_of_a_kind_without_bookmarks_is_found_out() -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches.append(hangs)
        await _cut(m)
        await m.until(lambda: m.server.count("watch") == 1)
        await asyncio.sleep(300)
        assert m.informer.problem is None, "it has missed nothing so far"
        m.server.put("b")
        await m.in_step(120)
        assert m.told == ["a created", "b created"]

    mirror(scenario, bookmarks=False)


@pytest.mark.parametrize("fault", [hangs, says_nothing, answers(500, status(500, "InternalError"))])
def test_a_silent_watch_is_not_trusted_when_the_server_does_not_answer(fault: Fault) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        m.server.watches = deque([hangs, fault, *[says_nothing] * 50])
        m.server.lists = deque([fault] * 50)
        await _cut(m)
        m.server.lists.clear()  # the probe before the first reopening
        await m.until(lambda: m.server.count("watch") >= 1)
        m.server.lists = deque([fault] * 50)
        m.server.version += 1
        await m.until(lambda: m.informer.problem is not None, 180)
        await m.until(lambda: not m.informer.synced, 120)

    mirror(scenario, bookmarks=False)


def test_a_version_that_expires_while_nothing_happens_leads_to_a_list_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        for _ in range(12):
            await asyncio.sleep(300)
            m.server.version += 10
            m.server.compacted = m.server.version
            assert m.informer.synced
        assert 2 <= m.server.count("stream") < 3600 / 100
        assert warnings_of(caplog) == []

    with caplog.at_level(logging.INFO):
        mirror(scenario, bookmarks=False)


def test_a_server_that_is_too_old_to_stream_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        assert m.clock.monotonic() < 0.1
        assert warnings_of(caplog) == []

    with caplog.at_level(logging.INFO):
        mirror(scenario, streaming=False)


# Long lists


def slow_list(pieces: int, pause: float, *, breaks: bool = False) -> Fault:
    """The whole list, in pieces with pauses; or, with `breaks`, only the most of it."""

    async def fault(server: FaultServer, call: Call, wire: Wire) -> None:
        items = list(server.objects.values())
        body = json.dumps({"metadata": {"resourceVersion": str(server.version)}, "items": items}).encode()
        await wire.head(200, content_length=str(len(body)), content_type="application/json")
        size = -(-len(body) // pieces)
        for at in range(0, len(body) - size if breaks else len(body), size):
            await asyncio.sleep(pause)
            await wire.raw(body[at : at + size])
        if breaks:
            wire.cut()

    return fault


async def behaves(server: FaultServer, call: Call, wire: Wire) -> None:
    await server.behave(call, wire)


async def expires(server: FaultServer, call: Call, wire: Wire) -> None:
    await wire.answer(410, status(410, "Expired", "the provided continue parameter is too old"))


def test_a_list_in_one_piece_that_takes_minutes_arrives() -> None:
    async def scenario(m: Mirror) -> None:
        for number in range(1200):
            m.server.put(f"t{number}")
        m.server.lists.extend([behaves, expires, slow_list(40, 15.0)])
        await m.informer.wait_synced()
        assert m.is_in_step()
        assert m.server.count("list") == 3
        assert m.clock.monotonic() > 600

    mirror(scenario, streaming=False)


def test_after_a_list_in_one_piece_that_broke_pages_are_read_again() -> None:
    async def scenario(m: Mirror) -> None:
        for number in range(1200):
            m.server.put(f"t{number}")
        # A GET whose connection breaks in the first 30 s is sent again by the client.
        m.server.lists.extend([behaves, expires, slow_list(4, 20.0, breaks=True)])
        await m.informer.wait_synced()
        assert m.is_in_step()
        lists = [
            (call.params.get("limit"), call.params.get("continue")) for call in m.server.calls if call.role == "list"
        ]
        assert lists == [
            ("500", None), ("500", "500"), (None, None), ("500", None), ("500", "500"), ("500", "1000"),
        ]  # fmt: skip

    mirror(scenario, streaming=False)


def test_an_initial_stream_that_takes_minutes_arrives() -> None:
    async def scenario(m: Mirror) -> None:
        for number in range(50):
            m.server.put(f"t{number}")

        async def slow(server: FaultServer, call: Call, wire: Wire) -> None:
            await wire.open()
            for obj in list(server.objects.values()):
                await asyncio.sleep(5)
                await wire.event("ADDED", obj)
            await wire.event("BOOKMARK", bookmark(server.version, initial_end=True))
            await server.follow(server.version, wire)

        m.server.streams.append(slow)
        await m.informer.wait_synced()
        assert m.is_in_step()
        assert (m.server.count("stream"), m.server.count("list")) == (1, 0)
        assert m.clock.monotonic() > 250

    mirror(scenario)


@pytest.mark.parametrize("where", ["changed", "replace", "known", "advanced"])
def test_a_fault_of_our_own_is_told_with_its_traceback_and_everything_is_listed_again(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is lost by it, the other kinds go on, and the server is not stormed."""

    async def scenario(m: Mirror) -> None:
        await m.informer.wait_synced()
        broken = True
        works = getattr(m.informer, where)

        def fault(*args: Any) -> Any:
            if broken:
                raise ZeroDivisionError("a bug")
            return works(*args)

        monkeypatch.setattr(m.informer, where, fault)
        calls = len(m.server.calls)
        m.server.put("b")
        if where in ("replace", "known"):  # what a new list needs
            m.server.compacted = m.server.version
            await _cut(m)
            await asyncio.sleep(300)
            assert not m.informer.synced
        else:  # a new list mends it at once
            await m.until(lambda: len(m.server.calls) > calls)
            await m.in_step(60)
        assert 1 <= len(m.server.calls) - calls < 100
        faults = [record for record in caplog.records if "a fault of kopylite" in record.getMessage()]
        assert [record.levelname for record in faults if record.levelno > logging.DEBUG] == ["ERROR"]
        assert faults[0].exc_info is not None
        broken = False
        await m.in_step(120)
        assert m.names == {"a", "b"}
        await m.until(lambda: m.informer.synced)

    mirror(scenario)
