"""JUDGE: validators, mutators and converters: what they see, what they say, and how the API server reaches them."""

from __future__ import annotations

from kopylite.webhooks.declarations import WebhookDeclarations
from kopylite.webhooks.review import Denied, Review
from kopylite.webhooks.specs import AdmissionFunction, ConverterSpec, HookOptions, WebhookSpec

__all__ = [
    "AdmissionFunction",
    "ConverterSpec",
    "Denied",
    "HookOptions",
    "Review",
    "WebhookDeclarations",
    "WebhookSpec",
]
