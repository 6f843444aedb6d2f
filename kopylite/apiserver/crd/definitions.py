"""CustomResourceDefinitions: their own rules, their life, and the resources that they define. Pure decisions.

The server stores what these functions return and serves what `crd_resources` lists; nothing here waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from kopylite.apiserver.crd.columns import columns, selectable_fields
from kopylite.apiserver.crd.custom_resources import CustomResourceStrategy, published
from kopylite.apiserver.crd.validation import approval, condition, crd_errors, is_true, status_errors
from kopylite.apiserver.resources.registry import (
    STATUS_VERBS,
    Resource,
    ScalePaths,
    Subresource,
    version_hash,
    version_priority,
)
from kopylite.apiserver.resources.strategy import Strategy
from kopylite.apiserver.schema.default import copy_json
from kopylite.apiserver.schema.definition import format_warnings, set_warnings
from kopylite.apiserver.schema.field_errors import FieldError, aggregate, go_quote
from kopylite.apiserver.schema.jsonpath import field_names
from kopylite.apiserver.schema.names import subdomain_errors
from kopylite.apiserver.schema.node import SchemaNode

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
# In the order of discovery.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")

Crd = Mapping[str, Any]


class CrdStrategy:
    """The `Strategy` of CRDs themselves: what is particular to them, around the strategy of a built-in kind.

    Args:
        base: decodes CRDs by their OpenAPI schema, like any built-in kind.
    """

    has_status = True
    generation = True
    strategic = True
    unconditional_update = False
    create_on_update = False
    grace = False

    def __init__(self, base: Strategy) -> None:
        self._base = base

    @property
    def schema(self) -> SchemaNode:
        return self._base.schema

    def reset_fields(self, subresource: str) -> tuple[str, ...]:
        return ("metadata", "spec") if subresource == "status" else ("status",)

    def decode(self, obj: dict[str, Any]) -> list[str]:
        return self._base.decode(obj)

    def from_stored(self, obj: dict[str, Any], encoding_version: str) -> dict[str, Any]:
        return obj

    def default(self, obj: dict[str, Any]) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if kind and not names.get("listKind"):
            names["listKind"] = f"{kind}List"
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        _complete_status(obj.setdefault("status", {}))
        if not obj["status"]["storedVersions"]:
            obj["status"]["storedVersions"] = _storage_versions(obj)

    def prepare_create(self, obj: dict[str, Any]) -> None:
        obj["status"] = _complete_status({"storedVersions": _storage_versions(obj)})

    def prepare_update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = copy_json(old["spec"])
            return
        obj["status"] = copy_json(old.get("status") or _complete_status({}))
        stored = obj["status"].setdefault("storedVersions", [])
        stored.extend(name for name in _storage_versions(obj) if name not in stored)

    def validate_create(self, obj: dict[str, Any]) -> list[FieldError]:
        return crd_errors(obj)

    def validate_update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str) -> list[FieldError]:
        return status_errors(obj) if subresource == "status" else crd_errors(obj, old)

    def warnings(self, obj: dict[str, Any], old: dict[str, Any] | None) -> list[str]:
        known = set(_schema_warnings(old)) if old is not None else set()
        return [text for text in _schema_warnings(obj) if text not in known]

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return subdomain_errors(name[:-1] + "a" if prefix and name.endswith("-") else name)


def _complete_status(status: dict[str, Any]) -> dict[str, Any]:
    """A status with the members that the server always shows."""
    status.setdefault("conditions", None)
    names = status.setdefault("acceptedNames", {})
    names.setdefault("plural", "")
    names.setdefault("kind", "")
    status.setdefault("storedVersions", [])
    return status


def _storage_versions(crd: Crd) -> list[str]:
    return [v.get("name") or "" for v in crd["spec"].get("versions") or () if v.get("storage")][:1]


def _schema_warnings(crd: Crd) -> list[str]:
    schemas = [_schema(version) for version in crd["spec"].get("versions") or ()]
    distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
    formats = [text for schema in distinct for text in format_warnings(schema)]
    sets = sorted({text for schema in distinct for text in set_warnings(schema)})
    return [*formats, *sets]


def _schema(version: Mapping[str, Any]) -> dict[str, Any]:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def establish(crd: Crd, others: Iterable[Crd], now: str) -> dict[str, Any]:
    """The CRD with the status that the naming and establishing controllers give it; unchanged if all is done.

    Args:
        others: all CRDs; those of other groups, and the CRD itself, are ignored. Not looked at once all is done.
        now: RFC 3339, for lastTransitionTime.
    """
    result = _with_own_head(crd)
    status = _complete_status(result["status"])
    wanted, accepted = crd["spec"]["names"], status["acceptedNames"]
    state = approval(crd)
    if state is not None:
        reason = "ApprovedAnnotation" if state[0] == "Approved" else f"{state[0]}Annotation"
        approved = "True" if state[0] == "Approved" else "False"
        _set_condition(result, ("KubernetesAPIApprovalPolicyConformant", approved, reason, state[1]), now)
    if wanted == accepted and is_true(crd, "NamesAccepted") and is_true(crd, "Established"):
        return result
    rivals = [
        other for other in others
        if other["spec"]["group"] == crd["spec"]["group"] and other["metadata"]["name"] != crd["metadata"]["name"]
    ]  # fmt: skip
    names, conflict = _accept_names(wanted, accepted, rivals)
    status["acceptedNames"] = names
    if conflict is not None:
        _set_condition(result, ("NamesAccepted", "False", *conflict), now)
        if condition(result, "Established") is None:
            _set_condition(result, ("Established", "False", "NotAccepted", "not all names are accepted"), now)
        return result
    _set_condition(result, ("NamesAccepted", "True", "NoConflicts", "no conflicts found"), now)
    if not is_true(result, "Established"):
        text = "the initial names have been accepted"
        _set_condition(result, ("Established", "True", "InitialNamesAccepted", text), now)
    return result


def _with_own_head(crd: Crd) -> dict[str, Any]:
    """The CRD with metadata and status of its own; the spec, which may be a megabyte, is shared."""
    metadata, status = copy_json(crd["metadata"]), copy_json(crd.get("status") or {})
    return {**crd, "metadata": metadata, "status": status}


def _accept_names(
    wanted: Mapping[str, Any], accepted: Mapping[str, Any], others: list[Crd]
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """The names that the CRD gets, and the reason and text of the last conflict."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        taken = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {taken.get("plural", ""), taken.get("singular", ""), *(taken.get("shortNames") or ())}
        kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
    names = dict(accepted)
    conflict: tuple[str, str] | None = None
    for key in ("plural", "singular", "shortNames", "kind", "listKind"):
        value = wanted.get(key)
        used = kinds if key in ("kind", "listKind") else resources
        requested = value or [] if key == "shortNames" else [value]
        owned = accepted.get(key) or [] if key == "shortNames" else [accepted.get(key)]
        problems = [f"{go_quote(name)} is already in use" for name in requested if name in used and name not in owned]
        if problems:
            conflict = f"{key[0].upper()}{key[1:]}Conflict", aggregate(problems)
        elif value:
            names[key] = copy_json(value)
        else:
            names.pop(key, None)
    if wanted.get("categories"):
        names["categories"] = copy_json(wanted["categories"])
    else:
        names.pop("categories", None)
    return names, conflict


def _set_condition(crd: dict[str, Any], entry: tuple[str, str, str, str], now: str) -> None:
    kind, state, reason, message = entry
    conditions = crd["status"]["conditions"] = crd["status"].get("conditions") or []
    found = next((c for c in conditions if c["type"] == kind), None)
    if found is None:
        found = {"type": kind, "status": "", "lastTransitionTime": now}
        conditions.append(found)
    if found["status"] != state:
        found["lastTransitionTime"] = now
    found.update(status=state, reason=reason, message=message)


def is_established(crd: Crd) -> bool:
    return is_true(crd, "Established")


def is_terminating(crd: Crd) -> bool:
    return bool(crd["metadata"].get("deletionTimestamp"))


def begin_deletion(crd: Crd, now: str) -> dict[str, Any]:
    """The CRD after the first DELETE: marked, held by the clean-up finalizer until its objects are gone.

    The real server leaves generation alone here and sets no deletionGracePeriodSeconds.
    """
    result = _with_own_head(crd)
    metadata = result["metadata"]
    metadata.setdefault("deletionTimestamp", now)
    finalizers = metadata.setdefault("finalizers", [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _set_condition(result, ("Terminating", "True", "InstanceDeletionPending", text), now)
    return result


def needs_cleanup(crd: Crd) -> bool:
    """Are the objects of this CRD to be deleted now?"""
    return is_terminating(crd) and CLEANUP_FINALIZER in (crd["metadata"].get("finalizers") or ())


def deletion_in_progress(crd: Crd, now: str) -> dict[str, Any]:
    """The CRD while its objects are being deleted."""
    result = _with_own_head(crd)
    entry = ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    _set_condition(result, entry, now)
    return result


def deletion_completed(crd: Crd, now: str) -> dict[str, Any]:
    """The CRD when its last object is gone, without the finalizer: the server can remove it."""
    result = _with_own_head(crd)
    result["metadata"]["finalizers"] = [f for f in result["metadata"]["finalizers"] if f != CLEANUP_FINALIZER]
    never = not is_established(crd)
    entry = ("False", "NeverEstablished", "resource was never established")
    if not never:
        entry = ("False", "InstanceDeletionCompleted", "removed all instances")
    _set_condition(result, ("Terminating", *entry), now)
    return result


def crd_resources(crd: Crd) -> list[Resource]:
    """The resources that an established CRD defines: its served versions, in the order of `spec.versions`."""
    made = {version["name"]: _resource(crd, version) for version in crd["spec"]["versions"]}
    stored_as = made[storage_version(crd)]
    for resource in made.values():
        if resource.conversion is not None:
            resource.stored_as = stored_as
    return [made[version["name"]] for version in crd["spec"]["versions"] if version.get("served")]


def storage_version(crd: Crd) -> str:
    return _storage_versions(crd)[0]


def _schema_in(schemas: Mapping[str, dict[str, Any]], *, converted: bool) -> Callable[[str], SchemaNode | None]:
    """`Resource.schema_in`; what a webhook would make of an object is not known there, so anything fits."""

    @cache
    def schema_in(version: str) -> SchemaNode | None:
        if version not in schemas:
            return None
        return SchemaNode({"x-kubernetes-preserve-unknown-fields": True} if converted else published(schemas[version]))

    return schema_in


def _resource(crd: Crd, version: Mapping[str, Any]) -> Resource:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    group, kind = spec["group"], names["kind"]
    api_version = f"{group}/{version['name']}"
    scale = _scale((version.get("subresources") or {}).get("scale"))
    declared = _subresources(version, kind)
    schema = _schema(version)
    schemas = {f"{group}/{each['name']}": _schema(each) for each in spec["versions"]}
    storage = f"{group}/{storage_version(crd)}"
    stored = [f"{group}/{name}" for name in (crd.get("status") or {}).get("storedVersions") or ()]
    form = msgspec.json.encode([schema, storage, schemas[storage], stored], order="sorted")

    def load() -> Strategy:
        return CustomResourceStrategy(
            api_version,
            kind,
            schema,
            has_status="status" in declared,
            scale=scale,
            versions=schemas,
            storage="" if _webhook(spec) is not None else storage,
            stored=stored,
        )

    return Resource(
        group=group,
        version=version["name"],
        kind=kind,
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        load=load,
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=declared,
        scale=scale,
        columns=columns(version),
        fields=selectable_fields(version),
        encoding_version=f"{api_version}#{hashlib.sha256(form).hexdigest()[:16]}",
        storage_version_hash=version_hash(storage, kind),
        custom=True,
        deprecation=_deprecation(version, spec),
        terminating=is_terminating(crd),
        conversion=_webhook(spec),
        schema_in=_schema_in(schemas, converted=_webhook(spec) is not None),
        definition=schema,
        size=len(form),
        verbs=_TERMINATING_VERBS if is_terminating(crd) else _VERBS,
    )


def _webhook(spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The webhook that converts between the versions of a CRD; None if their names are all that differs."""
    conversion = spec.get("conversion") or {}
    webhook: Mapping[str, Any] | None = conversion.get("webhook")
    return webhook if conversion.get("strategy") == "Webhook" else None


def _subresources(version: Mapping[str, Any], kind: str) -> dict[str, Subresource]:
    given = version.get("subresources") or {}
    declared = {}
    if "status" in given:
        declared["status"] = Subresource("status", kind)
    if given.get("scale") is not None:
        declared["scale"] = Subresource("scale", "Scale", STATUS_VERBS, "autoscaling", "v1")
    return declared


def _deprecation(version: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """What users of a deprecated version are told: by default, to use the best one that is newer."""
    if not version.get("deprecated") or version.get("deprecationWarning"):
        return str(version.get("deprecationWarning") or "")
    name, group, kind = version["name"], spec["group"], spec["names"]["kind"]
    text = f"{group}/{name} {kind} is deprecated"
    current = [other["name"] for other in spec["versions"] if other["served"] and not other.get("deprecated")]
    best = min(current, key=version_priority, default=name)
    return f"{text}; use {group}/{best} {kind}" if version_priority(best) < version_priority(name) else text


def _scale(scale: Mapping[str, Any] | None) -> ScalePaths | None:
    if scale is None:
        return None
    selector = scale.get("labelSelectorPath")
    return ScalePaths(
        field_names(scale["specReplicasPath"]),
        field_names(scale["statusReplicasPath"]),
        field_names(selector) if selector else None,
    )
