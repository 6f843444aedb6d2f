"""Leases of an App: who works, and does somebody? Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from kopylite.doctor.findings import Finding, error, kubectl, listed, warning
from kopylite.doctor.wire import Object, age, name, namespace, number, part, span, text, title
from kopylite.leaderelection.roster import COUNT, SHARDS_OF
from kopylite.objects.yamlwrite import to_yaml

CHECK = "lease"
# A Lease that was not renewed for so many of its own durations is nobody's; the next one would have taken it.
STALE = 3
# Clocks that differ by less are everyday life.
SKEW = 10.0


def twice(names: Iterable[str]) -> Iterator[Finding]:
    """Apps that would stand for one Lease, each taking the other for one more of its own replicas."""
    for lease, count in Counter(names).items():
        if count > 1:
            yield error(
                CHECK,
                f"Lease {lease}",
                f"{count} of the Apps have it: only one of them would ever work",
                "give each App a name of its own, or run each with a --lease-name of its own",
            )


def absent(lease: str, home: str) -> Finding:
    """A Lease that the operator may not make itself."""
    metadata = {"name": lease, "namespace": home}
    wire = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    return error(
        CHECK,
        f"Lease {home}/{lease}",
        "it is not there, and its manifests give an operator no right to make it: no process will lead",
        f"kubectl apply -f - <<'END'\n{to_yaml([wire])}END",
    )


def judge(lease: Object, now: datetime, pods: Collection[str] = ()) -> Iterator[Finding]:
    """What is wrong with a Lease.

    Args:
        now: the server's time; the holder wrote its own.
        pods: the names of the operator's pods that are ready; none: nothing is known of them.
    """
    where, holder = title(lease, "Lease"), text(lease, "spec", "holderIdentity")
    duration = number(lease, "spec", "leaseDurationSeconds") or 15
    since = age(text(lease, "spec", "renewTime"), now)
    if not holder:
        if pods:
            yield error(
                CHECK,
                where,
                f"nobody holds it, though the pods {listed(pods)} are ready",
                f"kubectl -n {namespace(lease)} logs {next(iter(pods))}",
            )
        return
    if since is None:
        yield error(
            CHECK,
            where,
            f"{holder} holds it and says not since when: nobody else will take it soon",
            kubectl("get", "lease", name(lease), namespace(lease), "-o", "yaml"),
        )
    elif since > STALE * duration:
        what = f"held by {holder}, who has not renewed it for {span(since)}: nobody does this work"
        start = f"start the operator: its first replica takes over after {duration} s"
        steps = [{"op": "test", "path": "/spec/holderIdentity", "value": holder}, {"op": "remove", "path": "/spec"}]
        give = kubectl("patch", "lease", name(lease), namespace(lease), "--type=json", "-p", json.dumps(steps))
        yield error(CHECK, where, what, f"# {start}\n{give}    # if it is not meant to run now")
    elif since < -SKEW:
        what = f"its holder {holder} writes times that are {span(-since)} ahead of the API server's: its clock is wrong"
        yield warning(CHECK, where, what, "mend the clock of the node, or the machine, that the holder runs on")
    elif pods and not any(_is_of(holder, pod) for pod in pods):
        what = f"held by {holder}, which is none of the operator's pods ({listed(pods)}): somebody runs it elsewhere"
        yield warning(CHECK, where, what, "stop that process; a pod takes over at once")


def shards(leases: Iterable[Object]) -> Iterator[Finding]:
    """Replicas of one App that do not agree on the number of shards wait for each other."""
    numbers: dict[tuple[str, str], set[str]] = {}
    for lease in leases:
        labels: Any = part(lease, "metadata", "labels")
        of, roster = text(labels, COUNT), text(labels, SHARDS_OF)
        if of and roster and text(lease, "spec", "holderIdentity"):
            numbers.setdefault((namespace(lease), roster), set()).add(of)
    for (where, roster), found in numbers.items():
        if len(found) > 1:
            yield warning(
                CHECK,
                f"Leases {where}/{roster}",
                f"replicas with {listed(sorted(found))} shards wait for each other",
                "end those with the old number: kubectl rollout status",
            )


def _is_of(holder: str, pod: str) -> bool:
    """kopylite and client-go both write the pod's name, and then something that is never the same again."""
    return holder == pod or holder.startswith(f"{pod}_")
