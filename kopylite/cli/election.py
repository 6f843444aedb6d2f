"""The options of `kopylite run` for several processes: of which one works, or which share the work."""

from __future__ import annotations

import argparse
from typing import Any

from kopylite.checks import MOST_SHARDS
from kopylite.cli.environment import OptionGroup, at_most, count, name
from kopylite.cli.processes import PLACE, place


def add_election_options(parser: argparse.ArgumentParser) -> None:
    """Add them, as a group."""
    group = parser.add_argument_group("several replicas")
    options = OptionGroup(group)
    options.add_switch(
        "--leader-elect",
        help="let one process work at a time, while the others stand by with warm caches; default: as the App says",
    )
    options.add(
        "--shards", parse=count, metavar="N",
        help="let all processes work: each has its fair part of N parts of the objects; 0: no parts; default: as the "
        "App says",
    )  # fmt: skip
    options.add(
        "--processes", parse=at_most(MOST_SHARDS, "the most that can share the work"), default=1, metavar="N",
        help="run N such processes on this machine, each a replica, with one parent that answers for all: metrics, "
        "probes, signals",
    )  # fmt: skip
    group.add_argument(PLACE, type=place, help=argparse.SUPPRESS)
    options.add("--lease-name", parse=name, metavar="NAME", help="of the Lease that says who leads, if not the App's")
    options.add(
        "--lease-namespace", parse=name, metavar="NAME",
        help="of the Lease, instead of the pod's own or the kubeconfig context's",
    )  # fmt: skip
    options.add_duration(
        "--lease-duration", "15s", "how long the others wait after a leader's last sign of life, in whole seconds"
    )
    options.add_duration(
        "--renew-deadline", "10s",
        "a leader that could not renew its lease for so long stops its work; less than --lease-duration",
    )  # fmt: skip
    options.add_duration("--retry-period", "2s", "the pause between renewals, and between tries")


def election_options(args: argparse.Namespace) -> dict[str, Any]:
    """The manager's options that they stand for."""
    return {
        "shards": args.shards,
        "leader_election": args.leader_elect,
        "lease_name": args.lease_name or "",
        "lease_namespace": args.lease_namespace or "",
        "lease_duration": args.lease_duration,
        "renew_deadline": args.renew_deadline,
        "retry_period": args.retry_period,
    }
