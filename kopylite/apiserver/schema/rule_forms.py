"""The members of a CEL validation rule in a CRD, without a look at the expressions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.field_errors import FieldError, child
from kopylite.apiserver.schema.fieldpath import resolve_field
from kopylite.apiserver.schema.structural import Schema

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_form_errors(rule: dict[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    """Of a CEL rule's members, without a look at the expressions."""
    text, message = rule.get("rule") or "", rule.get("message") or ""
    where = child(path, "message")
    if not text.strip():
        yield errors.required(child(path, "rule"), "rule is not specified")
    elif message and not message.strip():
        yield errors.invalid(where, message, "must be non-empty if specified")
    elif _has_newline(message.strip()):
        yield errors.invalid(where, message, "must not contain line breaks")
    elif _has_newline(text.strip()) and not message.strip():
        yield errors.required(where, "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        yield errors.required(child(path, "messageExpression"), "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield errors.unsupported(child(path, "reason"), reason, _REASONS)
    field_path = rule.get("fieldPath") or ""
    where = child(path, "fieldPath")
    if field_path and not field_path.strip():
        yield errors.invalid(where, field_path, "must be non-empty if specified")
    if _has_newline(field_path):
        yield errors.invalid(where, field_path, "must not contain line breaks")
    if field_path:
        try:
            resolve_field(field_path, schema)
        except ValueError:
            yield errors.invalid(where, field_path, "must be a valid path")


def _has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text
