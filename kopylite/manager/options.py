"""Options: what is decided where an App is run, and not where it is written."""

from __future__ import annotations

from dataclasses import dataclass

from kopylite.checks import require_flag, require_seconds, require_shards, require_workers
from kopylite.client.selecting import SelectorLike
from kopylite.errors import UsageError
from kopylite.leaderelection.settings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD, LeaseSettings
from kopylite.manager.scope import NamespaceRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a Manager runs its App. Times are in seconds.

    Args:
        namespaces: only these are watched; none: all. Cluster-scoped kinds are watched in any case. A glob such as
            "team-*" means those that there are at any time: they are followed as they come and go.
        namespaces_labelled: instead of `namespaces`, a label selector of namespaces, followed likewise.
        workers: reconciles at the same time, for controllers that declare no number of their own.
        metrics_address, health_address: "host:port", ":port" on 127.0.0.1, port 0 for a free one, or "off". Both
            may be the same.
        grace_period: how long running reconciles may go on after `stop()`. 30 s, as a pod gets by default.
        connect_timeout: how long to try to reach the API server at the start.
        freeze_garbage: take everything that exists after the start out of the garbage collector's sight, which
            saves its pauses; for processes that do nothing else.
        shards: into how many parts the keys are split, which several processes share; 0: they are not. None: as each
            App says.
        leader_election: whether of several processes only one works at a time; None: as each App says.
        lease_name: of the Lease; "": the App's name.
        lease_namespace: of the Lease; "": the pod's, or the kubeconfig context's.
        webhook_address: where webhooks are served, if an App has any.
        webhook_certs: "auto" (made here, in a Secret that all replicas share), or the folder of tls.crt and tls.key.
        webhook_url: "https://HOST[:PORT]" by which the API server reaches them; "": the Service APP-webhooks.
        webhook_shared: other processes of this machine listen at the same address, and share the calls.
        webhook_manage: apply their configurations, and the conversion of the CRDs.
        lease_duration, renew_deadline, retry_period: see LeaseSettings.
    """

    namespaces: tuple[str, ...] = ()
    namespaces_labelled: SelectorLike = ""
    workers: int = 8
    metrics_address: str = "127.0.0.1:8080"
    health_address: str = "127.0.0.1:8081"
    grace_period: float = 30.0
    connect_timeout: float = 60.0
    freeze_garbage: bool = False
    shards: int | None = None
    leader_election: bool | None = None
    webhook_address: str = "127.0.0.1:9443"
    webhook_certs: str = "auto"
    webhook_url: str = ""
    webhook_manage: bool = False
    webhook_shared: bool = False
    lease_name: str = ""
    lease_namespace: str = ""
    lease_duration: float = LEASE_DURATION
    renew_deadline: float = RENEW_DEADLINE
    retry_period: float = RETRY_PERIOD

    def __post_init__(self) -> None:
        require_workers(self.workers, "Options: workers", error=UsageError)
        require_seconds(self.grace_period, "Options: grace_period", zero=True, error=UsageError)
        require_seconds(self.connect_timeout, "Options: connect_timeout", zero=True, error=UsageError)
        require_flag(self.freeze_garbage, "Options: freeze_garbage", error=UsageError)
        if self.shards is not None:
            require_shards(self.shards, "Options: shards", error=UsageError)
        if self.leader_election is not None:
            require_flag(self.leader_election, "Options: leader_election (None: as the App says)", error=UsageError)
        require_flag(self.webhook_manage, "Options: webhook_manage", error=UsageError)
        if self.webhook_url:
            from kopylite.webhooks.configurations import check_url

            check_url(self.webhook_url)
        LeaseSettings(
            name=self.lease_name or "the-app",
            namespace=self.lease_namespace or "its-own",
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            retry_period=self.retry_period,
        )
        NamespaceRule.of(self.namespaces, self.namespaces_labelled)

    @property
    def scope(self) -> NamespaceRule:
        """Which namespaces are watched."""
        return NamespaceRule.of(self.namespaces, self.namespaces_labelled)
