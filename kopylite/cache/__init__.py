"""REMEMBER: what the API server has said, as bytes, with everybody who must hear of a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.cache.informer import DeltaHandler, Handle, Informer, InformerStatistics, Scope
    from kopylite.cache.part import ShardPart
    from kopylite.cache.record import Record
    from kopylite.cache.selectors import parse_label_selector
    from kopylite.cache.shared import Informers, KindFinder, PartCache, PartReader, SharedCache
    from kopylite.cache.steps import Phase, Problem
    from kopylite.cache.store import Delta, Store
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.cache.informer": "DeltaHandler Handle Informer InformerStatistics Scope",
            "kopylite.cache.part": "ShardPart",
            "kopylite.cache.record": "Record",
            "kopylite.cache.selectors": "parse_label_selector",
            "kopylite.cache.shared": "Informers KindFinder PartCache PartReader SharedCache",
            "kopylite.cache.steps": "Phase Problem",
            "kopylite.cache.store": "Delta Store",
        },
    )

__all__ = [
    "Delta",
    "DeltaHandler",
    "Handle",
    "Informer",
    "InformerStatistics",
    "Informers",
    "KindFinder",
    "PartCache",
    "PartReader",
    "Phase",
    "Problem",
    "Record",
    "Scope",
    "ShardPart",
    "SharedCache",
    "Store",
    "parse_label_selector",
]
