"""A registry that answers whatever the collectors of the user do, with the figures of the process, or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kopylite.boundary import COLLECTOR, Guard, say, show
from kopylite.clock import SYSTEM_CLOCK
from kopylite.collectors import counter, gauge
from kopylite.errors import RegistrationError

Encoder = Callable[[Any], bytes]

# Ends a text in the OpenMetrics format.
END = b"# EOF\n"


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
