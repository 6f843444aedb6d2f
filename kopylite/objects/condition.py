"""Condition: one observation in `status.conditions`, in the form that Kubernetes tooling expects."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kopylite.objects.apimodel import ApiModel


class Condition(ApiModel):
    """One entry of `status.conditions` (metav1.Condition).

    Attributes:
        type: what was observed, in CamelCase, e.g. "Ready"; unique in the list.
        status: "True", "False" or "Unknown".
        reason: why, as one CamelCase word for programs.
        message: why, for people.
        last_transition_time: when `status` last changed.
        observed_generation: the `metadata.generation` that the observation is about.
    """

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None
