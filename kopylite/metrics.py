"""Metrics: what Prometheus sees. Implements the observers of the lower rooms.

Names, labels and buckets of whatever controller-runtime has too are its own, so existing dashboards and alerts
work; the rest is named kopylite_*. Three rules keep it off the hot path: an observation adds to a plain number that
belongs to one controller (no label look-up, no lock: all of it happens on the event loop), the times of its runs go
into their buckets when somebody scrapes or many have come, and gauges are read from the live objects' `statistics()`
when somebody scrapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import msgspec

from kopylite.boundary import COLLECTOR, INDEX
from kopylite.cache import InformerStatistics, Scope
from kopylite.collectors import (
    BATCH,
    ClientMetrics,
    ElectionMetrics,
    Histogram,
    Labels,
    Timings,
    WebhookMetrics,
    counter,
    gauge,
    histograms,
)
from kopylite.observers import InformerObserver, QueueObserver, ReconcileObserver
from kopylite.workqueue import QueueStatistics

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    from kopylite.registry import GuardedRegistry

# controller-runtime's and client-go's own bounds, in seconds.
RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
# From one slow callback to a dead loop.
LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

RESULTS = ("success", "error", "requeue", "requeue_after")
EVENTS = ("added", "modified", "deleted", "bookmark")

# Users choose priorities freely, and a label must not take endless values. As in controller-runtime.
MAX_PRIORITIES = 25
OTHER_PRIORITIES = "exceeded_cardinality_limit"


class QueueMetrics(QueueObserver):
    """One work queue's numbers."""

    __slots__ = ("_worked", "queue_seconds", "taken", "work_seconds")

    def __init__(self) -> None:
        super().__init__()
        self.queue_seconds = Timings(QUEUE_BUCKETS)
        self.work_seconds = Timings(QUEUE_BUCKETS)
        self._worked = self.work_seconds.new
        self.taken = self.queue_seconds.new.append  # type: ignore[method-assign, assignment]  # no step between

    def done(self, worked: float) -> None:
        self._worked.append(worked)
        if len(self._worked) >= BATCH:  # and as many were taken
            self.queue_seconds.count()
            self.work_seconds.count()


class ReconcileMetrics(ReconcileObserver):
    """One controller's numbers."""

    __slots__ = (
        "_ran",
        "conflicts",
        "crashes",
        "errors",
        "loop_runs",
        "postponements",
        "rejected",
        "results",
        "seconds",
        "terminal_errors",
        "timeouts",
    )

    def __init__(self) -> None:
        self.results = dict.fromkeys(RESULTS, 0)
        self.seconds = Timings(RECONCILE_BUCKETS)
        self._ran = self.seconds.new
        self.errors = self.terminal_errors = self.timeouts = self.crashes = self.conflicts = 0
        self.rejected = self.loop_runs = self.postponements = 0

    def finished(self, result: str, seconds: float) -> None:
        self.results[result] += 1
        self._ran.append(seconds)
        if len(self._ran) >= BATCH:
            self.seconds.count()

    def failed(self, *, terminal: bool, timeout: bool, crashed: bool) -> None:
        self.errors += 1
        self.terminal_errors += terminal
        self.timeouts += timeout
        self.crashes += crashed

    def conflicted(self) -> None:
        self.conflicts += 1

    def postponed(self) -> None:
        self.postponements += 1

    def object_rejected(self) -> None:
        self.rejected += 1

    def looped(self) -> None:
        self.loop_runs += 1


class InformerMetrics(InformerObserver):
    """One informer's numbers."""

    __slots__ = ("_call_failed", "_on_end", "events", "failures", "relists")

    def __init__(self, call_failed: Callable[[str, str], None], on_end: Callable[[], None] = lambda: None) -> None:
        self._call_failed = call_failed
        self._on_end = on_end
        self.events = dict.fromkeys(EVENTS, 0)
        self.relists = 0
        self.failures: dict[str, int] = {}

    def event(self, kind: str) -> None:
        self.events[kind] += 1

    def relisted(self) -> None:
        self.relists += 1

    def watch_failed(self, reason: str) -> None:
        self.failures[reason] = self.failures.get(reason, 0) + 1

    def index_failed(self, name: str) -> None:
        self._call_failed(INDEX.what, name)

    def ended(self) -> None:
        self._on_end()


class ControllerMetrics(msgspec.Struct):
    """One controller's numbers, and where its gauges are read."""

    workers: int
    statistics: Callable[[], QueueStatistics] | None = None
    paused: Callable[[], int] | None = None
    queue: QueueMetrics = msgspec.field(default_factory=QueueMetrics)
    reconcile: ReconcileMetrics = msgspec.field(default_factory=ReconcileMetrics)
    priorities: set[int] = msgspec.field(default_factory=lambda: {0})
    calls: dict[tuple[str, str, str], int] = msgspec.field(default_factory=dict)

    def called(self, what: str, name: str, result: str) -> None:
        """A map, periodic or channel function was called, and ended so."""
        self.calls[what, name, result] = self.calls.get((what, name, result), 0) + 1

    def depths(self, now: QueueStatistics) -> dict[str, int]:
        """Ready keys by priority; a priority that was seen once stays, at 0."""
        found: dict[str, int] = {}
        for priority, count in now.ready_by_priority.items():
            if len(self.priorities) < MAX_PRIORITIES:
                self.priorities.add(priority)
            label = str(priority) if priority in self.priorities else OTHER_PRIORITIES
            found[label] = found.get(label, 0) + count
        return dict.fromkeys(map(str, sorted(self.priorities)), 0) | found


class Metrics:
    """All numbers of one Manager, in a registry of its own. It is a collector by what it can, not by its class."""

    def __init__(self) -> None:
        self.client = ClientMetrics()
        self.webhooks = WebhookMetrics(QUEUE_BUCKETS)
        self.skipped = 0
        self.loop_lag = Histogram(LAG_BUCKETS)
        self._controllers: dict[str, ControllerMetrics] = {}
        self._informers: dict[Scope, InformerMetrics] = {}
        self.elections = ElectionMetrics()
        self.informer_statistics: Callable[[], Sequence[InformerStatistics]] = tuple
        # Of no controller: by kind and name of the function, and how they ended.
        self.calls: dict[tuple[str, str, str], int] = {}
        # By state, how many namespaces are in scope; none: all of the cluster are.
        self.namespaces: Callable[[], Mapping[str, int]] = dict
        # Of the tasks of all Apps: their names, and whether they run.
        self.tasks: Callable[[], Sequence[tuple[str, bool]]] = tuple

    @cached_property
    def registry(self) -> GuardedRegistry:
        """User code may register more in it; a collector that fails is left out, and the others are shown."""
        from kopylite.registry import GuardedRegistry

        registry = GuardedRegistry(partial(self.call_failed, COLLECTOR.what))
        registry.register(cast("Collector", self))
        return registry

    def controller(self, name: str, workers: int) -> ControllerMetrics:
        """The numbers of a controller. Set its `statistics` once the controller's queue exists."""
        return self._controllers.setdefault(name, ControllerMetrics(workers))

    def informer(self, scope: Scope) -> InformerMetrics:
        """The numbers of an informer, kept until it ends; its gauges come from `informer_statistics`."""
        if (known := self._informers.get(scope)) is None:
            end = partial(self._informers.__delitem__, scope)
            known = self._informers[scope] = InformerMetrics(self.call_failed, end)
        return known

    def call_failed(self, what: str, name: str) -> None:
        """A function of the user that belongs to no controller has failed."""
        self.called(what, name, "error")

    def called(self, what: str, name: str, result: str) -> None:
        """A function of the user that belongs to no controller was called, and ended so."""
        self.calls[what, name, result] = self.calls.get((what, name, result), 0) + 1

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The body of a scrape and its content type, in the format that the Accept header asks for."""
        return self.registry.exposition(accept)

    def describe(self) -> Iterator[Metric]:
        """Its names, so that nobody else takes them."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Called by prometheus_client at each scrape."""
        controllers = list(self._controllers.items())
        yield from _reconciles([(name, metrics.reconcile) for name, metrics in controllers])
        yield from _queues([(name, metrics.queue) for name, metrics in controllers])
        yield from _controller_gauges(controllers)
        text = "Calls of functions of the user, by how they ended; of predicates and the like, those that failed"
        rows = [((name, *call), count) for name, metrics in controllers for call, count in metrics.calls.items()]
        rows += [(("", *call), count) for call, count in self.calls.items()]
        yield counter("kopylite_calls_total", text, ("controller", "call", "function", "result"), rows)
        yield from _informers([(now, self.informer(now.scope)) for now in self.informer_statistics()])
        yield from self.client.collect()
        yield from self.webhooks.collect()
        yield from self.elections.collect()
        text, states = "Namespaces in scope that are worked in, are refused, or begin", self.namespaces().items()
        yield gauge("kopylite_namespaces", text, ("state",), [((state,), count) for state, count in states])
        text = "1: the task runs, or waits to be begun again; 0: it is done, or waits for this process to lead"
        yield gauge("kopylite_task_running", text, ("task",), [((name,), runs) for name, runs in self.tasks()])
        text = "Changes of objects that lists left out because they did not fit their model"
        yield counter("kopylite_skipped_objects_total", text, (), [((), self.skipped)])
        text = "How late the event loop ran a timer that was due"
        yield histograms("kopylite_event_loop_lag_seconds", text, (), [((), self.loop_lag)])


_RECONCILE_COUNTERS = (
    ("controller_runtime_reconcile_errors_total", "Failed reconciles, terminal errors included", "errors"),
    ("controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed for good", "terminal_errors"),
    ("controller_runtime_reconcile_panics_total", "Reconciles that ended with an unexpected exception", "crashes"),
    ("controller_runtime_reconcile_timeouts_total", "Reconciles that were cancelled at their timeout", "timeouts"),
    ("kopylite_reconcile_conflicts_total", "Reconciles that met a 409 Conflict and are retried quietly", "conflicts"),
    ("kopylite_reconcile_postponed_total", "Reconciles that raised Retry and run again at its time", "postponements"),
    ("kopylite_hot_loop_runs_total", "Runs that own writes alone caused, again and again, and that wrote", "loop_runs"),
    ("kopylite_rejected_objects_total", "Stored objects that did not fit their model", "rejected"),
)


def _reconciles(controllers: Sequence[tuple[str, ReconcileMetrics]]) -> Iterator[Metric]:
    labels = ("controller",)
    yield counter(
        "controller_runtime_reconcile_total",
        "Finished reconciles by result",
        ("controller", "result"),
        [((name, result), count) for name, numbers in controllers for result, count in numbers.results.items()],
    )
    for metric, text, attribute in _RECONCILE_COUNTERS:
        yield counter(metric, text, labels, [((name,), getattr(numbers, attribute)) for name, numbers in controllers])
    yield histograms(
        "controller_runtime_reconcile_time_seconds",
        "How long reconciles ran",
        labels,
        [((name,), numbers.seconds) for name, numbers in controllers],
    )


def _queues(queues: Sequence[tuple[str, QueueMetrics]]) -> Iterator[Metric]:
    # client-go's label `name` and controller-runtime's `controller` are the same here, and dashboards use either.
    labels = ("name", "controller")
    rows = [((name, name), numbers) for name, numbers in queues]
    yield counter("workqueue_adds_total", "Keys that became ready to run", labels, [(key, q.adds) for key, q in rows])
    yield counter(
        "workqueue_retries_total", "Keys that were added with a delay", labels, [(key, q.retries) for key, q in rows]
    )
    yield histograms(
        "workqueue_queue_duration_seconds",
        "From ready to being taken by a worker",
        labels,
        [(key, q.queue_seconds) for key, q in rows],
    )
    yield histograms(
        "workqueue_work_duration_seconds",
        "From being taken by a worker to done",
        labels,
        [(key, q.work_seconds) for key, q in rows],
    )


_QUEUE_GAUGES = (
    ("workqueue_unfinished_work_seconds", "Sum of the ages of all runs in progress", "unfinished"),
    ("workqueue_longest_running_processor_seconds", "Age of the oldest run in progress", "longest_running"),
    ("kopylite_workqueue_waiting", "Keys whose time has not come: retries and delayed runs", "waiting"),
    ("kopylite_workqueue_failing", "Keys that failed and have not succeeded since", "failing"),
    ("kopylite_workqueue_longest_ready_seconds", "Age of the oldest key that waits for a worker", "longest_ready"),
)


def _controller_gauges(controllers: Sequence[tuple[str, ControllerMetrics]]) -> Iterator[Metric]:
    yield gauge(
        "controller_runtime_max_concurrent_reconciles",
        "Workers of a controller",
        ("controller",),
        [((name,), metrics.workers) for name, metrics in controllers],
    )
    live = [(name, metrics, metrics.statistics()) for name, metrics in controllers if metrics.statistics]
    yield gauge(
        "controller_runtime_active_workers",
        "Workers that are busy",
        ("controller",),
        [((name,), now.running) for name, _, now in live],
    )
    text = "Objects that are paused by their annotation"
    rows = [((name,), metrics.paused()) for name, metrics in controllers if metrics.paused]
    yield gauge("kopylite_paused_objects", text, ("controller",), rows)
    labels = ("name", "controller")
    yield gauge(
        "workqueue_depth",
        "Keys that are ready to run",
        (*labels, "priority"),
        [((name, name, p), count) for name, metrics, now in live for p, count in metrics.depths(now).items()],
    )
    for metric, text, attribute in _QUEUE_GAUGES:
        yield gauge(metric, text, labels, [((name, name), getattr(now, attribute)) for name, _, now in live])


def _informers(informers: Sequence[tuple[InformerStatistics, InformerMetrics]]) -> Iterator[Metric]:
    labels = ("group", "version", "kind", "namespace", "selector")
    rows = [(_labels_of(now.scope), now, numbers) for now, numbers in informers]
    name = "kopylite_informer_"
    yield gauge(f"{name}objects", "Objects in the store", labels, [(key, now.objects) for key, now, _ in rows])
    yield gauge(f"{name}body_bytes", "Bytes in the store", labels, [(key, now.body_bytes) for key, now, _ in rows])
    yield gauge(
        f"{name}synced",
        "1: the store is whole and the watch works",
        labels,
        [(key, now.synced) for key, now, _ in rows],
    )
    for field_name, text in (
        ("last_event_age", "Since the last change or bookmark"),
        ("last_byte_age", "Since anything came on the watch; beyond 105 s the watch is dead"),
    ):
        ages = [(key, getattr(now, field_name)) for key, now, _ in rows]
        yield gauge(f"{name}{field_name}_seconds", text, labels, [(key, age) for key, age in ages if age is not None])
    yield counter(
        f"{name}relists_total", "Full lists, the first included", labels, [(key, n.relists) for key, _, n in rows]
    )
    yield counter(
        f"{name}events_total",
        "Changes and bookmarks that came on the watch",
        (*labels, "type"),
        [((*key, event), count) for key, _, n in rows for event, count in n.events.items()],
    )
    yield counter(
        f"{name}watch_errors_total",
        "Lists and watches that ended with an error",
        (*labels, "reason"),
        [((*key, reason), count) for key, _, n in rows for reason, count in n.failures.items()],
    )


def _labels_of(scope: Scope) -> Labels:
    """Different for different scopes, or a scrape would hold a series twice."""
    kind, part = scope.kind, str(scope.part or "")
    selectors = scope.labels, scope.fields, "metadata only" if scope.metadata_only else "", part
    return kind.group, kind.version, kind.kind, scope.namespace, "; ".join(filter(None, selectors))
