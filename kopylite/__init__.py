"""kopylite: Kubernetes operators in asyncio. The public names, in the order in which a reader meets them.

Each name is imported when it is first asked for, so `import kopylite` costs next to nothing and a command that
needs only half of the library loads only that half.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kopylite.app import App
    from kopylite.client import Client, Outcome
    from kopylite.controller import Watch, channel, periodic, watch
    from kopylite.errors import (
        AlreadyExists,
        AlreadyOwned,
        ApiError,
        Conflict,
        DecodeError,
        Forbidden,
        Invalid,
        KindNotFound,
        KopyliteError,
        NotFound,
        RegistrationError,
        TerminalError,
        TransportError,
    )
    from kopylite.manager import Manager, Options
    from kopylite.objects import Condition, Conditions, CustomResource, Kind, ObjectKey, OwnerReference, Unstructured
    from kopylite.reconcile import (
        Context,
        Request,
        Result,
        Retry,
        SyncContext,
        effect,
        finalize,
        run_in_thread,
        set_condition,
        tell,
    )
    from kopylite.triggers import (
        annotations_changed,
        field_changed,
        generation_changed,
        label_selector,
        labels_changed,
        predicate,
        resource_version_changed,
        when,
    )
    from kopylite.webhooks import Denied, Review
    from kopylite.workqueue import RateLimit

_HOMES = {
    # Declare an operator.
    "App": "kopylite.app",
    "watch": "kopylite.controller",
    "Watch": "kopylite.controller",
    "periodic": "kopylite.controller",
    "channel": "kopylite.controller",
    "Kind": "kopylite.objects",
    "CustomResource": "kopylite.objects",
    "Unstructured": "kopylite.objects",
    # Write its reconcile.
    "Context": "kopylite.reconcile",
    "SyncContext": "kopylite.reconcile",
    "Request": "kopylite.reconcile",
    "Result": "kopylite.reconcile",
    "Retry": "kopylite.reconcile",
    "Client": "kopylite.client",
    "Outcome": "kopylite.client",
    "ObjectKey": "kopylite.objects",
    "OwnerReference": "kopylite.objects",
    "Condition": "kopylite.objects",
    "Conditions": "kopylite.objects",
    "set_condition": "kopylite.reconcile",
    "finalize": "kopylite.reconcile",
    "tell": "kopylite.reconcile",
    "run_in_thread": "kopylite.reconcile",
    "effect": "kopylite.reconcile",
    # Judge what is written, before it is written.
    "Review": "kopylite.webhooks",
    "Denied": "kopylite.webhooks",
    # Choose what runs it, and how often.
    "generation_changed": "kopylite.triggers",
    "resource_version_changed": "kopylite.triggers",
    "labels_changed": "kopylite.triggers",
    "annotations_changed": "kopylite.triggers",
    "label_selector": "kopylite.triggers",
    "field_changed": "kopylite.triggers",
    "when": "kopylite.triggers",
    "predicate": "kopylite.triggers",
    "RateLimit": "kopylite.workqueue",
    # Expect what goes wrong; kopylite.errors has the whole tree.
    "KopyliteError": "kopylite.errors",
    "TerminalError": "kopylite.errors",
    "ApiError": "kopylite.errors",
    "NotFound": "kopylite.errors",
    "AlreadyExists": "kopylite.errors",
    "Conflict": "kopylite.errors",
    "Invalid": "kopylite.errors",
    "Forbidden": "kopylite.errors",
    "KindNotFound": "kopylite.errors",
    "TransportError": "kopylite.errors",
    "DecodeError": "kopylite.errors",
    "AlreadyOwned": "kopylite.errors",
    "RegistrationError": "kopylite.errors",
    # Run it from a program of your own.
    "Manager": "kopylite.manager",
    "Options": "kopylite.manager",
}

__all__ = [  # noqa: RUF022  (the reader's order, not the alphabet's)
    "App",
    "watch",
    "Watch",
    "periodic",
    "channel",
    "Kind",
    "CustomResource",
    "Unstructured",
    "Context",
    "SyncContext",
    "Request",
    "Result",
    "Retry",
    "Client",
    "Outcome",
    "ObjectKey",
    "OwnerReference",
    "Condition",
    "Conditions",
    "set_condition",
    "finalize",
    "tell",
    "run_in_thread",
    "effect",
    "Review",
    "Denied",
    "generation_changed",
    "resource_version_changed",
    "labels_changed",
    "annotations_changed",
    "label_selector",
    "field_changed",
    "when",
    "predicate",
    "RateLimit",
    "KopyliteError",
    "TerminalError",
    "ApiError",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Invalid",
    "Forbidden",
    "KindNotFound",
    "TransportError",
    "DecodeError",
    "AlreadyOwned",
    "RegistrationError",
    "Manager",
    "Options",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kopylite' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
