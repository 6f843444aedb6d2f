"""WHY: which events matter, and whose reconcile they concern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kopylite.triggers.annotated import PAUSED, RECONCILE_AT, annotated

if TYPE_CHECKING:
    from kopylite.triggers.events import Event, EventType, event_of
    from kopylite.triggers.handlers import (
        LOW_PRIORITY,
        NORMAL_PRIORITY,
        BackgroundHandler,
        Enqueue,
        EnqueueMapped,
        EnqueueObject,
        EnqueueOwner,
        Handler,
    )
    from kopylite.triggers.objectpredicates import field_changed, when
    from kopylite.triggers.predicates import (
        Predicate,
        annotations_changed,
        generation_changed,
        label_selector,
        labels_changed,
        predicate,
        resource_version_changed,
    )
    from kopylite.triggers.sources import ChannelSource, KindSource, PeriodicSource, guard_of, only
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.triggers.events": "Event EventType event_of",
            "kopylite.triggers.handlers": (
                "LOW_PRIORITY NORMAL_PRIORITY BackgroundHandler Enqueue EnqueueMapped EnqueueObject EnqueueOwner "
                "Handler"
            ),
            "kopylite.triggers.objectpredicates": "field_changed when",
            "kopylite.triggers.predicates": (
                "Predicate annotations_changed generation_changed label_selector labels_changed predicate "
                "resource_version_changed"
            ),
            "kopylite.triggers.sources": "ChannelSource KindSource PeriodicSource guard_of only",
        },
    )

__all__ = [
    "LOW_PRIORITY",
    "NORMAL_PRIORITY",
    "PAUSED",
    "RECONCILE_AT",
    "BackgroundHandler",
    "ChannelSource",
    "Enqueue",
    "EnqueueMapped",
    "EnqueueObject",
    "EnqueueOwner",
    "Event",
    "EventType",
    "Handler",
    "KindSource",
    "PeriodicSource",
    "Predicate",
    "annotated",
    "annotations_changed",
    "event_of",
    "field_changed",
    "generation_changed",
    "guard_of",
    "label_selector",
    "labels_changed",
    "only",
    "predicate",
    "resource_version_changed",
    "when",
]
