"""JUDGE: validators, mutators and converters: what they see, what they say, and how the API server reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.webhooks.declarations import WebhookDeclarations
    from kopylite.webhooks.review import Denied, Review
    from kopylite.webhooks.specs import AdmissionFunction, ConverterSpec, HookOptions, WebhookSpec
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.webhooks.declarations": "WebhookDeclarations",
            "kopylite.webhooks.review": "Denied Review",
            "kopylite.webhooks.specs": "AdmissionFunction ConverterSpec HookOptions WebhookSpec",
        },
    )

__all__ = [
    "AdmissionFunction",
    "ConverterSpec",
    "Denied",
    "HookOptions",
    "Review",
    "WebhookDeclarations",
    "WebhookSpec",
]
