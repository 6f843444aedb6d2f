from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from kopylite.controller import ControllerSpec
from kopylite.controller.outcome import UNREACHED_RETRY, settle_error, settle_result
from kopylite.controller.reasons import Reasons
from kopylite.controller.settler import EVENT_BURST, EVENTS_PER_SECOND, WAKE_SECONDS, Settler
from kopylite.errors import (
    ApplyConflict,
    Conflict,
    ConnectionFailed,
    DecodeError,
    Forbidden,
    ForgottenAwait,
    KindNotFound,
    KopyliteError,
    NamespaceTerminating,
    NotFound,
    RequestTimeout,
    ServiceUnavailable,
    StreamBroken,
    TerminalError,
    UsageError,
)
from kopylite.objects import CustomResource, Kind, Unstructured, adapter_of
from kopylite.observers import ReconcileObserver
from kopylite.reconcile import Context, Environment, EventRecorder, Request, Result, Retry
from kopylite.testing.clock import VirtualClock
from kopylite.workqueue import WorkQueue

if TYPE_CHECKING:
    from kopylite.client import Client


async def nothing(ctx: Context, request: Request) -> None:
    return None


def forbidden(verb: str) -> Forbidden:
    return Forbidden(f'User "bob" cannot {verb} resource "deployments" in API group "apps" in the namespace "shop"')


def test_one_cause_over_many_keys_is_one_line_and_each_refusal_is_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    refusals: list[Forbidden] = []
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver(), on_forbidden=refusals.append)
    environment = Environment("widget", cast("Client", None))
    with caplog.at_level(logging.INFO):
        for number in range(20):
            for verb in ("create", "patch"):
                request, error = Request("shop", f"a{number}"), forbidden(verb)
                settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)
    assert len(refusals) == 40
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith("reconcile failed, next try in")
    assert "Forbidden: 403" not in caplog.messages[0]


def fail(*runs: tuple[str, Exception]) -> None:
    """Runs of one controller that fail one after the other: the name of each key, and its error."""
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    environment = Environment("widget", cast("Client", None))
    for name, error in runs:
        request = Request("shop", name)
        settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)


def test_what_is_refused_of_another_resource_or_with_another_verb_is_another_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(resource: str, verb: str, method: str, name: str) -> Forbidden:
        text = f'{resource} "{name}" is forbidden: User "bob" cannot {verb} resource "{resource}" in API group ""'
        return Forbidden(text, details={"kind": resource, "name": name}, request=f"{method} /api/v1/{name}")

    asked = (("secrets", "create", "POST"), ("configmaps", "create", "POST"), ("secrets", "patch", "PATCH"))
    fail(*(("a", refused(*each, name)) for each in asked for name in ("a", "a-7d9f")))
    assert len(caplog.messages) == 3


def test_what_was_not_told_of_each_run_is_told_as_a_number_and_at_the_latest_when_it_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(clock=clock), Reasons(), ReconcileObserver(), clock=clock)
    environment = Environment("widget", cast("Client", None), clock=clock)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(settler.report)
            for second in range(13):
                request, error = Request("shop", f"a{second % 2}"), KindNotFound("is its CRD installed?")
                settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)
                await clock.sleep(1.0)
            tasks.cancel_scope.cancel()

    with caplog.at_level(logging.INFO):
        clock.run(main)
    first, second, last = caplog.messages
    assert first.startswith("reconcile failed, next try in")
    assert second.startswith("reconcile failed: KindNotFound: is its CRD installed?; ")
    assert "shop/a0" in second
    assert "shop/a1" in second
    assert "more times in" in last


def test_a_traceback_is_shown_once_for_each_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    environment = Environment("widget", cast("Client", None))

    def run(name: str, error: Exception | None) -> None:
        request = Request("shop", name)
        settlement = settle_result(None) if error is None else settle_error(error)
        settler.settle(Context(environment, request), request, 0, settlement, error, 0.1)

    def refused(host: str) -> OSError:
        try:
            raise OSError(f"{host} refuses")
        except OSError as error:
            return error

    with caplog.at_level(logging.DEBUG):
        for name, error in (("a", refused("db")), ("a", refused("db")), ("b", refused("db")), ("a", refused("mq"))):
            run(name, error)
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False, True]
    assert [record.levelname for record in caplog.records] == ["ERROR", "DEBUG", "DEBUG", "ERROR"]
    assert "db refuses; at " in caplog.messages[1]
    assert "in refused" in caplog.messages[1], "the short line still says where"


@pytest.mark.parametrize(("error", "causes"), [(UsageError, 1), (OSError, 2)])
def test_errors_of_our_own_are_one_cause_wherever_they_were_met_and_others_one_for_each_line(
    error: type[Exception], causes: int, caplog: pytest.LogCaptureFixture
) -> None:
    def met(elsewhere: bool) -> Exception:
        try:
            if elsewhere:
                raise error("no")
            raise error("no")
        except error as found:
            return found

    fail(*((name, met(elsewhere)) for elsewhere in (False, True) for name in ("a", "b")))
    assert len(caplog.messages) == causes


def test_refusals_of_one_text_are_one_cause_for_each_resource_group_and_verb(caplog: pytest.LogCaptureFixture) -> None:
    def refused(kind: str, group: str, verb: str) -> Forbidden:
        return Forbidden("not allowed", details={"kind": kind, "group": group}, request=f"{verb} /apis/things/a")

    first = "things", "apps.example.com", "GET"
    others = (("others", *first[1:]), ("things", "shops.example.com", "GET"), (*first[:2], "PUT"))
    fail(*(("a", refused(*each)) for each in (first, *others, first)))
    assert len(caplog.messages) == 4


def test_a_refusal_names_the_line_of_the_users_code_that_met_it(caplog: pytest.LogCaptureFixture) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    request = Request("shop", "a")
    try:
        Result(requeue_after=-1)
    except UsageError as error:
        context = Context(Environment("widget", cast("Client", None)), request)
        settler.settle(context, request, 0, settle_error(error), error, 0.1)
    [message] = caplog.messages
    assert re.search(
        r"UsageError: Result\(requeue_after=-1\): .*; at \S+test_controller_settler.py:\d+ in test_a_refusal", message
    )


def levels_of(error: KopyliteError, times: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The levels of the lines of a key that fails so often in a row."""
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing, max_retries=100)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    request = Request("shop", "a")
    context = Context(Environment("widget", cast("Client", None)), request)
    with caplog.at_level(logging.DEBUG):
        for number in range(times):
            settler.settle(context, request, 0, settle_error(error, number, 100), error, 0.1)
    return [record.levelname for record in caplog.records]


def test_a_write_to_what_is_gone_is_quiet_at_first_and_an_error_when_it_stays(caplog: pytest.LogCaptureFixture) -> None:
    error = NotFound('widgets "a" not found', request="PATCH /apis/example.com/v1/namespaces/shop/widgets/a/status")
    assert levels_of(error, 6, caplog) == ["DEBUG"] * 4 + ["ERROR", "DEBUG"]
    assert "what it writes to is not there" in caplog.messages[-1]


def test_what_is_on_its_way_out_gives_no_error_and_is_not_silent_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    error = NamespaceTerminating("unable to create new content in namespace shop because it is being terminated")
    levels = levels_of(error, 40, caplog)
    assert levels == ["DEBUG"] * 19 + ["WARNING"] + ["DEBUG"] * 20  # of the second one, `report` tells
    assert "next try in 30 s" in caplog.messages[0]


def test_a_conflict_of_an_apply_names_fields_managers_and_the_way_out(caplog: pytest.LogCaptureFixture) -> None:
    error = ApplyConflict('Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.a')
    assert levels_of(error, 2, caplog) == ["ERROR", "DEBUG"]
    assert '"kubectl" using v1: .data.a' in caplog.messages[0]
    assert "force=True" in caplog.messages[0]
    assert "keeps changing" not in caplog.messages[0]


class Events(EventRecorder):
    """Notes the Events."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def event(self, regarding: Any, reason: str, note: str, **words: Any) -> None:
        self.noted.append(f"{words['type']} {reason} {regarding.name}: {note}")


class Widget(CustomResource[dict[str, int], None], group="example.com", version="v1"):
    pass


def a_misfit(version: str, **metadata: Any) -> DecodeError:
    obj = {"metadata": {"namespace": "shop", "name": "a", "uid": "1", "resourceVersion": version, **metadata}}
    with pytest.raises(DecodeError) as caught:
        adapter_of(Widget).decode(json.dumps(obj | {"spec": {"password": "hunter2"}}).encode())
    return caught.value


class Misfits:
    """A controller whose runs meet objects that do not fit."""

    def __init__(self) -> None:
        spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
        self.settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
        self.events = Events()
        self.environment = Environment("widget", cast("Client", None), self.events)

    def meet(self, error: BaseException | None) -> None:
        request = Request("shop", "a")
        settlement = settle_result(None) if error is None else settle_error(error)
        self.settler.settle(Context(self.environment, request, ("x changed",)), request, 0, settlement, error, 0.1)


async def test_an_object_that_does_not_fit_is_logged_once_per_change_whatever_makes_it_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    misfits = Misfits()
    for error in (a_misfit("1"), a_misfit("1"), a_misfit("2"), a_misfit("2"), None, a_misfit("2")):
        misfits.meet(error)
    assert len(caplog.messages) == 3
    problem = "Widget shop/a does not fit its model: spec.password: Input should be a valid integer"
    assert all(problem in message for message in caplog.messages)


async def test_an_object_that_does_not_fit_gets_a_warning_that_names_the_field_and_no_value() -> None:
    misfits = Misfits()
    misfits.meet(ExceptionGroup("tasks", [a_misfit("1"), ValueError("bug")]))
    misfits.meet(ExceptionGroup("tasks", [a_misfit("1")]))
    problem = "Widget shop/a does not fit its model: spec.password: Input should be a valid integer"
    assert misfits.events.noted == [f"Warning InvalidObject a: {problem}"]


async def test_the_warning_says_what_holds_an_object_that_is_being_deleted() -> None:
    misfits = Misfits()
    misfits.meet(a_misfit("1", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.com/bucket"]))
    assert misfits.events.noted[0].endswith("(it is being deleted, and held by example.com/bucket)")


@pytest.mark.parametrize("error", [DecodeError("mine"), DecodeError("mine", Unstructured(spec={}))])
async def test_what_does_not_say_who_it_is_gets_no_event(error: DecodeError) -> None:
    misfits = Misfits()
    misfits.meet(error)
    assert misfits.events.noted == []


@pytest.mark.parametrize(
    ("error", "prompt"),
    [
        (ConnectionFailed("refused"), True),
        (RequestTimeout("no answer"), True),
        (ServiceUnavailable("starting"), True),
        (ExceptionGroup("both", [ConnectionFailed("refused"), StreamBroken("cut")]), True),
        (ExceptionGroup("both", [ConnectionFailed("refused"), ValueError("bug")]), False),
        (ValueError("bug"), False),
    ],
    ids=str,
)
def test_after_an_outage_a_key_runs_within_half_a_minute(error: Exception, prompt: bool) -> None:
    """That the server was away is not the key's fault: its back-off must not outlast the outage by minutes."""
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    clock = VirtualClock()
    queue: WorkQueue[Request] = WorkQueue(clock=clock)
    settler = Settler(spec, queue, Reasons(), ReconcileObserver(), clock=clock)
    context = Context(Environment("widget", cast("Client", None), clock=clock), Request("s", "a"))

    async def main() -> None:
        queue.add(Request("s", "a"))
        waits: list[float] = []
        for _ in range(20):
            began = clock.monotonic()
            request, priority = await queue.get()
            waits.append(clock.monotonic() - began)
            settler.settle(context, request, priority, settle_error(error), error, 0.1)
            queue.done(request)
        assert (max(waits) <= UNREACHED_RETRY) is prompt
        assert min(waits[-5:]) >= UNREACHED_RETRY / 2, "and not hot"

    clock.run(main)


def test_an_outage_uses_up_no_retries_leaves_no_back_off_behind_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """15 minutes without a server, 20 keys, and a text for each moment of it; then each key conflicts once."""
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing, max_retries=3)
    clock = VirtualClock()
    queue: WorkQueue[Request] = WorkQueue(clock=clock)
    settler = Settler(spec, queue, Reasons(), ReconcileObserver(), clock=clock)
    environment = Environment("widget", cast("Client", None), clock=clock)
    keys = [Request("s", f"a{number}") for number in range(20)]
    texts = [ConnectionFailed("refused"), RequestTimeout("no answer"), ExceptionGroup("all", [StreamBroken("reset")])]

    met: set[Request] = set()

    async def run(error: Exception) -> Request:
        request, priority = await queue.get()
        if request in met:  # its retry
            queue.done(request)
            return request
        settlement = settle_error(error, settler.errors(request), spec.max_retries)
        settler.settle(Context(environment, request), request, priority, settlement, error, 0.1)
        queue.done(request)
        return request

    async def main() -> None:
        for request in keys:
            queue.add(request)
        began, times = clock.monotonic(), 0
        while clock.monotonic() - began < 900:
            await run(texts[times % 3])
            times += 1
        assert set(settler.unreached) == set(keys)
        assert len(caplog.messages) == 1
        assert all(queue.failures(request) == 0 for request in keys)
        settler.server_reached()
        reached = clock.monotonic()
        while len(met) < len(keys):
            request = await run(Conflict("newer"))
            met.add(request)
            assert clock.monotonic() - reached <= WAKE_SECONDS
        assert not list(settler.unreached)
        assert len(caplog.messages) == 1, "no word of a conflict no. 35 in a row"

    with caplog.at_level(logging.INFO):
        clock.run(main)
    assert "the server was not reached" in caplog.messages[0]


def test_errors_before_an_outage_count_on_after_it() -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing, max_retries=2)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    request = Request("s", "a")
    for error in (ValueError("bug"), ConnectionFailed("refused"), ValueError("bug")):
        settlement = settle_error(error, settler.errors(request), spec.max_retries)
        settler.settle(Context(Environment("w", cast("Client", None)), request), request, 0, settlement, error, 0.1)
    assert settler.errors(request) == 2


class Published:
    """Stands for an EventRecorder: notes what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, regarding: Any, reason: str, note: str, **options: Any) -> None:
        self.events.append((regarding.name, reason, note))


def test_a_thousand_objects_that_fail_for_good_are_no_storm_of_events() -> None:
    clock, published = VirtualClock(), Published()
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)

    def find(request: Request) -> Unstructured | None:
        return None if request.name == "gone" else Unstructured(metadata={"name": request.name, "uid": "1"})

    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver(), clock=clock, find=find)
    environment = Environment("widget", cast("Client", None), cast("EventRecorder", published), clock=clock)

    def fail(name: str, text: str = "no") -> None:
        request, error = Request("shop", name), TerminalError(text)
        settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)

    async def main() -> None:
        fail("gone")
        for number in range(1000):
            fail(f"a{number}")
        assert len(published.events) == EVENT_BURST
        for _ in range(5):
            fail("a0")
        assert len(published.events) == EVENT_BURST + 5, "repeats are the recorder's to count"
        fail("a999")
        assert len(published.events) == EVENT_BURST + 5
        await clock.sleep(2 / EVENTS_PER_SECOND)
        fail("a999")
        assert published.events[-1][0] == "a999", "what was held back is told when there is room"

    clock.run(main)


class Sleeps(VirtualClock):
    """Knows how often somebody slept."""

    slept = 0

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        await super().sleep(seconds)


def test_where_nothing_fails_no_timer_is_kept_for_telling_of_it() -> None:
    clock = Sleeps()
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(clock=clock), Reasons(), ReconcileObserver(), clock=clock)
    environment, request = Environment("widget", cast("Client", None), clock=clock), Request("shop", "a")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(settler.report)
            for _ in range(50):
                settler.settle(Context(environment, request), request, 0, settle_result(None), None, 0.1)
                await anyio.sleep(60)
            assert clock.slept == 0
            error = forbidden("create")
            settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)
            await anyio.sleep(60)
            assert clock.slept > 0
            tasks.cancel_scope.cancel()

    clock.run(main)


@pytest.mark.parametrize("error", [None, ValueError("of what is gone")])
def test_what_a_run_comes_to_whose_namespace_was_left_is_only_of_interest_to_whoever_debugs(
    error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    finished: list[float] = []

    class Notes(ReconcileObserver):
        def finished(self, result: str, seconds: float) -> None:
            finished.append(seconds)

    settler = Settler(spec, WorkQueue(), Reasons(), Notes(), in_scope=lambda request: False)
    request = Request("shop", "a")
    settlement = settle_error(error) if error is not None else settle_result(None)
    with caplog.at_level(logging.DEBUG, logger="kopylite.controller"):
        settler.settle(
            Context(Environment("widget", cast("Client", None)), request), request, 0, settlement, error, 0.1
        )
    [record] = caplog.records
    assert record.levelno == logging.DEBUG
    assert "its namespace is not in scope any more" in record.message
    assert ("ValueError: of what is gone" in record.message) is (error is not None)
    assert finished == [0.1], "it counts all the same"


def test_the_runs_that_failed_the_slowest_and_their_number_are_known_until_a_key_is_dropped() -> None:
    clock, a, b = VirtualClock(), Request("gone", "a"), Request("shop", "b")
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing, max_retries=5)
    settler = Settler(spec, WorkQueue(clock=clock), Reasons(), ReconcileObserver(), clock=clock)
    environment = Environment("widget", cast("Client", None), clock=clock)
    assert (settler.runs, settler.slowest, settler.errors(a)) == (0, (0.0, None), 0)

    async def main() -> None:
        for request, seconds in ((a, 0.2), (b, 0.5), (a, 0.1)):
            error = ValueError("no")
            settler.settle(Context(environment, request), request, 0, settle_error(error), error, seconds)
        assert (settler.runs, settler.slowest) == (3, (0.5, b))
        assert (settler.errors(a), settler.errors(b)) == (2, 1)
        settler.drop(lambda request: request.namespace == "gone")
        assert (settler.errors(a), settler.errors(b)) == (0, 1)
        assert settler._known == {b}

    clock.run(main)


def test_what_a_run_forgot_to_await_is_told_beside_its_own_error_and_not_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    environment, request = Environment("widget", cast("Client", None)), Request("shop", "a")
    for error, lines in ((ValueError("no"), 1), (ForgottenAwait("save(...) was called without await"), 0)):
        caplog.clear()
        settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
        context = Context(environment, request)
        context.forgotten.append("save(...) was called without await")
        settler.settle(context, request, 0, settle_error(error), error, 0.1)
        assert caplog.messages.count("save(...) was called without await") == lines


def test_many_runs_that_wait_for_the_same_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    environment = Environment("widget", cast("Client", None))
    with caplog.at_level(logging.INFO):
        for number in range(20):
            request, error = Request("shop", f"a{number}"), Retry("the database is not up yet", after=5)
            settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)
    assert caplog.messages == ["not yet, next try in 5.0 s: the database is not up yet"]
