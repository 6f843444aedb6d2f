"""Collectors: what the metrics are made of, and a registry that answers whatever the collectors of the user do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kopylite.boundary import COLLECTOR, Guard, say, show
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import RegistrationError
from kopylite.leaderelection import MembershipStatistics
from kopylite.observers import ClientObserver

Encoder = Callable[[Any], bytes]

_MEMBERSHIP_GAUGES = (
    ("kopylite_shard_replicas", "Replicas that share the work, as this process sees them", "replicas"),
    ("kopylite_shards", "Parts that the work is split into", "shards"),
    ("kopylite_shards_held", "Parts that this process works on", "held"),
    ("kopylite_shards_blocked", "1: none may be taken, since others split the work otherwise", "blocked"),
)

# client-go's own bounds, in seconds.
REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
# Ends a text in the OpenMetrics format.
END = b"# EOF\n"

Labels = tuple[str, ...]


def counter(name: str, text: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def gauge(name: str, text: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def histograms(name: str, text: str, labels: Labels, rows: Iterable[tuple[Labels, Histogram]]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in rows:
        family.add_metric(values, histogram.buckets(), histogram.total)
    return family


class Histogram:
    """Counts by bucket, and the sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as the exposition format wants them."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class GuardedRegistry(CollectorRegistry):
    """Has the figures of the process. A collector that fails, or gives what can't be written down, is left out of that
    scrape, and told of in the log, once per cause.

    Args:
        on_failure: told the name of each collector that failed.
    """

    def __init__(self, on_failure: Callable[[str], None] = lambda name: None) -> None:
        super().__init__(auto_describe=True)
        self._on_failure = on_failure
        self._guards: dict[Collector, Guard[[Encoder], bytes]] = {}
        ProcessCollector(registry=self)
        PlatformCollector(registry=self)
        GCCollector(registry=self)

    def register(self, collector: Collector) -> None:
        super().register(collector)
        name = type(collector).__name__

        def write(encode: Encoder) -> bytes:
            return encode(_Only([*collector.collect()]))

        self._guards[collector] = Guard(
            COLLECTOR,
            write,
            name=name,
            now=SYSTEM_CLOCK.monotonic,
            observe=lambda result: self._on_failure(name),
        )

    def include(self, collector: Collector) -> None:
        """Show a collector of the user until it is unregistered.

        Raises:
            RegistrationError: it has a metric of a name that is taken, or cannot say which it has.
        """
        try:
            self.register(collector)
        except Exception as error:
            raise RegistrationError(
                f"app.metrics: {show(collector)} cannot be shown beside the others: {say(error)}. The names of metrics "
                "are unique in a process, and kopylite has some itself; begin yours with the name of the app"
            ) from error

    def unregister(self, collector: Collector) -> None:
        super().unregister(collector)
        del self._guards[collector]

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The body of a scrape and its content type, in the format that the Accept header asks for."""
        encode, content_type = choose_encoder(accept)
        parts = [guard.call(lambda: "a scrape", b"", encode) for guard in [*self._guards.values()]]
        whole = b"".join(part.removesuffix(END) for part in parts)
        return whole + END if content_type.startswith("application/openmetrics-text") else whole, content_type


class _Only:
    """What an encoder needs of a registry."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


class ClientMetrics(ClientObserver):
    """The numbers of all requests, by method, code and host."""

    __slots__ = ("requests", "seconds")

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, str], int] = {}
        self.seconds: dict[tuple[str, str], Histogram] = {}

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        key = (code, method, host)
        self.requests[key] = self.requests.get(key, 0) + 1
        if (histogram := self.seconds.get((method, host))) is None:
            histogram = self.seconds[method, host] = Histogram(REQUEST_BUCKETS)
        histogram.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Under client-go's names."""
        yield counter(
            "rest_client_requests_total",
            "HTTP requests to the API server, each attempt counted",
            ("code", "method", "host"),
            self.requests.items(),
        )
        yield histograms(
            "rest_client_request_duration_seconds",
            "From sending a request to its answer's headers",
            ("verb", "host"),
            self.seconds.items(),
        )


class WebhookMetrics:
    """The numbers of all webhooks, by path."""

    __slots__ = ("_buckets", "crashes", "in_flight", "requests", "seconds")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets = buckets
        self.requests: dict[tuple[str, str], int] = {}
        self.seconds: dict[str, Histogram] = {}
        # Of converters, and of others.
        self.crashes = {True: 0, False: 0}
        self.in_flight: Callable[[], dict[str, int]] = dict

    def called(self, path: str, status: int, seconds: float) -> None:
        self.requests[path, str(status)] = self.requests.get((path, str(status)), 0) + 1
        self.seconds.setdefault(path, Histogram(self._buckets)).observe(seconds)

    def crashed(self, conversion: bool) -> None:
        self.crashes[conversion] += 1

    def collect(self) -> Iterator[Metric]:
        """Under controller-runtime's names; a denial is an answer of code 200."""
        now, name = self.in_flight(), "controller_runtime_webhook"
        if not now:
            return
        rows = {(path, code): 0 for path in now for code in ("200", "500")} | self.requests
        yield counter(f"{name}_requests_total", "Calls that were answered", ("webhook", "code"), rows.items())
        seconds = [((path,), histogram) for path, histogram in self.seconds.items()]
        yield histograms(f"{name}_latency_seconds", "How long calls took", ("webhook",), seconds)
        text = "Calls in progress"
        yield gauge(f"{name}_requests_in_flight", text, ("webhook",), [((p,), count) for p, count in now.items()])
        text = "Functions that ended with an unexpected exception"
        yield counter(f"{name}_panics_total", text, (), [((), self.crashes[False])])
        yield counter("controller_runtime_conversion_webhook_panics_total", text, (), [((), self.crashes[True])])


class ElectionMetrics:
    """The numbers of leader election and of shards."""

    def __init__(self) -> None:
        # Name of the Lease, and whether this process holds it.
        self.leaders: Callable[[], Sequence[tuple[str, bool]]] = tuple
        # Of the Apps whose work is split: by whose shards they are.
        self.memberships: Callable[[], Sequence[tuple[str, MembershipStatistics]]] = tuple
        self._changes: dict[tuple[str, str], int] = {}

    def changed(self, name: str, change: str) -> None:
        """This process has taken a Lease, given it back, or lost it."""
        self._changes[name, change] = self._changes.get((name, change), 0) + 1

    def collect(self) -> Iterator[Metric]:
        """`leader_election_master_status` is client-go's name; parts of a whole are there if there are any."""
        text = "1: this process holds the lease, and does what only the leader does"
        yield gauge("leader_election_master_status", text, ("name",), [((n,), leads) for n, leads in self.leaders()])
        text = "How often this process has taken a lease, given it back in order, or lost it"
        yield counter("kopylite_lease_changes_total", text, ("name", "change"), self._changes.items())
        memberships = self.memberships()
        for metric, text, attribute in _MEMBERSHIP_GAUGES if memberships else ():
            yield gauge(metric, text, ("name",), [((name,), getattr(now, attribute)) for name, now in memberships])
        if memberships:
            text = "How often the part of this process was planned anew: a replica came or went, or a part moved"
            rows = [((name,), now.rebalances) for name, now in memberships]
            yield counter("kopylite_shard_rebalances_total", text, ("name",), rows)


class ProcessMetrics(Collector):
    """The numbers of the processes that a parent keeps.

    Args:
        numbers: of each its number, whether it answers, and how often it was begun again.
    """

    def __init__(self, numbers: Callable[[], Sequence[tuple[str, bool, int]]]) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        """Called by prometheus_client at each scrape."""
        now = self._numbers()
        text = "1: the process runs and has answered this scrape"
        yield gauge("kopylite_child_up", text, ("child",), [((number,), up) for number, up, _ in now])
        text = "How often the process was begun again after it had ended by itself"
        rows = [((number,), restarts) for number, _, restarts in now]
        yield counter("kopylite_child_restarts_total", text, ("child",), rows)
