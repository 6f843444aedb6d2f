from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest

from kopylite.errors import (
    AlreadyExists,
    ConnectionFailed,
    Forbidden,
    KindNotFound,
    KopyliteError,
    NamespaceNotFound,
    NamespaceTerminating,
    NotFound,
    RequestTimeout,
    StreamBroken,
)
from kopylite.objects import Unstructured
from kopylite.reconcile import EventRecorder
from kopylite.reconcile.recorder import BURST, MAX_SERIES, SERIES_INTERVAL, SERIES_LIFE, TRIES
from kopylite.testing.clock import VirtualClock


def widget(name: str = "a", uid: str = "uid-a", version: str = "1", namespace: str = "default") -> Unstructured:
    metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version}
    return Unstructured(apiVersion="example.com/v1", kind="Widget", metadata=metadata)


class FakeServer:
    """Keeps Events as a server would, refuses as told, and notes each request with its time."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.events: dict[str, Unstructured] = {}
        self.requests: list[tuple[str, float]] = []
        self.refusals: list[KopyliteError] = []

    async def create(self, obj: Unstructured) -> Unstructured:
        self._request("create")
        if obj.name in self.events:
            raise AlreadyExists("there is one")
        self.events[obj.name] = Unstructured(obj)
        return obj

    async def patch(self, kind: Any, key: Any, patch: dict[str, Any]) -> Unstructured:
        self._request("patch")
        if key.name not in self.events:
            raise NotFound("expired")
        self.events[key.name].update(patch)
        return self.events[key.name]

    def _request(self, verb: str) -> None:
        self.requests.append((verb, self.clock.monotonic()))
        if self.refusals:
            raise self.refusals.pop(0)

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.requests]

    def only(self) -> Unstructured:
        (event,) = self.events.values()
        return event


class Bench:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.server = FakeServer(self.clock)
        self.recorder = EventRecorder(
            cast("Any", self.server), controller="example.com/widget", instance="pod-0", clock=self.clock
        )

    def play(self, script: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self.recorder.run)
                await script()
                await anyio.sleep(1.0)
                group.cancel_scope.cancel()
            await self.recorder.flush()

        self.clock.run(main)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_event_says_who_what_why_and_about_which_object_without_its_version(bench: Bench) -> None:
    async def script() -> None:
        bench.recorder.event(
            widget(), "Made", "made it", type="Warning", action="Create", related=widget("child", "uid-child")
        )

    bench.play(script)
    event = bench.server.only()
    assert event.name.startswith("a.")
    assert event.namespace == "default"
    assert event["regarding"] == {
        "apiVersion": "example.com/v1", "kind": "Widget", "namespace": "default", "name": "a", "uid": "uid-a",
    }  # fmt: skip
    assert event["related"]["name"] == "child"
    assert {name: event[name] for name in ("type", "reason", "action", "note")} == {
        "type": "Warning", "reason": "Made", "action": "Create", "note": "made it",
    }  # fmt: skip
    assert (event["reportingController"], event["reportingInstance"]) == ("example.com/widget", "pod-0")
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"
    assert "series" not in event


def test_long_words_are_cut_and_an_unfit_name_is_replaced(bench: Bench) -> None:
    async def script() -> None:
        bench.recorder.event(widget("system:node", namespace=""), "R" * 500, "n" * 5000)

    bench.play(script)
    event = bench.server.only()
    assert (len(event["reason"]), len(event["note"])) == (128, 1024)
    assert ":" not in event.name
    assert event.namespace == "default"


@pytest.mark.parametrize("text", ["é" * 900, "日本" * 700, "a" + "\U0001f600" * 400, "\ud800" * 2000, "a" * 1024])
def test_words_are_cut_by_bytes_and_in_whole_characters(bench: Bench, text: str) -> None:
    async def script() -> None:
        bench.recorder.event(widget(), text, text, action=text)

    bench.play(script)
    event = bench.server.only()
    for name, limit in (("reason", 128), ("action", 128), ("note", 1024)):
        size = len(event[name].encode())
        assert limit - 4 < size <= limit, "as much as fits, and no more"
        assert event[name] == text[: len(event[name])].replace("\ud800", "?")


def test_repeats_before_the_first_publication_are_counted(bench: Bench) -> None:
    async def script() -> None:
        for _ in range(1000):
            bench.recorder.event(widget(), "Waiting", "not ready")

    bench.play(script)
    assert bench.server.only()["series"]["count"] == 1000
    assert bench.server.verbs == ["create"]


def test_after_people_deleted_the_events_the_repeats_are_new_ones(bench: Bench) -> None:
    async def script() -> None:
        for _ in range(5):
            bench.recorder.event(widget(), "Waiting", "not ready")
            await anyio.sleep(1.0)
        bench.server.events.clear()
        for _ in range(20):
            bench.recorder.event(widget(), "Waiting", "not ready")
            await anyio.sleep(SERIES_INTERVAL / 2)
            bench.server.events.clear()
        bench.recorder.event(widget(), "Waiting", "not ready")
        bench.recorder.event(widget(), "Waiting", "not ready")
        await anyio.sleep(2 * SERIES_INTERVAL)

    bench.play(script)
    assert 2 <= bench.server.only()["series"]["count"] <= 5, "those that no deleted Event had counted"
    assert len({*bench.server.verbs}) == 2


@pytest.mark.parametrize(
    "refusals",
    [
        [NotFound("no"), NotFound("no")],
        [KindNotFound("no")],
        [AlreadyExists("there is one")],
        [RequestTimeout("late"), AlreadyExists("there is one")],
        [StreamBroken("cut")] * TRIES,
    ],
    ids=str,
)
def test_no_answer_ends_the_recorder(bench: Bench, refusals: list[KopyliteError]) -> None:
    bench.server.refusals = [*refusals]

    async def script() -> None:
        for _ in range(3):
            bench.recorder.event(widget(), "Waiting", "not ready")
            await anyio.sleep(SERIES_LIFE / 2)
        await anyio.sleep(60 * TRIES)
        bench.recorder.event(widget(), "Fresh", "still at work")

    bench.play(script)
    assert "Fresh" in [event["reason"] for event in bench.server.events.values()]


def test_an_event_whose_answer_was_lost_is_published_once_with_its_count(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    create = bench.server.create

    async def lossy(obj: Unstructured) -> Unstructured:
        await create(obj)
        raise StreamBroken("cut")

    async def script() -> None:
        bench.server.create = lossy  # type: ignore[method-assign]
        bench.recorder.event(widget(), "Waiting", "not ready")
        await anyio.sleep(1.0)
        bench.server.create = create  # type: ignore[method-assign]
        bench.recorder.event(widget(), "Waiting", "not ready")
        await anyio.sleep(SERIES_INTERVAL)

    bench.play(script)
    assert bench.server.only()["series"]["count"] == 2
    assert caplog.text == ""


def test_repeats_about_a_changing_object_are_one_event_with_a_count(bench: Bench) -> None:
    async def script() -> None:
        for second in range(200):
            bench.recorder.event(widget(version=str(second)), "Waiting", "not ready")
            await anyio.sleep(1.0)

    bench.play(script)
    assert bench.server.verbs[:2] == ["create", "patch"]
    moments = [moment for _, moment in bench.server.requests]
    assert moments[:2] == [0.0, 1.0]
    assert moments[2:-1] == pytest.approx([1.0 + SERIES_INTERVAL * n for n in range(1, len(moments) - 2)])
    assert len(moments) == 6
    assert bench.server.only()["series"]["count"] == 200  # the last ones by flush()


def test_other_words_are_another_event_and_a_series_that_paused_begins_again(bench: Bench) -> None:
    async def script() -> None:
        bench.recorder.event(widget(), "Waiting", "for one")
        bench.recorder.event(widget(), "Waiting", "for two")
        await anyio.sleep(SERIES_LIFE + 1)
        bench.recorder.event(widget(), "Waiting", "for one")

    bench.play(script)
    assert bench.server.verbs == ["create"] * 3


def test_one_object_cannot_flood_the_server_and_does_not_silence_another(bench: Bench) -> None:
    async def script() -> None:
        for number in range(1000):
            bench.recorder.event(widget(), "Noise", f"number {number}")
        bench.recorder.event(widget("b", "uid-b"), "Signal", "heard")
        await anyio.sleep(300.0)
        bench.recorder.event(widget(), "Noise", "later")

    bench.play(script)
    assert len(bench.server.events) == BURST + 2


def test_a_lost_connection_is_tried_again_and_given_up_in_the_end(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.refusals = [ConnectionFailed("refused") for _ in range(TRIES + 2)]

    async def script() -> None:
        bench.recorder.event(widget(), "Lost", "no server")
        await anyio.sleep(1000.0)
        bench.recorder.event(widget(), "Found", "after two more tries")
        await anyio.sleep(100.0)

    bench.play(script)
    assert len(bench.server.requests) == TRIES + 3
    assert bench.server.only()["reason"] == "Found"
    pauses = [
        later - earlier
        for (_, earlier), (_, later) in zip(bench.server.requests, bench.server.requests[1:TRIES], strict=False)
    ]
    assert all(7.5 <= pause <= 12.5 for pause in pauses)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_refusal_is_final_and_says_which_right_is_missing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.server.refusals = [Forbidden("no")]

    async def script() -> None:
        bench.recorder.event(widget(), "Made", "made it")
        await anyio.sleep(1000.0)

    bench.play(script)
    assert bench.server.verbs == ["create"]
    assert "create and patch events of events.k8s.io" in caplog.text


def test_a_series_whose_event_expired_on_the_server_begins_again(bench: Bench) -> None:
    async def script() -> None:
        bench.recorder.event(widget(), "Waiting", "not ready")
        await anyio.sleep(1.0)
        bench.server.events.clear()
        for _ in range(2):
            bench.recorder.event(widget(), "Waiting", "not ready")
            await anyio.sleep(1.0)

    bench.play(script)
    assert bench.server.verbs == ["create", "patch", "create", "patch"]
    assert bench.server.only()["series"]["count"] == 2, "those since"


def test_memory_is_bounded_when_the_server_is_away_and_when_it_is_not(bench: Bench) -> None:
    for number in range(MAX_SERIES + 10):
        bench.recorder.event(widget(f"w{number}", f"uid-{number}"), "Made", "made it")
    assert len(bench.recorder._pending) == len(bench.recorder._series) == MAX_SERIES

    async def script() -> None:
        await anyio.sleep(1.0)
        bench.recorder.event(widget("fresh", "uid-fresh"), "Made", "made it")

    bench.play(script)
    assert len(bench.server.events) == MAX_SERIES + 1
    assert len(bench.recorder._series) == len(bench.recorder._buckets) == MAX_SERIES


@pytest.mark.parametrize(
    "refusal",
    [
        NamespaceTerminating("no"),
        NamespaceNotFound("no"),
    ],
)
def test_nobody_misses_the_events_of_a_namespace_that_goes(
    bench: Bench, refusal: KopyliteError, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.refusals = [refusal]

    async def script() -> None:
        bench.recorder.event(widget(), "Lost", "note")

    bench.play(script)
    assert bench.server.verbs == ["create"]
    assert caplog.text == ""


def test_events_that_are_all_refused_for_one_reason_are_one_line_and_a_number(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.refusals = [Forbidden(f'events "a{number}.17" is forbidden: no') for number in range(100)]

    async def script() -> None:
        for number in range(100):
            bench.recorder.event(widget(f"a{number}", f"uid-{number}"), "Made", "made it")

    bench.play(script)
    assert len(bench.server.requests) == 100
    assert len(caplog.messages) == 2
    assert "; 99 more times in " in caplog.messages[1]
