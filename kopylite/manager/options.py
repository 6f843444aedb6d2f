"""Options: what is decided where an App is run, and not where it is written."""

from __future__ import annotations

from dataclasses import dataclass

from kopylite.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a Manager runs its App. Times are in seconds.

    Args:
        namespaces: only these are watched; none: all. Cluster-scoped kinds are watched in any case.
        workers: reconciles at the same time, for controllers that declare no number of their own.
        metrics_address, health_address: "host:port", ":port" on 127.0.0.1, port 0 for a free one, or "off". Both
            may be the same.
        grace_period: how long running reconciles may go on after `stop()`. 30 s, as a pod gets by default.
        connect_timeout: how long to try to reach the API server at the start.
        freeze_garbage: take everything that exists after the start out of the garbage collector's sight, which
            saves its pauses; for processes that do nothing else.
    """

    namespaces: tuple[str, ...] = ()
    workers: int = 1
    metrics_address: str = "127.0.0.1:8080"
    health_address: str = "127.0.0.1:8081"
    grace_period: float = 30.0
    connect_timeout: float = 60.0
    freeze_garbage: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"workers must be at least 1, not {self.workers}")
        if "" in self.namespaces:  # so it is in every plain str
            raise UsageError("namespaces is a tuple of names, and an empty one means all namespaces")
