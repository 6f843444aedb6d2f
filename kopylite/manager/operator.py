"""Operator: what a Manager runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kopylite.controller import ControllerSpec, Watch


class Operator(Protocol):
    """What a Manager runs: an App, or whatever else has an App's declarations."""

    @property
    def name(self) -> str: ...
    @property
    def leader_election(self) -> bool: ...
    @property
    def shards(self) -> int: ...
    @property
    def controllers(self) -> Sequence[ControllerSpec]: ...
    @property
    def cached(self) -> Sequence[Watch]: ...
