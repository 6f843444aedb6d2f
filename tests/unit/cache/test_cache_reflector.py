"""One collection and a server of a script, in virtual time; on real connections: tests/chaos/test_cache_faults.py."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest

from kopylite.cache.record import Record, RecordDecoder
from kopylite.cache.reflector import Reflector
from kopylite.cache.steps import Replacement
from kopylite.cache.watchstate import WatchState
from kopylite.client.listwatch import ListWatch
from kopylite.errors import ConnectionFailed, Expired, Forbidden, KindNotFound
from kopylite.objects import Kind
from kopylite.observers import InformerObserver
from kopylite.testing import VirtualClock

THING = Kind("example.com/v1", "Thing")
# A page, the pieces of a watch, an error, or how long the next answer takes.
Answer = bytes | list[bytes | float | Exception] | Exception | float


def wire(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}}


def page(version: int, *names: str, more: str = "") -> bytes:
    items = [wire(name, version) for name in names]
    return json.dumps({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}).encode()


def event(word: str, name: str, version: int) -> bytes:
    return json.dumps({"type": word, "object": {"kind": "Thing", **wire(name, version)}}).encode() + b"\n"


def bookmark(version: int, **annotations: str) -> bytes:
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return json.dumps({"type": "BOOKMARK", "object": {"kind": "Thing", "metadata": metadata}}).encode() + b"\n"


MARK = {"k8s.io/initial-events-end": "true"}


@dataclass
class World(InformerObserver):
    """The server, which gives one answer after the other, and whoever is told; it ends with the answers."""

    script: list[Answer]
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    objects: dict[str, str] = field(default_factory=dict)
    clock: VirtualClock = field(default_factory=VirtualClock)
    kind_at: float = 0.0
    reasons: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    slowness: float = 0.0

    async def answer(self) -> Any:
        if not self.script:
            self.scope.cancel()
            await anyio.sleep_forever()
        answer = self.script.pop(0)
        while isinstance(answer, float):
            await self.clock.sleep(answer)
            answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def list_page(self, *, limit: int = 500, continue_token: str = "") -> bytes:
        self.asked.append(f"list {limit} {continue_token}".strip())
        found: bytes = await self.answer()
        return found

    @asynccontextmanager
    async def watch(self, *, resource_version: str, **options: Any) -> AsyncIterator[Any]:
        self.asked.append(f"watch {resource_version}")
        self.stream = await self.answer()
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.stream:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, float):
                await self.clock.sleep(piece)
            else:
                yield piece

    async def locate(self, again: bool) -> ListWatch:
        self.asked.append(f"kind {again}")
        if self.clock.monotonic() < self.kind_at:
            raise KindNotFound("Thing is not served")
        return cast("ListWatch", self)

    def wants(self, record: Record) -> bool:
        return not record.name.startswith("other")

    def known(self, record: Record) -> Record:
        return record

    def changed(self, word: str, record: Record) -> None:
        self.told.append(f"{word} {record.name}")
        if word == "DELETED":
            self.objects.pop(record.name, None)
        else:
            self.objects[record.name] = record.resource_version

    def advanced(self, version: str) -> None:
        self.told.append(f"at {version}")

    async def replace(self, snapshot: Replacement) -> None:
        await self.clock.sleep(self.slowness)
        found = [record for names in snapshot.records.values() for record in names.values()]
        self.objects = {record.name: record.resource_version for record in found}
        self.told.append(f"{'first' if snapshot.initial else 'all'} {sorted(self.objects)}")

    def event(self, kind: str) -> None:
        self.counted.append(kind)

    def relisted(self) -> None:
        self.counted.append("list")

    def watch_failed(self, reason: str) -> None:
        self.reasons.append(reason)

    def failed(self) -> None:
        self.told.append("failed")

    def play(self, *, streaming: bool = False, **options: Any) -> World:
        state = WatchState(streaming=streaming)
        reflector = Reflector("things", state, self.locate, RecordDecoder(THING), self, self.clock, self, **options)

        async def main() -> None:
            with anyio.CancelScope() as self.scope:
                await reflector.run()

        self.clock.run(main)
        return self


def test_a_list_in_pages_and_then_each_event_in_order_with_its_version() -> None:
    chunks: list[bytes | float | Exception] = [event("ADDED", "c", 8)[:10], event("ADDED", "c", 8)[10:]]
    chunks.append(event("MODIFIED", "a", 9) + event("DELETED", "b", 10))
    world = World([page(7, "a", more="t"), page(7, "b"), chunks]).play()
    assert world.asked[1:4] == ["list 500", "list 500 t", "watch 7"]
    assert world.told == ["first ['a', 'b']", "ADDED c", "at 8", "MODIFIED a", "at 9", "DELETED b", "at 10"]
    assert world.counted == ["list", "added", "modified", "deleted"], "a list of two pages is one"


def test_what_the_sink_does_not_want_is_left_out_of_a_list() -> None:
    assert World([page(7, "a", "other-b")]).play().objects == {"a": "7"}


def test_a_streamed_first_state_is_whole_at_its_marker_and_events_go_on_behind_it() -> None:
    first = [event("ADDED", name, version) for version, name in enumerate(["other-x", "a", "other-y", "b", "c"], 1)]
    first += [event("DELETED", "c", 8), bookmark(9, **MARK)]
    behind = event("MODIFIED", "a", 10) + event("MODIFIED", "other-x", 11) + bookmark(12)
    world = World([[b"".join(first) + behind]]).play(streaming=True)
    assert world.told == ["first ['a', 'b']", "MODIFIED a", "at 10", "MODIFIED other-x", "at 11", "at 12"]
    assert world.objects["b"] == "4"
    assert world.counted == ["list", "modified", "modified", "bookmark"]
    assert world.asked[1] == "watch "


def test_a_kind_that_comes_late_is_waited_for_and_listed() -> None:
    world = World([page(7, "a")], kind_at=100.0).play()
    assert world.asked[-2:] == ["list 500", "watch 7"]
    assert world.objects == {"a": "7"}
    assert 10 < len([one for one in world.asked if one.startswith("kind")]) < 30


def test_a_watch_that_ends_well_is_opened_again_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    world = World([page(7), [event("ADDED", "a", 8), 60.0], [event("ADDED", "b", 9), 60.0]]).play()
    assert world.asked[1:] == ["list 500", "watch 7", "watch 8", "watch 9"]
    assert "failed" not in world.told
    assert not caplog.records


def test_a_version_that_expired_is_listed_anew_and_what_went_meanwhile_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    world = World([page(7, "a", "b"), Expired("too old"), page(20, "b", "c")]).play()
    assert world.objects == {"b": "20", "c": "20"}
    assert world.asked[-1] == "watch 20"
    assert world.told == ["first ['a', 'b']", "failed", "all ['b', 'c']"]
    [record] = caplog.records
    assert record.levelname == "INFO"


def test_an_outage_is_told_once_with_the_collections_name(caplog: pytest.LogCaptureFixture) -> None:
    world = World([*[ConnectionFailed("refused")] * 9, page(7, "a")]).play()
    assert world.objects == {"a": "7"}
    assert world.told.count("failed") == 9
    assert world.reasons == ["ConnectionFailed"] * 9
    assert [record.getMessage() for record in caplog.records] == ["things: refused; trying again"]


def test_what_somebody_has_told_already_is_not_told_again(caplog: pytest.LogCaptureFixture) -> None:
    World([ConnectionFailed("refused"), page(7)]).play(is_news=lambda error: False)
    assert not caplog.records


def test_the_same_trouble_is_told_again_after_a_watch_that_worked(caplog: pytest.LogCaptureFixture) -> None:
    worked: list[bytes | float | Exception] = [event("ADDED", "a", 8), 60.0]
    World([Forbidden("no"), Forbidden("no"), page(7), worked, Forbidden("no"), Forbidden("no"), worked]).play()
    assert [record.getMessage() for record in caplog.records] == ["things: 403 Forbidden: no; trying again"] * 2


def test_a_watch_that_ends_at_once_and_one_that_falls_silent_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    world = World([page(7), [], [bookmark(8), 5000.0], page(8), [5000.0], page(8)]).play()
    assert world.reasons == ["ClosedEarly", "Silence", "Silence"]
    assert world.told == ["first []", "failed", "at 8", "failed", "failed"]
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "things: the server ended the stream before the first event, at once",
        "things: no bytes for 104 s",  # it is looked at every 5 s
    ]
    assert world.clock.monotonic() < 300, "each silence ends"


def test_silence_counts_from_when_the_watch_is_asked_for() -> None:
    world = World([200.0, page(7, "a"), 20.0, [event("ADDED", "b", 8), 60.0]]).play()
    assert world.told == ["first ['a']", "ADDED b", "at 8"]


def test_the_time_that_a_first_state_takes_to_be_stored_is_no_silence() -> None:
    world = World([[bookmark(7, **MARK), 20.0, event("ADDED", "b", 8)]], slowness=500.0).play(streaming=True)
    assert world.told == ["first []", "ADDED b", "at 8"]
    assert "list 1" not in world.asked


def test_a_line_that_is_cut_is_no_event() -> None:
    world = World([page(7), [event("ADDED", "a", 8)[:-9], 0.0], page(7), [event("ADDED", "a", 8), 60.0]]).play()
    assert world.told == ["first []", "failed", "ADDED a", "at 8"]
    assert world.asked[2:5] == ["watch 7", "list 1", "watch 7"]


def test_a_fault_of_our_own_is_told_with_its_traceback_and_everything_is_listed_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World([RuntimeError("a bug"), page(7, "a")]).play()
    assert world.objects == {"a": "7"}
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info
    assert "this is a fault of kopylite" in record.getMessage()
    assert world.told == ["failed", "first ['a']"]
    assert world.reasons[0] == "RuntimeError"


def test_a_silent_watch_at_a_server_that_has_nothing_new_is_left_open() -> None:
    world = World([page(7, "a"), [5000.0], *[page(7)] * 9]).play()
    assert world.asked[2:] == ["watch 7", *["list 1"] * 10]
    assert "failed" not in world.told


def test_a_silent_watch_at_a_server_that_went_back_is_given_up_and_all_is_listed() -> None:
    world = World([page(7, "a"), [5000.0], page(3), page(3, "b")]).play()
    assert world.objects == {"b": "3"}
    assert world.asked[-1] == "watch 3"
