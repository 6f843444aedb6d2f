"""The columns that `kubectl get` shows of built-in kinds, as kube-apiserver's printers make them. Pure."""

from __future__ import annotations

from kopylite.apiserver.printers.cluster import CLUSTER
from kopylite.apiserver.printers.policy import POLICY
from kopylite.apiserver.printers.rare import RARE
from kopylite.apiserver.printers.workloads import WORKLOADS
from kopylite.apiserver.resources.registry import Column


def columns_of(storage: str) -> tuple[Column, ...]:
    """The columns of a storage name; empty for a kind that upstream has no printer for."""
    for table in (WORKLOADS, CLUSTER, POLICY, RARE):
        if storage in table:
            return table[storage]
    return ()
