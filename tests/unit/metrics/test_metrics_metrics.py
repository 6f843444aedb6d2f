from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from kopylite.cache import InformerStatistics, Phase, Scope
from kopylite.collectors import BATCH, Histogram, Timings
from kopylite.leaderelection import MembershipStatistics
from kopylite.metrics import (
    MAX_PRIORITIES,
    OTHER_PRIORITIES,
    QUEUE_BUCKETS,
    RECONCILE_BUCKETS,
    Metrics,
)
from kopylite.objects import Kind
from kopylite.registry import GuardedRegistry
from kopylite.workqueue import QueueStatistics

QUIET = QueueStatistics(
    ready=0,
    ready_by_priority={},
    waiting=0,
    running=0,
    failing=0,
    longest_ready=0.0,
    longest_running=0.0,
    unfinished=0.0,
)


def statistics_of(scope: Scope, *, synced: bool) -> InformerStatistics:
    return InformerStatistics(
        scope=scope,
        synced=synced,
        phase=Phase.WATCHING,
        version="12",
        objects=7,
        body_bytes=700,
        handlers=1,
        last_event_age=2.5,
        last_byte_age=None,
        problem="",
        problem_age=0.0,
    )


def scrape(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    body, _ = metrics.exposition()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def value(metrics: Metrics, series: str, /, **labels: str) -> float:
    return scrape(metrics)[series, tuple(sorted(labels.items()))]


def test_all_results_of_a_controller_are_there_before_its_first_run() -> None:
    metrics = Metrics()
    metrics.controller("shop", workers=3)
    for result in ("success", "error", "requeue", "requeue_after"):
        assert value(metrics, "controller_runtime_reconcile_total", controller="shop", result=result) == 0
    assert value(metrics, "controller_runtime_max_concurrent_reconciles", controller="shop") == 3


def test_runs_are_counted_under_controller_runtimes_names() -> None:
    metrics = Metrics()
    observer = metrics.controller("shop", workers=1).reconcile
    observer.finished("success", 0.02)
    observer.finished("error", 7.5)
    observer.failed(terminal=True, timeout=False, crashed=False)
    observer.failed(terminal=False, timeout=True, crashed=False)
    observer.failed(terminal=False, timeout=False, crashed=True)
    observer.conflicted()
    observer.object_rejected()
    name = "controller_runtime_"
    assert value(metrics, f"{name}reconcile_total", controller="shop", result="success") == 1
    assert value(metrics, f"{name}reconcile_errors_total", controller="shop") == 3
    assert value(metrics, f"{name}terminal_reconcile_errors_total", controller="shop") == 1
    assert value(metrics, f"{name}reconcile_timeouts_total", controller="shop") == 1
    assert value(metrics, f"{name}reconcile_panics_total", controller="shop") == 1
    assert value(metrics, "kopylite_reconcile_conflicts_total", controller="shop") == 1
    assert value(metrics, "kopylite_rejected_objects_total", controller="shop") == 1
    assert value(metrics, f"{name}reconcile_time_seconds_count", controller="shop") == 2
    assert value(metrics, f"{name}reconcile_time_seconds_sum", controller="shop") == 7.52
    assert value(metrics, f"{name}reconcile_time_seconds_bucket", controller="shop", le="0.025") == 1
    assert value(metrics, f"{name}reconcile_time_seconds_bucket", controller="shop", le="8") == 2


def test_objects_that_lists_left_out_are_counted() -> None:
    metrics = Metrics()
    assert value(metrics, "kopylite_skipped_objects_total") == 0
    metrics.skipped += 1
    assert value(metrics, "kopylite_skipped_objects_total") == 1


def test_the_queue_is_seen_through_its_statistics_at_each_scrape() -> None:
    metrics = Metrics()
    controller = metrics.controller("shop", workers=1)
    now = replace(QUIET, ready=3, ready_by_priority={0: 1, -100: 2}, waiting=4, running=1, unfinished=2.5)
    controller.statistics = lambda: now
    labels = {"name": "shop", "controller": "shop"}
    assert value(metrics, "workqueue_depth", **labels, priority="-100") == 2
    assert value(metrics, "workqueue_depth", **labels, priority="0") == 1
    assert value(metrics, "kopylite_workqueue_waiting", **labels) == 4
    assert value(metrics, "workqueue_unfinished_work_seconds", **labels) == 2.5
    assert value(metrics, "controller_runtime_active_workers", controller="shop") == 1
    now = QUIET
    assert value(metrics, "workqueue_depth", **labels, priority="-100") == 0


def test_queue_events_are_counted_with_client_gos_buckets() -> None:
    metrics = Metrics()
    observer = metrics.controller("shop", workers=1).queue
    observer.adds += 1
    observer.retries += 1
    observer.taken(0.0005)
    observer.done(20.0)
    labels = {"name": "shop", "controller": "shop"}
    assert value(metrics, "workqueue_adds_total", **labels) == 1
    assert value(metrics, "workqueue_retries_total", **labels) == 1
    assert value(metrics, "workqueue_queue_duration_seconds_bucket", **labels, le="0.0001") == 0
    assert value(metrics, "workqueue_queue_duration_seconds_bucket", **labels, le="0.001") == 1
    assert value(metrics, "workqueue_work_duration_seconds_bucket", **labels, le="1e-08") == 0
    assert value(metrics, "workqueue_work_duration_seconds_bucket", **labels, le="100") == 1


def test_priorities_cannot_grow_into_endless_label_values() -> None:
    metrics = Metrics()
    controller = metrics.controller("shop", workers=1)
    controller.statistics = lambda: replace(QUIET, ready_by_priority=dict.fromkeys(range(1000), 1))
    depths = {key: v for key, v in scrape(metrics).items() if key[0] == "workqueue_depth"}
    assert len(depths) == MAX_PRIORITIES + 1
    assert sum(depths.values()) == 1000
    labels = {"name": "shop", "controller": "shop"}
    assert value(metrics, "workqueue_depth", **labels, priority=OTHER_PRIORITIES) == 1000 - MAX_PRIORITIES


def test_informers_are_told_apart_by_kind_namespace_and_selector() -> None:
    metrics = Metrics()
    web = Scope(Kind("apps/v1", "Deployment"), "shop", labels="app=web")
    metadata = Scope(Kind("apps/v1", "Deployment"), "shop", metadata_only=True)
    for scope in (web, metadata):
        observer = metrics.informer(scope)
        observer.relisted()
        observer.event("added")
        observer.watch_failed("Forbidden")
    metrics.informer_statistics = lambda: [statistics_of(web, synced=True), statistics_of(metadata, synced=False)]
    labels = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop"}
    assert value(metrics, "kopylite_informer_synced", **labels, selector="app=web") == 1
    assert value(metrics, "kopylite_informer_synced", **labels, selector="metadata only") == 0
    assert value(metrics, "kopylite_informer_objects", **labels, selector="app=web") == 7
    assert value(metrics, "kopylite_informer_last_event_age_seconds", **labels, selector="app=web") == 2.5
    assert value(metrics, "kopylite_informer_relists_total", **labels, selector="app=web") == 1
    assert value(metrics, "kopylite_informer_events_total", **labels, selector="app=web", type="added") == 1
    assert value(metrics, "kopylite_informer_watch_errors_total", **labels, selector="app=web", reason="Forbidden") == 1


def test_an_age_that_never_began_is_not_shown() -> None:
    metrics = Metrics()
    scope = Scope(Kind("v1", "Pod"))
    metrics.informer_statistics = lambda: [statistics_of(scope, synced=False)]
    assert not [key for key in scrape(metrics) if key[0] == "kopylite_informer_last_byte_age_seconds"]


def test_requests_are_counted_by_code_method_and_host() -> None:
    metrics = Metrics()
    metrics.client.requested(method="GET", host="api:6443", code="200", seconds=0.01)
    metrics.client.requested(method="GET", host="api:6443", code="<error>", seconds=30.0)
    assert value(metrics, "rest_client_requests_total", code="200", method="GET", host="api:6443") == 1
    assert value(metrics, "rest_client_requests_total", code="<error>", method="GET", host="api:6443") == 1
    assert value(metrics, "rest_client_request_duration_seconds_count", verb="GET", host="api:6443") == 2


def test_each_metrics_has_its_own_registry_with_process_and_collector_figures() -> None:
    first, second = Metrics(), Metrics()
    first.controller("shop", workers=1).reconcile.finished("success", 1.0)
    second.controller("shop", workers=1)
    assert value(second, "controller_runtime_reconcile_total", controller="shop", result="success") == 0
    assert any(name == "process_cpu_seconds_total" for name, _ in scrape(second))
    assert any(name == "python_gc_collections_total" for name, _ in scrape(second))


def test_a_scraper_may_ask_for_openmetrics() -> None:
    body, content_type = Metrics().exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_the_buckets_are_those_of_the_go_libraries() -> None:
    assert len(QUEUE_BUCKETS) == 12
    assert len(RECONCILE_BUCKETS) == 40
    assert list(RECONCILE_BUCKETS) == sorted(set(RECONCILE_BUCKETS))


@given(st.lists(st.floats(min_value=0, max_value=1e6)))
def test_a_bucket_counts_every_value_up_to_its_bound(values: list[float]) -> None:
    histogram = Histogram(QUEUE_BUCKETS)
    for one in values:
        histogram.observe(one)
    for bound, (label, count) in zip([*QUEUE_BUCKETS, float("inf")], histogram.buckets(), strict=True):
        assert count == sum(one <= bound for one in values), label


@given(st.lists(st.one_of(st.floats(min_value=0, max_value=1e6), st.sampled_from(QUEUE_BUCKETS))), st.integers(0, 9))
def test_times_that_are_counted_many_at_once_are_in_the_buckets_of_those_counted_by_one(
    values: list[float], at_once: int
) -> None:
    histogram, timings = Histogram(QUEUE_BUCKETS), Timings(QUEUE_BUCKETS)
    for number, one in enumerate(values):
        histogram.observe(one)
        timings.new.append(one)
        if at_once and number % at_once == 0:
            timings.count()
    assert timings.buckets() == histogram.buckets()
    assert timings.total == pytest.approx(histogram.total)


def test_the_times_of_runs_are_bounded_though_nobody_scrapes() -> None:
    numbers = Metrics().controller("shop", workers=1)
    for _ in range(10 * BATCH):
        numbers.queue.taken(0.5)
        numbers.queue.done(0.5)
        numbers.reconcile.finished("success", 0.5)
    for timings in (numbers.queue.queue_seconds, numbers.queue.work_seconds, numbers.reconcile.seconds):
        assert len(timings.new) < BATCH
        assert timings.buckets()[-1] == ("+Inf", 10 * BATCH)
        assert timings.total == 5 * BATCH


class Broken(Collector):
    """Works when it is registered, and not later."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def describe(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("mine", "Half of it")

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("mine", "Half of it", value=1)
        if self.error is not None:
            raise self.error
        yield GaugeMetricFamily("text", "No number", value=cast("float", "many"))


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
@pytest.mark.parametrize("error", [RuntimeError("no database"), SystemExit(1), RecursionError(), None])
def test_a_collector_that_fails_is_left_out_and_the_others_are_shown(
    error: BaseException | None, accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    metrics.controller("shop", workers=1)
    metrics.registry.register(Broken(error))
    prometheus_client.Counter("orders", "Of the user", registry=metrics.registry).inc(3)
    for _ in range(3):
        text = metrics.exposition(accept)[0].decode()
    assert "orders_total 3.0" in text
    assert "controller_runtime_max_concurrent_reconciles" in text
    assert "mine" not in text
    assert text.count("# EOF") == bool(accept)
    assert 'kopylite_calls_total{call="metrics collector",controller="",function="Broken",result="error"}' in text
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("metrics collector Broken failed on a scrape: ")


def test_the_registry_is_one_and_has_what_was_counted_before() -> None:
    metrics = Metrics()
    metrics.skipped = 2
    registry = metrics.registry
    assert isinstance(registry, GuardedRegistry)
    assert metrics.registry is registry
    assert registry.get_sample_value("kopylite_skipped_objects_total") == 2


def test_a_collector_that_was_taken_out_is_not_asked_any_more() -> None:
    metrics, broken = Metrics(), Broken(RuntimeError())
    metrics.registry.register(broken)
    metrics.registry.unregister(broken)
    metrics.exposition()
    assert not metrics.calls


def test_calls_of_the_users_functions_are_counted_by_how_they_ended() -> None:
    metrics = Metrics()
    numbers = metrics.controller("shop", workers=1)
    for result in ("success", "success", "timeout"):
        numbers.called("map function", "owners", result)
    metrics.informer(Scope(Kind("v1", "Pod"))).index_failed("spec.node")
    labels = {"controller": "shop", "call": "map function", "function": "owners"}
    assert value(metrics, "kopylite_calls_total", **labels, result="success") == 2
    assert value(metrics, "kopylite_calls_total", **labels, result="timeout") == 1
    labels = {"controller": "", "call": "index function", "function": "spec.node"}
    assert value(metrics, "kopylite_calls_total", **labels, result="error") == 1


def test_leases_and_shards_are_counted_where_there_are_any() -> None:
    metrics = Metrics()
    assert not any(name.startswith("kopylite_shard") for name, _ in scrape(metrics))
    metrics.elections.changed("shop-shard-0", "taken")
    metrics.elections.changed("shop-shard-0", "taken")
    metrics.elections.changed("shop-shard-0", "lost")
    now = MembershipStatistics(replicas=3, shards=8, held=2, rebalances=5, blocked=True)
    metrics.elections.memberships = lambda: [("shop", now)]
    assert value(metrics, "kopylite_lease_changes_total", name="shop-shard-0", change="taken") == 2
    assert value(metrics, "kopylite_lease_changes_total", name="shop-shard-0", change="lost") == 1
    for name, number in (
        ("kopylite_shard_replicas", 3),
        ("kopylite_shards", 8),
        ("kopylite_shards_held", 2),
        ("kopylite_shards_blocked", 1),
        ("kopylite_shard_rebalances_total", 5),
    ):
        assert value(metrics, name, name="shop") == number


def test_webhooks_have_the_names_of_controller_runtime() -> None:
    metrics = Metrics()
    numbers = metrics.webhooks
    assert b"webhook" not in metrics.exposition("")[0], "an operator without webhooks has no numbers of them"
    numbers.in_flight = lambda: {"/validate--v1-pod": 2, "/convert": 0}
    numbers.called("/validate--v1-pod", 200, 0.02)
    numbers.called("/validate--v1-pod", 413, 0.02)
    numbers.crashed(False)
    numbers.crashed(True)
    text = metrics.exposition("")[0].decode()
    for line in (
        'controller_runtime_webhook_requests_total{code="200",webhook="/validate--v1-pod"} 1.0',
        'controller_runtime_webhook_requests_total{code="413",webhook="/validate--v1-pod"} 1.0',
        'controller_runtime_webhook_requests_total{code="500",webhook="/convert"} 0.0',
        'controller_runtime_webhook_requests_in_flight{webhook="/validate--v1-pod"} 2.0',
        'controller_runtime_webhook_latency_seconds_count{webhook="/validate--v1-pod"} 2.0',
        "controller_runtime_webhook_panics_total 1.0",
        "controller_runtime_conversion_webhook_panics_total 1.0",
    ):
        assert line in text.splitlines(), text
