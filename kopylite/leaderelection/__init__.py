"""ONE: of several processes, the one that does the work. On Leases of coordination.k8s.io, as Kubernetes' own parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.leaderelection.candidate import Candidate
    from kopylite.leaderelection.elector import Elector, Lead
    from kopylite.leaderelection.fence import Fence, FencedTransport
    from kopylite.leaderelection.lease import LEASE, Lease
    from kopylite.leaderelection.membership import Membership, MembershipStatistics, Post, shard_labels
    from kopylite.leaderelection.observer import ElectionObserver, LeaseChange
    from kopylite.leaderelection.roster import Plan, Roster, fair_part
    from kopylite.leaderelection.settings import LeaseSettings
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.leaderelection.candidate": "Candidate",
            "kopylite.leaderelection.elector": "Elector Lead",
            "kopylite.leaderelection.fence": "Fence FencedTransport",
            "kopylite.leaderelection.lease": "LEASE Lease",
            "kopylite.leaderelection.membership": "Membership MembershipStatistics Post shard_labels",
            "kopylite.leaderelection.observer": "ElectionObserver LeaseChange",
            "kopylite.leaderelection.roster": "Plan Roster fair_part",
            "kopylite.leaderelection.settings": "LeaseSettings",
        },
    )

__all__ = [
    "LEASE",
    "Candidate",
    "ElectionObserver",
    "Elector",
    "Fence",
    "FencedTransport",
    "Lead",
    "Lease",
    "LeaseChange",
    "LeaseSettings",
    "Membership",
    "MembershipStatistics",
    "Plan",
    "Post",
    "Roster",
    "fair_part",
    "shard_labels",
]
