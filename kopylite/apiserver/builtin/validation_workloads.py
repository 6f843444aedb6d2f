"""Validation of Deployment, ReplicaSet, StatefulSet, DaemonSet and ReplicationController. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_claims import claim_spec
from kopylite.apiserver.builtin.validation_pods import pod_template
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors

_MISMATCH = "`selector` does not match template `labels`"


def _selector(spec: Object, what: str, *, needed: bool = True) -> tuple[Errors, bool]:
    """The errors of a selector, and whether it can be used."""
    selector = spec.get("selector")
    if selector is None:
        return ([required("spec.selector")] if needed else []), True
    found = checks.label_selector(selector, "spec.selector")
    if not selector:
        found.append(invalid("spec.selector", {}, f"empty selector is invalid for {what}"))
    return found, not found


def _template(spec: Object, what: str, *, match: bool = True) -> Errors:
    """The template of a workload that keeps its pods running."""
    template = spec["template"]
    found: Errors = []
    labels = template["metadata"].get("labels")
    selector = spec.get("selector")
    if match and selector != {} and not checks.selects(selector, labels or {}):
        found.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    found += pod_template(template, "spec.template")
    return found + _always_on(template, what)


def _always_on(template: Object, what: str) -> Errors:
    found: Errors = []
    policy = template["spec"].get("restartPolicy")
    if policy != "Always":
        found.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {what} is not Supported"
        found.append(forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return found


def _unusable(spec: Object, usable: bool) -> Errors:
    if usable or not spec.get("selector"):
        return []
    return [invalid("spec.selector", spec["selector"], "invalid label selector")]


def deployment(obj: Object) -> Errors:
    spec = obj["spec"]
    found = checks.nonnegative(spec, "spec", "replicas")
    errors, usable = _selector(spec, "deployment")
    found += errors + _unusable(spec, usable)
    if usable or not spec.get("selector"):
        found += _template(spec, "ReplicaSet")
    found += _deployment_strategy(spec["strategy"])
    found += checks.nonnegative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        found.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return found


def _deployment_strategy(strategy: Object) -> Errors:
    path, kind = "spec.strategy", strategy.get("type")
    rolling: Any = strategy.get("rollingUpdate")
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", text)]
    if kind != "RollingUpdate":
        shown = checks.go_struct({"Type": kind, "RollingUpdate": rolling})
        return [unsupported(path, shown, ("Recreate", "RollingUpdate"))]
    where = f"{path}.rollingUpdate"
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    found = checks.number_or_percent(f"{where}.maxUnavailable", unavailable)
    found += checks.number_or_percent(f"{where}.maxSurge", surge)
    if checks.is_zero(unavailable) and checks.is_zero(surge):
        found.append(invalid(f"{where}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return found + checks.at_most_100_percent(f"{where}.maxUnavailable", unavailable)


def same_selector(new: Object, old: Object) -> Errors:
    """The selector of a workload never changes."""
    return checks.immutable("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


def replica_set(obj: Object) -> Errors:
    spec = obj["spec"]
    found = checks.nonnegative(spec, "spec", "replicas", "minReadySeconds")
    errors, usable = _selector(spec, "deployment")
    found += errors + _unusable(spec, usable)
    return found + (_template(spec, "ReplicaSet") if usable or not spec.get("selector") else [])


def replication_controller(obj: Object) -> Errors:
    spec = obj["spec"]
    found = checks.nonnegative(spec, "spec", "minReadySeconds")
    selector = spec.get("selector")
    if not selector:
        found.append(required("spec.selector"))
    found += checks.nonnegative(spec, "spec", "replicas")
    template = spec.get("template")
    if template is None:
        return [*found, required("spec.template")]
    labels = template["metadata"].get("labels")
    if selector and not checks.selects({"matchLabels": selector}, labels or {}):
        found.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return found + _template(spec, "ReplicationController", match=False)


def stateful_set(obj: Object) -> Errors:
    spec = obj["spec"]
    policy = spec.get("podManagementPolicy")
    found: Errors = []
    if policy not in ("OrderedReady", "Parallel"):
        found.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    found += _stateful_strategy(spec["updateStrategy"])
    for field in ("whenDeleted", "whenScaled"):
        value = (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(field)
        found += checks.one_of(f"spec.persistentVolumeClaimRetentionPolicy.{field}", value, ("Retain", "Delete"))
    found += checks.nonnegative(spec, "spec", "replicas", "minReadySeconds")
    found += checks.nonnegative(spec.get("ordinals") or {}, "spec.ordinals", "start")
    if spec.get("serviceName"):
        found += checks.texts("spec.serviceName", spec["serviceName"], label_errors(spec["serviceName"]))
    errors, usable = _selector(spec, "statefulset")
    found += errors + _unusable(spec, usable)
    if usable or not spec.get("selector"):
        found += _template({**spec, "template": _with_claims(spec)}, "StatefulSet")
    else:
        found += _always_on(spec["template"], "StatefulSet")
    return found


def new_stateful_set(obj: Object) -> Errors:
    claims = enumerate(obj["spec"].get("volumeClaimTemplates") or ())
    return [e for i, claim in claims for e in claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{i}].spec")]


def _with_claims(spec: Object) -> Object:
    """The template of a StatefulSet as its pods will have it: with names of their own, and their claims as volumes."""
    template, names = spec["template"], [c["metadata"].get("name", "") for c in spec.get("volumeClaimTemplates") or ()]
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)]
    others = [v for v in template["spec"].get("volumes") or () if v["name"] not in names]
    inner = {k: v for k, v in template["spec"].items() if k not in ("hostname", "subdomain")}
    return {**template, "spec": {**inner, "volumes": [*claims, *others]}}


def _stateful_strategy(strategy: Object) -> Errors:
    path, kind = "spec.updateStrategy", strategy.get("type")
    rolling: Any = strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is None:
            return []
        shown = checks.go_struct(
            {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
        )
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind != "RollingUpdate":
        shown = checks.go_struct({"Type": kind, "RollingUpdate": rolling})
        return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    found = checks.nonnegative(rolling or {}, f"{path}.rollingUpdate", "partition")
    limit = (rolling or {}).get("maxUnavailable")
    if limit is not None:
        where = f"{path}.rollingUpdate.maxUnavailable"
        found += checks.number_or_percent(where, limit)
        if checks.is_zero(limit):
            found.append(invalid(where, limit, "cannot be 0"))
        found += checks.at_most_100_percent(where, limit)
    return found


def deployment_status(new: Object, old: Object) -> Errors:
    return _counts(new["status"], ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"))


def replica_set_status(new: Object, old: Object) -> Errors:
    return _counts(new["status"], ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"))


def _counts(status: Object, fields: tuple[str, ...]) -> Errors:
    """Counts of pods: none negative, none above the first, none available that is not ready."""
    found = checks.nonnegative(status, "status", *fields, "unavailableReplicas", "observedGeneration", "collisionCount")
    total = status.get("replicas", 0)
    for field in fields[1:]:
        if status.get(field, 0) > total:
            found.append(invalid(f"status.{field}", status.get(field, 0), "cannot be greater than status.replicas"))
    ready, available = status.get("readyReplicas", 0), status.get("availableReplicas", 0)
    if available > ready:
        found.append(invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return found


_STATEFUL_FIXED = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")
_STATEFUL_MUTABLE = frozenset(
    {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
     "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}
)  # fmt: skip


def update_stateful_set(new: Object, old: Object) -> Errors:
    spec, before = new["spec"], old["spec"]
    found = [
        error
        for field in _STATEFUL_FIXED
        for error in checks.immutable(f"spec.{field}", spec.get(field), before.get(field))
    ]
    others = (spec.keys() | before.keys()) - _STATEFUL_MUTABLE - set(_STATEFUL_FIXED)
    if found or all(spec.get(field) == before.get(field) for field in others):
        return found
    text = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )
    return [forbidden("spec", text)]


def daemon_set(obj: Object) -> Errors:
    spec = obj["spec"]
    errors, _ = _selector(spec, "daemonset", needed=False)
    errors = [e for e in errors if not e.detail.startswith("empty selector")]
    found = list(errors)
    if spec.get("selector") is None or (not errors and not checks.selects(spec["selector"], _labels(spec))):
        found.append(invalid("spec.template.metadata.labels", spec["template"]["metadata"].get("labels"), _MISMATCH))
    if spec.get("selector") == {}:
        found.append(invalid("spec.selector", {}, "empty selector is invalid for daemonset"))
    found += _template(spec, "DaemonSet", match=False)
    found += checks.nonnegative(spec, "spec", "minReadySeconds")
    return found + _daemon_strategy(spec["updateStrategy"]) + checks.nonnegative(spec, "spec", "revisionHistoryLimit")


def _labels(spec: Object) -> dict[str, str]:
    labels: dict[str, str] = spec["template"]["metadata"].get("labels") or {}
    return labels


def _daemon_strategy(strategy: Object) -> Errors:
    path, kind = "spec.updateStrategy", strategy.get("type")
    rolling: Any = strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = checks.go_struct({"Type": kind, "RollingUpdate": rolling})
        return [unsupported(path, shown, ("RollingUpdate", "OnDelete"))]
    where = f"{path}.rollingUpdate"
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    found = checks.number_or_percent(f"{where}.maxUnavailable", unavailable)
    found += checks.number_or_percent(f"{where}.maxSurge", surge)
    zero, none = checks.is_zero(unavailable), checks.is_zero(surge)
    if not zero and not none:
        found.append(invalid(f"{where}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    if zero and none:
        found.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    found += checks.at_most_100_percent(f"{where}.maxUnavailable", unavailable)
    return found + checks.at_most_100_percent(f"{where}.maxSurge", surge)
