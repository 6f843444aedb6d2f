"""Collectors: what the metrics are made of.

prometheus_client is imported when somebody scrapes: it brings two HTTP servers along, 1.4 MiB.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from kopylite.observers import ClientObserver

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from kopylite.leaderelection import MembershipStatistics

_MEMBERSHIP_GAUGES = (
    ("kopylite_shard_replicas", "Replicas that share the work, as this process sees them", "replicas"),
    ("kopylite_shards", "Parts that the work is split into", "shards"),
    ("kopylite_shards_held", "Parts that this process works on", "held"),
    ("kopylite_shards_blocked", "1: none may be taken, since others split the work otherwise", "blocked"),
)

# client-go's own bounds, in seconds.
REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
# So many times wait for their buckets: some 3 KB.
BATCH = 100

Labels = tuple[str, ...]


def counter(name: str, text: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def gauge(name: str, text: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def histograms(name: str, text: str, labels: Labels, rows: Iterable[tuple[Labels, Histogram]]) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in rows:
        buckets = histogram.buckets()  # before the sum: it may count what is new
        family.add_metric(values, buckets, histogram.total)
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


class Timings(Histogram):
    """A Histogram of what comes with each run: values wait in a list until there are many of them, or a scrape.

    To sort a hundred and cut the list at each bound costs a tenth of a hundred calls of `observe`.

    Attributes:
        new: the values that wait. Who appends to it calls `count` when it has BATCH.
    """

    __slots__ = ("new",)

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__(bounds)
        self.new: list[float] = []

    def count(self) -> None:
        """Let the values that wait into their buckets."""
        values, before = self.new, 0
        values.sort()
        for bucket, bound in enumerate(self.bounds):
            upto = bisect_right(values, bound, before)
            self.counts[bucket] += upto - before
            before = upto
            if upto == len(values):
                break
        self.counts[-1] += len(values) - before
        self.total += sum(values)
        values.clear()

    def buckets(self) -> list[tuple[str, float]]:
        self.count()
        return super().buckets()


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
