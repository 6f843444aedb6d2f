"""Query parameters and DeleteOptions as checked values, with the server's texts for what is wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.request.request import HttpRequest, Target, is_true
from kopylite.apiserver.request.selectors import parse_field_selector, parse_label_selector
from kopylite.apiserver.schema.field_errors import (
    FieldError,
    forbidden,
    go_quote,
    invalid,
    invalid_error,
    required,
    unsupported,
)
from kopylite.errors import ApiError, BadRequest, InternalError
from kopylite.objects.selectors import Selector
from kopylite.objects.wireformats import parse_duration

_OPTIONS_GROUP = "meta.k8s.io"
_INTEGER = re.compile(r"[+-]?(?=[0-9])0*+([0-9]*+)")
# Of a 64 bit number. Python refuses to read, or takes long over, numbers of thousands.
_MAX_DIGITS = 20
FIELD_VALIDATIONS = ("Ignore", "Strict", "Warn")
PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


# Go's durations, a part at a time. Possessive: a text of digits alone would take quadratic time otherwise.
_DURATION_PART = re.compile(r"([0-9]*+)(\.?[0-9]*+)([^0-9.]*+)")
_UNITS = ("ns", "us", "µs", "μs", "ms", "s", "m", "h")
# Their sub-resources, and watches, end when the client wants them to.
_LONG_RUNNING = ("attach", "exec", "proxy", "log", "portforward")


def check_timeout(request: HttpRequest, target: Target) -> None:
    """Raises BadRequest: the `timeout` of the request is no duration."""
    text = request.param("timeout")
    if text and target.verb != "watch" and target.subresource not in _LONG_RUNNING:
        try:
            parse_duration(text)
        except ValueError:
            problem = _duration_problem(text)
            raise BadRequest(f"invalid timeout specified in the request URL - time: {problem}") from None


def _duration_problem(text: str) -> str:
    """In the words of Go's parser."""
    quoted, rest = go_quote(text), text.lstrip("+-") if text[:1] in "+-" else text
    while (
        rest and (match := _DURATION_PART.match(rest)) and any(character.isdigit() for character in match[1] + match[2])
    ):
        if not match[3]:
            return f"missing unit in duration {quoted}"
        if match[3] not in _UNITS:
            return f"unknown unit {go_quote(match[3])} in duration {quoted}"
        rest = rest[match.end() :]
    return f"invalid duration {quoted}"


def _fail(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_error(kind, _OPTIONS_GROUP, "", errors)


@dataclass(frozen=True, slots=True)
class WriteQuery:
    """Create, Update and Patch options."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


def write_options(request: HttpRequest, kind: str, *, apply: bool = False) -> WriteQuery:
    """Args: kind: CreateOptions, UpdateOptions or PatchOptions. Raises Invalid."""
    errors: list[FieldError] = []
    manager = request.param("fieldManager")
    force = is_true(request.query["force"]) if "force" in request.query else None
    if kind == "PatchOptions":
        if apply and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        if not apply and force is not None:
            errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors.extend(_manager_errors(manager))
    dry_run = request.query.get("dryRun", [])
    errors.extend(_dry_run_errors(dry_run))
    validation = request.param("fieldValidation")
    if validation not in ("", *FIELD_VALIDATIONS):
        errors.append(unsupported("fieldValidation", validation, ("", *FIELD_VALIDATIONS)))
    _fail(kind, errors)
    if not manager:
        # What kube-apiserver falls back to: the program's name in the User-Agent.
        manager = _printable(request.agent.split("/", 1)[0])[:128] or "unknown"
    return WriteQuery(bool(dry_run), manager, validation or "Warn", force)


def _printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable())


def _manager_errors(manager: str) -> list[FieldError]:
    if len(manager.encode("utf-8", "replace")) > 128:
        return [FieldError("FieldValueTooLong", "fieldManager", "may not be more than 128 bytes")]
    for index, char in enumerate(manager):
        if not char.isprintable():
            detail = f"invalid character U+{ord(char):04X} (at position {index})"
            return [invalid("fieldManager", manager, detail)]
    return []


def _dry_run_errors(values: list[str]) -> list[FieldError]:
    return [unsupported("dryRun", values, ("All",))] if any(v != "All" for v in values) else []


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`policy` is None when the client asked for none; `orphan_dependents` is the deprecated form."""

    dry_run: bool = False
    policy: str | None = None
    orphan_dependents: bool | None = None
    grace_period: int | None = None
    uid: str | None = None
    resource_version: str | None = None


def delete_options(request: HttpRequest, body: Mapping[str, Any] | None) -> DeleteOptions:
    """From the body if there is one, else from the query. Raises BadRequest or Invalid."""
    if body:
        group_kind = str(body.get("kind", "DeleteOptions"))
        if group_kind != "DeleteOptions":
            version = body.get("apiVersion", "")
            text = f'no kind "{group_kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
            raise BadRequest(text)
        given: Mapping[str, Any] = body
    else:
        given = _delete_query(request)
    errors: list[FieldError] = []
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, detail))
    if policy is not None and policy not in PROPAGATION_POLICIES:
        errors.append(unsupported("propagationPolicy", policy, (*PROPAGATION_POLICIES, "nil")))
    dry_run = list(given.get("dryRun") or [])
    errors.extend(_dry_run_errors(dry_run))
    _fail("DeleteOptions", errors)
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        bool(dry_run),
        policy,
        orphan,
        given.get("gracePeriodSeconds"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
    )


def _delete_query(request: HttpRequest) -> dict[str, Any]:
    given: dict[str, Any] = {"dryRun": request.query.get("dryRun", [])}
    if "propagationPolicy" in request.query:
        given["propagationPolicy"] = request.param("propagationPolicy")
    if "orphanDependents" in request.query:
        given["orphanDependents"] = is_true(request.query["orphanDependents"])
    if "gracePeriodSeconds" in request.query:
        given["gracePeriodSeconds"] = _integer(request.param("gracePeriodSeconds"))
    return given


@dataclass(frozen=True, slots=True)
class ListOptions:
    """List and watch. `version` is the parsed resourceVersion; None: absent."""

    labels: Selector = field(default_factory=Selector)
    fields: Selector = field(default_factory=Selector)
    limit: int = 0
    continue_token: str = ""
    version: int | None = None
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: int | None = None


def list_options(request: HttpRequest, *, watch: bool, streaming_lists: bool = True) -> ListOptions:
    """Raises BadRequest, Invalid, or a 500 for a resourceVersion that is no number on a watch, as upstream.

    Args:
        streaming_lists: whether `sendInitialEvents` is served (Kubernetes 1.34 and newer).
    """
    numbers = {name: _integer(request.param(name)) for name in ("limit", "timeoutSeconds") if name in request.query}
    initial = is_true(request.query["sendInitialEvents"]) if "sendInitialEvents" in request.query else None
    version, match = request.param("resourceVersion"), request.param("resourceVersionMatch")
    labels = parse_label_selector(request.param("labelSelector"))
    fields = parse_field_selector(request.param("fieldSelector"))
    token = request.param("continue")
    if watch:
        errors = _watch_errors(match, initial, streaming_lists, token)
    else:
        errors = _list_errors(version, match, initial, token)
    _fail("ListOptions", errors)
    if watch and streaming_lists and initial is None and not match and version in ("", "0"):
        initial = True  # a watch from anywhere begins with what there is, and says where that ends
    return ListOptions(
        labels,
        fields,
        max(0, numbers.get("limit", 0)),
        token,
        _list_version(version, watch) if version else None,
        match,
        is_true(request.query.get("allowWatchBookmarks")),
        initial,
        numbers.get("timeoutSeconds"),
    )


def _list_version(text: str, watch: bool) -> int:
    try:
        return parse_version(text)
    except ApiError as error:
        if watch:
            raise
        raise BadRequest(f"invalid resource version: {error.message}") from None


def parse_version(text: str) -> int:
    """A resourceVersion as a number; a 500 without a reason if it is none, as upstream."""
    number = text.isascii() and text.isdigit()
    if number and len(text.lstrip("0")) <= _MAX_DIGITS and int(text) < 2**64:
        return int(text)
    reason = "value out of range" if number else "invalid syntax"
    error = invalid("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": {reason}')
    raise InternalError(str(error), reason="")


def _list_errors(version: str, match: str, initial: bool | None, token: str) -> list[FieldError]:
    errors = []
    field = "resourceVersionMatch"
    if match:
        if not version:
            errors.append(forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
        if token:
            errors.append(forbidden(field, f"{field} is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(unsupported(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            errors.append(forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(match: str, initial: bool | None, streaming_lists: bool, token: str) -> list[FieldError]:
    field = "resourceVersionMatch"
    errors = []
    if token:
        errors.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    if match and initial is None:
        errors.append(forbidden(field, f"{field} is forbidden for watch unless sendInitialEvents is provided"))
    if initial is not None:
        if match != "NotOlderThan":
            errors.append(forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
            if match:
                errors.append(unsupported(field, match, ("NotOlderThan",)))
        if not streaming_lists:
            detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            errors.append(forbidden("sendInitialEvents", detail))
    return errors


def _integer(text: str) -> int:
    number = _INTEGER.fullmatch(text)
    if number and len(number[1]) <= _MAX_DIGITS and -(2**63) <= int(text) < 2**63:
        return int(text)
    reason = "value out of range" if number else "invalid syntax"
    raise BadRequest(f'strconv.ParseInt: parsing "{text}": {reason}')
