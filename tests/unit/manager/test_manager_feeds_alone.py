"""What one Feed makes of the namespaces in scope: sources, what it finds in their caches, what it gives back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from kopylite import Context, Kind, Request, Unstructured, watch
from kopylite.boundary import ActiveCall
from kopylite.cache import Informer, SharedCache
from kopylite.cache.record import RecordDecoder
from kopylite.cache.steps import Replacement
from kopylite.client import Client, Resources, Transport
from kopylite.controller import Controller, ControllerSpec, Source, Watch, channel
from kopylite.controller.timers import Timer
from kopylite.manager.feeds import AppCaches, Feed, OwnKeys, ScopeGate
from kopylite.manager.namespaces import Follower, Namespaces
from kopylite.manager.scope import NamespaceRule
from kopylite.manager.wiring import CacheGate
from kopylite.objects import Shard
from kopylite.reconcile import Environment
from kopylite.testing.clock import VirtualClock
from kopylite.triggers import KindSource

# No two event loops differ here; informers want one.
pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])

CONFIG_MAP, SECRET = (Kind("v1", name, namespaced=True) for name in ("ConfigMap", "Secret"))
BORN = "2026-01-01T00:00:00Z"


async def nothing(ctx: Context, request: Request) -> None: ...


class Scope:
    """Namespaces that come and go when a test says so."""

    def __init__(self, rule: NamespaceRule, *now: str) -> None:
        self.rule = rule
        self.now = now
        self.opened = anyio.Event()
        self.followers: list[Follower] = []

    def follow(self, follower: Follower) -> None:
        self.followers.append(follower)

    def leave(self, follower: Follower) -> None:
        self.followers.remove(follower)

    def begin(self, namespace: str) -> None:
        for follower in self.followers:
            follower.begin(namespace)

    def end(self, namespace: str) -> None:
        for follower in reversed(self.followers):
            follower.end(namespace)


class Told:
    """A controller that only notes what it is told."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = [*sources]
        self.entered: dict[str, list[Source]] = {}
        self.left: dict[str, list[Source]] = {}
        self.pauses = SimpleNamespace(heard=lambda event: f"{event} is heard")

    def enter(self, namespace: str, sources: Sequence[Source]) -> None:
        self.entered[namespace] = [*sources]

    def leave(self, namespace: str, sources: Sequence[Source]) -> None:
        self.left[namespace] = [*sources]


class Ground:
    """What a Feed is made of; nothing of it runs."""

    def __init__(self, *now: str, live: bool = False, cached: Sequence[Watch] = (), shard: Shard | None = None) -> None:
        self.clock = VirtualClock()
        nowhere = cast("Transport", None)
        self.cache = SharedCache(nowhere, Resources(nowhere, self.clock), clock=self.clock)
        self.scope = Scope(NamespaceRule(globs=("*",)) if live else NamespaceRule(now), *now)
        namespaces = cast("Namespaces", self.scope)
        self.caches = AppCaches(cached, self.cache, namespaces, frozenset(), self.clock)
        self.environment = Environment("c", cast("Client", None), clock=self.clock, shard=shard)

    def feed(self, kind: Kind = CONFIG_MAP, **spec: Any) -> tuple[Feed, Told]:
        def build(feed: Feed, sources: Sequence[Source]) -> Controller:
            return cast("Controller", Told(sources))

        feed = Feed(
            ControllerSpec(name="c", kind=kind, reconcile=nothing, **spec), self.environment, self.caches, build
        )
        return feed, cast("Told", feed.controller)

    def mirrors(self) -> list[str]:
        return sorted(str(informer.scope) for informer in self.cache.informers)

    def put(self, kind: str, namespace: str, name: str, *, mirror: str | None = None, uid: str = "1") -> None:
        """Into the caches of that kind and namespace."""
        metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1", "creationTimestamp": BORN}
        for informer in self.cache.informers:
            scope = informer.scope
            if (scope.kind.kind, scope.namespace) == (kind, namespace if mirror is None else mirror):
                body = json.dumps({"metadata": metadata if namespace else metadata | {"namespace": None}}).encode()
                informer.changed("ADDED", RecordDecoder(scope.kind).record(body))


def described(sources: Sequence[Source]) -> list[str]:
    return [f"{type(source).__name__} {source.name}" for source in sources]


async def filled(informer: Informer) -> None:
    await informer.replace(Replacement({}, "1", initial=True))


async def test_a_controller_begins_with_the_sources_of_all_namespaces_in_scope_and_waits_for_the_apps_caches() -> None:
    ground = Ground("a", "b", cached=[watch(SECRET), watch(SECRET, namespace="fixed")])
    _, controller = ground.feed()
    assert described(controller.sources) == [
        "CacheGate Secret.v1 namespace fixed", "CacheGate Secret.v1 namespace a", "CacheGate Secret.v1 namespace b",
        "KindSource ConfigMap.v1 namespace a", "KindSource ConfigMap.v1 namespace b",
    ]  # fmt: skip


async def test_a_scope_that_moves_is_waited_for() -> None:
    ground = Ground(live=True)
    _, controller = ground.feed()
    assert described(controller.sources) == ["ScopeGate namespaces *"]
    assert not controller.sources[0].synced
    ground.scope.opened.set()
    assert controller.sources[0].synced


async def test_the_gate_of_a_scope_opens_with_it() -> None:
    scope = Scope(NamespaceRule(globs=("*",)))
    gate = ScopeGate(cast("Namespaces", scope))
    assert gate.namespace == "*"
    over: list[bool] = []

    async def wait() -> None:
        await gate.wait_synced()
        over.append(gate.synced)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert not over
        scope.opened.set()
    assert over == [True]


async def test_a_namespace_that_comes_is_entered_and_one_that_goes_is_let_go_and_no_other() -> None:
    ground = Ground("a", "b", live=True, cached=[watch(SECRET)])
    feed, controller = ground.feed()
    ground.scope.begin("c")
    assert described(controller.entered["c"]) == [
        "CacheGate Secret.v1 namespace c",
        "KindSource ConfigMap.v1 namespace c",
    ]
    ground.put("ConfigMap", "a", "x")
    ground.put("ConfigMap", "c", "x")
    for namespace in ("a", "c"):
        assert feed.find(Request(namespace, "x")) is not None
        ground.scope.end(namespace)
        assert described(controller.left[namespace]) == [
            f"CacheGate Secret.v1 namespace {namespace}", f"KindSource ConfigMap.v1 namespace {namespace}",
        ]  # fmt: skip
        assert feed.find(Request(namespace, "x")) is None
    assert controller.left["c"] == controller.entered["c"], "what it runs for the namespace"
    assert ground.mirrors() == ["ConfigMap.v1 namespace b", "Secret.v1 namespace b"]


async def test_a_feed_that_is_closed_holds_nothing_and_hears_of_no_namespace() -> None:
    ground = Ground("a", cached=[watch(SECRET)])
    feed, controller = ground.feed(watches=(watch(Kind("v1", "Service"), namespace="fixed"),))
    other, _ = ground.feed(kind=Kind("v1", "Pod"))
    feed.close()
    assert ground.mirrors() == ["Pod.v1 namespace a", "Secret.v1 namespace a"]
    ground.scope.begin("b")
    assert not controller.entered
    assert ground.mirrors() == [
        "Pod.v1 namespace a",
        "Pod.v1 namespace b",
        "Secret.v1 namespace a",
        "Secret.v1 namespace b",
    ]
    other.close()


async def test_an_app_holds_what_it_only_reads_in_each_namespace_in_scope_and_what_names_its_own_in_that_one() -> None:
    ground = Ground("a", cached=[watch(SECRET, labels="a=b"), watch(CONFIG_MAP, namespace="fixed")])
    fixed, secrets = "ConfigMap.v1 namespace fixed", [f"Secret.v1 namespace {name} a=b" for name in "ab"]
    ground.scope.begin("b")
    assert ground.mirrors() == [fixed, *secrets]
    assert [[gate.name for gate in ground.caches.gates(*which)] for which in ((), ("b",), ("a", "b"), ("c",))] == [
        [fixed], secrets[1:], secrets, []
    ]  # fmt: skip
    ground.scope.end("a")
    assert ground.mirrors() == [fixed, secrets[1]]
    assert not ground.caches.gates("a")


async def test_without_a_scope_one_cache_of_a_kind_is_for_all_namespaces() -> None:
    ground = Ground(cached=[watch(SECRET)])
    feed, _ = ground.feed()
    assert ground.mirrors() == ["ConfigMap.v1", "Secret.v1"]
    ground.put("ConfigMap", "anywhere", "x", mirror="")
    assert feed.find(Request("anywhere", "x")) is not None


async def test_an_object_is_found_in_the_caches_of_its_own_kind_only() -> None:
    ground = Ground("a", "b")
    feed, _ = ground.feed(watches=(watch(SECRET), watch(Kind("v1", "Service"), namespace="a")))
    ground.put("ConfigMap", "a", "x", uid="u")
    ground.put("Secret", "a", "y")
    ground.put("Service", "a", "y")
    assert feed.find(Request("a", "x")) == Unstructured(
        apiVersion="v1", kind="ConfigMap", metadata={"name": "x", "uid": "u", "namespace": "a"}
    )
    assert feed.find(Request("a", "y")) is None
    assert feed.find(Request("b", "x")) is None


async def test_an_object_in_no_namespace_is_found_though_nobody_knew_that_its_kind_has_none() -> None:
    ground = Ground("a", "b")
    feed, _ = ground.feed(kind=Kind("example.com/v1", "Region"))
    assert ground.mirrors() == ["Region.example.com/v1 namespace a", "Region.example.com/v1 namespace b"]
    ground.put("Region", "", "north", mirror="b")
    found = feed.find(Request("", "north"))
    assert found == Unstructured(apiVersion="example.com/v1", kind="Region", metadata={"name": "north", "uid": "1"}), (
        "and it names no namespace"
    )


async def test_a_timer_knows_when_the_object_was_made() -> None:
    ground = Ground("a")
    feed, _ = ground.feed(timer=Timer(every=60))
    ground.put("ConfigMap", "a", "x")
    found = feed.find(Request("a", "x"))
    assert found is not None
    assert found["metadata"]["creationTimestamp"] == BORN


async def test_changes_of_its_own_kind_are_told_to_the_pauses_wherever_they_are() -> None:
    ground = Ground("a", live=True)
    _, controller = ground.feed(watches=(watch(SECRET), watch(CONFIG_MAP, namespace="fixed")))
    ground.scope.begin("b")
    asks = {
        source.name: source.asks(cast("Any", source.name))
        for source in [*controller.sources, *controller.entered["b"]]
        if isinstance(source, KindSource) and source.asks is not None
    }
    assert asks == {f"ConfigMap.v1 namespace {name}": f"ConfigMap.v1 namespace {name} is heard" for name in "ab"}


SHARD = Shard(0, 2)
MINE = next(str(number) for number in range(100) if SHARD.holds(str(number)))


async def test_a_shard_drops_the_keys_of_others_and_those_of_a_namespace_that_went() -> None:
    ground = Ground("a", "b", shard=SHARD)
    _, controller = ground.feed(watches=(watch(SECRET),))
    ground.put("ConfigMap", "a", "x", uid=MINE)
    ground.put("ConfigMap", "b", "x", uid=MINE)
    [of_secrets] = [one for one in controller.sources if one.name == "Secret.v1 namespace b"]
    assert isinstance(of_secrets, KindSource)
    admits = of_secrets.admits
    assert admits is not None
    assert [admits(Request(namespace, "x")) for namespace in ("a", "b", "c")] == [True, True, False]
    ground.scope.end("a")
    assert [admits(Request(namespace, "x")) for namespace in ("a", "b", "c")] == [False, True, False]


async def keys(ctx: Context) -> AsyncIterator[Request]:
    for name in ("mine", "another's"):
        yield Request("a", name)


@pytest.mark.parametrize(("shard", "admitted"), [(None, ["mine", "another's"]), (SHARD, ["mine"])])
async def test_of_the_keys_from_outside_a_shard_runs_its_own(shard: Shard | None, admitted: list[str]) -> None:
    ground = Ground("a", shard=shard)
    _, controller = ground.feed(sources=[channel(keys)])
    ground.put("ConfigMap", "a", "mine", uid=MINE)
    source, enqueued = controller.sources[-1], list[str]()
    await source.run(lambda request, reason, priority: enqueued.append(request.name))
    assert enqueued == admitted


class Inner:
    """A source whose keys are sorted out."""

    name, namespace = "inner", "somewhere"

    def __init__(self) -> None:
        self.complete = anyio.Event()

    @property
    def synced(self) -> bool:
        return self.complete.is_set()

    async def wait_synced(self) -> None:
        await self.complete.wait()

    async def run(self, enqueue: Any) -> None: ...

    def active_calls(self, longer_than: float) -> list[ActiveCall]:
        return [ActiveCall("map", "inner", "a", longer_than)]


async def test_who_sorts_the_keys_of_a_source_out_is_otherwise_like_it() -> None:
    inner = Inner()
    outer = OwnKeys(cast("Source", inner), lambda request: True)
    assert (outer.name, outer.namespace, outer.synced) == ("inner", "somewhere", False)
    assert outer.active_calls(3.0) == inner.active_calls(3.0)
    done: list[bool] = []

    async def wait() -> None:
        await outer.wait_synced()
        done.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert not done
        inner.complete.set()
    assert done == [True]
    assert outer.synced


async def test_a_source_without_calls_has_none_when_its_keys_are_sorted_out() -> None:
    assert OwnKeys(cast("Source", SimpleNamespace(name="", namespace="")), lambda request: True).active_calls() == []


async def test_a_cache_that_is_only_read_holds_a_controller_up_until_it_is_there() -> None:
    ground = Ground("a", cached=[watch(SECRET)])
    [gate] = ground.caches.gates("a")
    assert isinstance(gate, CacheGate)
    assert (gate.name, gate.namespace, gate.synced) == ("Secret.v1 namespace a", "a", False)
    await filled(gate.informer)
    assert gate.synced
    with anyio.fail_after(5):
        await gate.wait_synced()
