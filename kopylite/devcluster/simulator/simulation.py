"""Simulation: what the played cluster is like."""

from __future__ import annotations

from dataclasses import dataclass

# Of single pods, for tests by kubectl.
FAILS_ANNOTATION = "simulator.kopylite.dev/fails"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """How fast things go, and what goes wrong. Times are in seconds of the cluster's clock.

    Args:
        nodes: how many nodes there are; pods are spread over them.
        start_seconds: from a pod's creation until its containers run and are ready.
        job_seconds: how long the pods of Jobs run.
        failing_images: parts of image names; a pod with such an image never runs (ImagePullBackOff), and one of a
            Job fails. So does every pod with the annotation `simulator.kopylite.dev/fails: "true"`.
    """

    nodes: int = 2
    start_seconds: float = 0.0
    job_seconds: float = 1.0
    failing_images: tuple[str, ...] = ()
