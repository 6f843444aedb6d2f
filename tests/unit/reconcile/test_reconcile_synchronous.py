"""What a plain def has at hand is what an async one has; threads and the event loop are in test_reconcile_threads."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from kopylite.client import Client
from kopylite.objects import Shard, Unstructured
from kopylite.reconcile import Context, Environment, Request, SyncContext
from kopylite.reconcile.synchronous import in_threads
from kopylite.reconcile.threads import Threads
from kopylite.testing.clock import VirtualClock

NAME = "example.com/bucket"
# Of kopylite's own use, for the async context that each synchronous one has inside.
INTERNAL = {"causes", "fields", "forgotten", "is_about", "priority", "step"}


class FakeClient:
    """Notes what would be written, and by which thread."""

    def __init__(self) -> None:
        self.live = self
        self.calls: list[tuple[str, int]] = []

    def note(self, call: str) -> None:
        self.calls.append((call, threading.get_ident()))

    async def add_finalizer(self, obj: Any, name: str) -> Any:
        self.note(f"add {name}")
        return obj

    async def remove_finalizer(self, obj: Any, *names: str) -> Any:
        self.note(f"remove {' '.join(names)}")
        return obj


class FakeRecorder:
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def event(self, regarding: Any, reason: str, note: str, **options: Any) -> None:
        self.events.append((regarding, reason, note, options, threading.get_ident()))


def widget(*finalizers: str, deleted: bool = False) -> Unstructured:
    metadata: dict[str, Any] = {"name": "a", "namespace": "default", "finalizers": list(finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return Unstructured(apiVersion="example.com/v1", kind="Widget", metadata=metadata)


async def in_thread(use: Callable[[SyncContext], Any], **options: Any) -> Any:
    """What a function makes of its SyncContext, as a reconcile that is a plain def."""
    client = options.pop("client", FakeClient())
    environment = Environment("widget", cast("Client", client), clock=VirtualClock(), **options)
    context, threads = Context(environment, Request("default", "a"), ("created",)), Threads("widget")
    found: list[Any] = []

    def reconcile(ctx: SyncContext, request: Request) -> None:
        assert request == context.request
        found.append(use(ctx))

    try:
        await in_threads(reconcile, threads)(context, context.request)
    finally:
        threads.close()
    return found[0]


def test_it_has_all_that_the_context_of_an_async_run_has_with_the_same_arguments() -> None:
    public = {name for name in dir(Context) if not name.startswith("_")} - INTERNAL
    assert public <= set(dir(SyncContext))
    for name in public:
        mine, theirs = getattr(SyncContext, name), getattr(Context, name)
        assert isinstance(mine, property) is isinstance(theirs, property)
        if inspect.isfunction(theirs):
            assert inspect.signature(mine) == inspect.signature(theirs), name


async def test_it_says_which_run_it_is_of() -> None:
    def use(ctx: SyncContext) -> tuple[Any, ...]:
        assert ctx.reconcile_id == ctx.reconcile_id
        return ctx.controller, ctx.shard, ctx.request, ctx.reasons, ctx.now(), repr(ctx)

    now = datetime(2026, 1, 1, tzinfo=UTC)
    told = await in_thread(use, shard=Shard(3, 4))
    assert told[:5] == ("widget", 3, Request("default", "a"), ("created",), now)
    assert "widget default/a" in told[5]
    assert (await in_thread(use))[1] is None


async def test_an_event_is_published_by_the_event_loop_and_where_nobody_publishes_none_is() -> None:
    recorder = FakeRecorder()

    def use(ctx: SyncContext) -> None:
        ctx.event(widget(), "Made", "it is there", type="Warning", action="Make")

    await in_thread(use, recorder=recorder)
    [event] = recorder.events
    options = {"type": "Warning", "action": "Make", "related": None}
    assert event == (widget(), "Made", "it is there", options, threading.get_ident())
    await in_thread(use)


@pytest.mark.parametrize(
    ("obj", "gone", "calls"),
    [
        (widget(), False, [f"add {NAME}"]),
        (widget(NAME), False, []),
        (widget(NAME, deleted=True), True, ["cleanup", f"remove {NAME}"]),
        (widget("other", deleted=True), True, []),
        (widget("old", deleted=True), True, ["cleanup", f"remove {NAME} old"]),
    ],
)
async def test_a_finalizer_is_kept_and_released_as_in_an_async_run_with_a_plain_cleanup(
    obj: Unstructured, gone: bool, calls: list[str]
) -> None:
    client, loop = FakeClient(), threading.get_ident()

    def cleanup(ctx: SyncContext, found: Unstructured) -> None:
        assert found is obj
        client.note("cleanup")

    assert await in_thread(lambda ctx: ctx.finalize(obj, NAME, cleanup, replaces=["old"]), client=client) is gone
    assert [call for call, _ in client.calls] == calls
    assert all((thread == loop) is (call != "cleanup") for call, thread in client.calls)


async def test_a_cleanup_that_fails_leaves_the_finalizer() -> None:
    client = FakeClient()

    def cleanup(ctx: SyncContext, found: Unstructured) -> None:
        raise RuntimeError("bucket not empty")

    with pytest.raises(RuntimeError, match="bucket not empty"):
        await in_thread(lambda ctx: ctx.finalize(widget(NAME, deleted=True), NAME, cleanup), client=client)
    assert client.calls == []


async def test_an_async_function_is_awaited_in_the_event_loop_with_its_arguments_result_and_error() -> None:
    async def add(a: int, *, b: int) -> tuple[int, int]:
        if b < 0:
            raise ValueError("less than none")
        return a + b, threading.get_ident()

    def use(ctx: SyncContext) -> Any:
        with pytest.raises(ValueError, match="less than none"):
            ctx.call(add, 1, b=-1)
        return ctx.call(add, 1, b=2)

    assert await in_thread(use) == (3, threading.get_ident())


def test_what_is_called_in_a_thread_goes_by_the_name_of_the_users_function() -> None:
    def sync_widgets(ctx: SyncContext, request: Request) -> None:
        """Its own words."""

    made = in_threads(sync_widgets, Threads("widget"))
    assert (made.__name__, made.__doc__) == ("sync_widgets", "Its own words.")
    assert inspect.iscoroutinefunction(made)
