"""What an access review asks about: checked, and turned into a Target. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kopylite.apiserver.request.request import Target
from kopylite.apiserver.request.selectors import parse_field_selector, parse_label_selector
from kopylite.apiserver.schema.field_errors import FieldError, GoStruct, at, child, forbidden, invalid, required
from kopylite.apiserver.schema.names import label_key_errors, label_value_errors
from kopylite.errors import ApiError

_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")
_ATTRIBUTES: Final = "spec.resourceAttributes"
# In the order of Go's structs.
_METADATA: Final = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip
_OWNER: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")

Object = dict[str, Any]


def access_target(spec: Object) -> Target:
    """What a valid access review asks about."""
    plain, wanted = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    if wanted is None:
        return Target((plain or {}).get("verb", ""), (plain or {}).get("path", ""))
    return Target(
        wanted.get("verb", ""),
        "",
        wanted.get("group", ""),
        wanted.get("version") or "*",
        wanted.get("resource", ""),
        wanted.get("namespace", ""),
        wanted.get("name", ""),
        wanted.get("subresource", ""),
        nameless=not wanted.get("resource"),
    )


def attribute_errors(review: Object, *, subject: bool = False, local: bool = False) -> list[FieldError]:
    """What is wrong with an access review.

    Args:
        subject: it names whom it asks about.
        local: it asks about its own namespace only.
    """
    spec = review["spec"]
    plain, wanted = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    errors: list[FieldError] = []
    if (plain is None) == (wanted is None):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec", _go_paths(plain), text))
    if subject and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    for name in ("fieldSelector", "labelSelector"):
        if (wanted or {}).get(name) is not None:
            errors += _selector_errors(wanted[name], child(_ATTRIBUTES, name), labels=name == "labelSelector")
    metadata = {key: value for key, value in review["metadata"].items() if key != "managedFields"}
    if local:
        metadata.pop("namespace", None)
    if metadata:
        text = "must be empty except for namespace" if local else "must be empty"
        errors.append(invalid("metadata", _go_metadata(review["metadata"]), text))
    if local:
        errors += _local_errors(review, plain, wanted)
    return errors


def _local_errors(review: Object, plain: Object | None, wanted: Object | None) -> list[FieldError]:
    errors = []
    if wanted is not None and wanted.get("namespace", "") != review["metadata"].get("namespace", ""):
        field = child(_ATTRIBUTES, "namespace")
        errors.append(invalid(field, wanted.get("namespace", ""), "must match metadata.namespace"))
    if plain is not None:
        errors.append(invalid("spec.nonResourceAttributes", _go_paths(plain), "disallowed on this kind of request"))
    return errors


def _go_paths(plain: Object | None) -> GoStruct | None:
    """nonResourceAttributes as Go prints its internal type."""
    return None if plain is None else GoStruct(Path=plain.get("path", ""), Verb=plain.get("verb", ""))


def _go_metadata(metadata: Object) -> GoStruct:
    shown = GoStruct((key, metadata[key]) for key in _METADATA if key in metadata)
    if "managedFields" in shown:
        shown["managedFields"] = [GoStruct((k, e[k]) for k in _OWNER if k in e) for e in shown["managedFields"]]
    return shown


def _selector_errors(selector: Object, path: str, *, labels: bool) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or []
    errors: list[FieldError] = []
    if raw and requirements:
        errors.append(invalid(child(path, "rawSelector"), raw, "may not specified at the same time as requirements"))
    if not raw and not requirements:
        text = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(child(path, "requirements"), text))
    for index, requirement in enumerate(requirements):
        errors += _requirement_errors(requirement, at(child(path, "requirements"), index), labels=labels)
    return errors


def _requirement_errors(requirement: Object, path: str, *, labels: bool) -> list[FieldError]:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values") or []
    errors: list[FieldError] = []
    if not labels and not key:
        errors.append(required(child(path, "key"), "must be specified"))
    field = child(path, "values")
    if operator in _WITH_VALUES and not values:
        errors.append(required(field, "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in _WITHOUT_VALUES and values:
        errors.append(forbidden(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    if labels:
        errors += [invalid(child(path, "key"), key, text) for text in label_key_errors(key)]
        for index, value in enumerate(values):
            errors += [invalid(at(field, index), value, text) for text in label_value_errors(value)]
    return errors


def evaluation_error(spec: Object) -> str:
    """What of the selectors could not be read; they do not change what RBAC says."""
    wanted = spec.get("resourceAttributes") or {}
    checks: tuple[tuple[str, Callable[[str], object], Callable[[Object], bool]], ...] = (
        ("fieldSelector", parse_field_selector, _is_field_requirement),
        ("labelSelector", parse_label_selector, _is_label_requirement),
    )
    errors = []
    for name, parse, is_known in checks:
        selector = wanted.get(name) or {}
        good = bad = 0
        if selector.get("rawSelector"):
            bad = not _parses(parse, selector["rawSelector"])
        for requirement in selector.get("requirements") or ():
            known = is_known(requirement)
            good, bad = good + known, bad + (not known)
        if bad:
            partially = "partially " if good else ""
            errors.append(f"{_ATTRIBUTES}.{name} {partially}ignored due to parse error")
    return "; ".join(errors)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except (ApiError, ValueError):
        return False
    return True


def _is_field_requirement(requirement: Object) -> bool:
    return requirement.get("operator") in _WITH_VALUES and len(requirement.get("values") or ()) == 1


def _is_label_requirement(requirement: Object) -> bool:
    return requirement.get("operator") in (*_WITH_VALUES, *_WITHOUT_VALUES)
