"""LeaseSettings: which Lease an election is about, and its times. Data only, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kopylite.boundary import show
from kopylite.checks import is_dns_label, is_object_name, require_seconds, require_text
from kopylite.errors import UsageError

# client-go's own, which every component of Kubernetes uses.
LEASE_DURATION = 15.0
RENEW_DEADLINE = 10.0
RETRY_PERIOD = 2.0
# How much longer than `retry_period` the pause before a renewal may be, jitter included.
JITTER = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """One Lease of coordination.k8s.io, and how it is kept. Times are in seconds, by each process's own clock.

    Args:
        name, namespace: of the Lease.
        lease_duration: how long the others wait, from when they saw the last renewal; a whole number.
        renew_deadline: how long after its last renewal was sent a leader goes on. What is between the two is for
            requests that are on their way, and for clocks that run at different speeds.
        retry_period: the pause between renewals; those who wait look after one to 2.2 of it.
        labels: that each claim puts on the Lease; others stay.

    Raises:
        UsageError: a time is out of its range, or name or namespace is missing or none.
    """

    name: str
    namespace: str
    lease_duration: float = LEASE_DURATION
    renew_deadline: float = RENEW_DEADLINE
    retry_period: float = RETRY_PERIOD
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for option in ("name", "namespace"):
            require_text(getattr(self, option), f"lease {option}", error=UsageError)
            if not getattr(self, option):
                raise UsageError(f"leader election needs the {option} of its Lease")
        if not is_object_name(self.name):
            raise UsageError(
                f"lease name {show(self.name)}: a Lease has a name of up to 253 lower-case letters, digits, inner "
                "dashes and dots; it is the App's where lease_name (--lease-name) gives no other"
            )
        if not is_dns_label(self.namespace):
            raise UsageError(
                f"lease namespace {show(self.namespace)}: a namespace has a name of up to 63 lower-case letters, "
                "digits and inner dashes"
            )
        for option in ("lease_duration", "renew_deadline", "retry_period"):
            require_seconds(getattr(self, option), option, error=UsageError)
        if self.lease_duration != int(self.lease_duration):
            raise UsageError(f"lease_duration is in whole seconds, as in the Lease, not {self.lease_duration:g}")
        if not self.lease_duration > self.renew_deadline > JITTER * self.retry_period:
            raise UsageError(
                f"leader election: lease_duration ({self.lease_duration:g} s) has to be more than renew_deadline "
                f"({self.renew_deadline:g} s), and that more than {JITTER:g} times retry_period "
                f"({self.retry_period:g} s): a leader has to stop before others begin, and to have more than one try"
            )

    @property
    def request_timeout(self) -> float:
        """How long one attempt may take, so that a leader has two before its deadline."""
        return max(1.0, self.renew_deadline / 2)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
