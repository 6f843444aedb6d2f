"""What is made of Apps before anything runs: which crews, and what the metrics say of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kopylite import App, Context, Kind, Request
from kopylite.client import ClientConfig, Resources, Transport
from kopylite.errors import UsageError
from kopylite.manager import Options
from kopylite.manager.assembly import Assembly, Ground, assemble
from kopylite.manager.crew import Crew
from kopylite.manager.elections import Candidacy
from kopylite.manager.webhooks import hook_config, webhook_service
from kopylite.metrics import Metrics
from kopylite.testing.clock import VirtualClock

THING, PART = (Kind("example.com/v1", name, namespaced=True) for name in ("Thing", "Part"))
LED = Options(leader_election=True)


class Nowhere:
    """A transport that nothing asks before it runs."""


async def nothing(ctx: Context, request: Request) -> None: ...


def the_app(name: str = "shop", *, led: bool = True, free: bool = True, tasks: bool = True) -> App:
    app = App(name)
    if led:
        app.reconciler(THING, name=f"{name}-led", owns=[PART])(nothing)
    if free:
        app.reconciler(THING, name=f"{name}-free", leader=False)(nothing)
    if tasks:

        @app.task(name=f"{name}-led-task")
        async def one(ctx: Context) -> None: ...

        @app.task(name=f"{name}-free-task", leader=False)
        async def two(ctx: Context) -> None: ...

    return app


def assembled(*apps: App, options: Options = LED, metrics: Metrics | None = None, alone: bool = False) -> Assembly:
    clock, transport = VirtualClock(), cast("Transport", Nowhere())
    candidacy = None if alone else Candidacy(cast("Transport", Nowhere()), "pods", "me")
    ground = Ground(transport, transport, Resources(transport, clock), frozenset(), candidacy)

    async def main() -> Assembly:
        return assemble(apps, options, ground, metrics or Metrics(), clock, lambda error: None)

    return clock.run(main)


def described(crew: Crew) -> tuple[str, list[str], list[str]]:
    """The Lease that it waits for, its controllers, and its tasks."""
    lease = crew.elector.settings.name if crew.elector is not None else ""
    return lease, [each.name for each in crew.controllers], [task.name for task in crew.tasks.specs]


@pytest.mark.parametrize(
    ("app", "options", "crews"),
    [
        (the_app(), LED, [
            ("", ["shop-free"], ["shop-free-task"]), ("shop", ["shop-led"], ["shop-led-task"]),
        ]),
        (the_app(), Options(leader_election=False), [
            ("", ["shop-led", "shop-free"], ["shop-led-task", "shop-free-task"]),
        ]),
        (the_app(led=False, free=False), LED, [("", [], ["shop-free-task"]), ("shop", [], ["shop-led-task"])]),
        (the_app(led=False, tasks=False), LED, [("", ["shop-free"], [])]),
        (the_app(free=False, tasks=False), LED, [("shop", ["shop-led"], [])]),
        (the_app(free=False, tasks=False), replace(LED, lease_name="other"), [("other", ["shop-led"], [])]),
    ],
)  # fmt: skip
def test_what_needs_no_leader_begins_at_once_and_the_rest_waits_for_the_lease(
    app: App, options: Options, crews: list[Any]
) -> None:
    assert [described(crew) for crew in assembled(app, options=options).crews] == crews


def test_each_shard_is_a_crew_and_the_first_has_the_leaders_tasks() -> None:
    parts = assembled(the_app(), options=Options(shards=3))
    assert [described(crew) for crew in parts.crews] == [
        ("", ["shop-free"], ["shop-free-task"]),
        # Their controllers, and so their caches, are made when a term begins.
        ("shop-shard-0", [], ["shop-led-task"]),
        ("shop-shard-1", [], []),
        ("shop-shard-2", [], []),
    ]
    assert len(parts.memberships) == 1
    assert [elector.settings.name for elector in parts.electors] == [f"shop-shard-{number}" for number in range(3)]
    assert not assembled(the_app(), options=LED).memberships


def test_several_apps_have_crews_recorders_and_leases_of_their_own_and_caches_together() -> None:
    parts = assembled(the_app("one", tasks=False), the_app("two", tasks=False))
    assert [described(crew)[0] for crew in parts.crews] == ["", "one", "", "two"]
    assert len(parts.recorders) == len(parts.lifespans) == len(parts.checks) == 2
    assert sorted(str(informer.scope) for informer in parts.cache.informers) == [
        "Part.example.com/v1",
        "Thing.example.com/v1",
    ]
    waiting = {str(informer.scope): parts.waiting_for(informer.scope) for informer in parts.cache.informers}
    assert sorted(waiting) == ["Part.example.com/v1", "Thing.example.com/v1"]
    assert waiting["Part.example.com/v1"] == ["one-led", "two-led"]
    assert sorted(waiting["Thing.example.com/v1"]) == ["one-free", "one-led", "two-free", "two-led"]
    assert [controller.name for controller in parts.controllers] == ["one-free", "one-led", "two-free", "two-led"]


def test_the_metrics_know_the_tasks_the_leases_and_the_queues_from_the_start() -> None:
    metrics = Metrics()
    parts = assembled(the_app(), metrics=metrics)
    assert metrics.tasks() == [("shop-free-task", False), ("shop-led-task", False)]
    parts.crews[1].tasks.active.add("shop-led-task")
    assert metrics.tasks() == [("shop-free-task", False), ("shop-led-task", True)]
    assert list(metrics.elections.leaders()) == [("shop", False)]
    text = metrics.exposition()[0].decode()
    for name in ("shop-free", "shop-led"):
        assert f'workqueue_depth{{controller="{name}",name="{name}",priority="0"}} 0.0' in text


@pytest.mark.parametrize(("own", "workers"), [(None, 5), (3, 3)])
def test_a_controller_has_the_workers_of_the_manager_unless_it_says_how_many(own: int | None, workers: int) -> None:
    app, metrics = App("shop"), Metrics()
    app.reconciler(THING, name="things", workers=own)(nothing)
    assembled(app, options=Options(workers=5), metrics=metrics)
    text = metrics.exposition()[0].decode()
    assert f'controller_runtime_max_concurrent_reconciles{{controller="things"}} {workers}.0' in text


def test_an_app_with_a_webhook_of_any_kind_has_what_answers_it() -> None:
    judging, plain = App("judging"), the_app("plain")

    @judging.validator(THING)
    async def judge(ctx: Context, review: object) -> None: ...

    assert [app.name for app, _ in assembled(judging, plain).webhooks] == ["judging"]


def test_a_check_of_an_app_sees_its_state_and_is_named_as_the_cause() -> None:
    app, seen = the_app(), list[tuple[str, ...]]()

    @app.health("database")
    async def database(ctx: Context) -> str | None:
        seen.append(ctx.reasons)
        return "gone"

    checks = assembled(app).checks[0]

    async def main() -> None:
        assert await checks.ask("health", ["database"]) == {"database": "gone"}

    VirtualClock().run(main)
    assert seen == [("database",)]


def test_webhooks_write_over_connections_of_their_own_and_cannot_go_unserved() -> None:
    config = hook_config(ClientConfig("https://server", user_agent="shop/kopylite", max_connections=3, source="here"))
    assert (config.server, config.user_agent) == ("https://server", "shop/kopylite webhooks")
    assert (config.max_connections or 0) >= 1000, "a call never waits for a connection that waits for it"
    app = App("judging")

    @app.validator(THING)
    async def judge(ctx: Context, review: object) -> None: ...

    def service(app: App, **options: Any) -> Any:
        parts = assembled(app)

        async def main() -> Any:
            return webhook_service(parts.webhooks, Options(**options), config, metrics, clock)

        return (clock := VirtualClock()).run(main)

    metrics = Metrics()
    assert service(the_app()) is None
    with pytest.raises(UsageError, match="--webhook-address off: the App has webhooks"):
        service(app, webhook_address="off")
    found = service(app, webhook_address="127.0.0.1:0")
    found.server = SimpleNamespace(in_flight={"/judge": 2})
    assert metrics.webhooks.in_flight() == {"/judge": 2}
