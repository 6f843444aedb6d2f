"""Kinds that have two versions of one storage: events (two groups) and autoscalers (v1, v2). Pure.

Each function takes the object apart and may return parts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Object = dict[str, Any]

_EVENT_FIELDS = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"


def core_event(event: Object) -> Object:
    """A v1 Event from one of events.k8s.io/v1."""
    converted = {**event, "apiVersion": "v1"}
    for core, new in _EVENT_FIELDS:
        if new in converted:
            converted[core] = converted.pop(new)
    return converted


def new_event(event: Object) -> Object:
    """An events.k8s.io/v1 Event from one of v1."""
    converted = {**event, "apiVersion": "events.k8s.io/v1"}
    for core, new in _EVENT_FIELDS:
        if core in converted:
            converted[new] = converted.pop(core)
    return converted


def autoscaler_v1(autoscaler: Object) -> Object:
    """An autoscaling/v1 autoscaler: what v1 has no field for goes into annotations."""
    spec, status = dict(autoscaler["spec"]), dict(autoscaler.get("status") or {})
    annotations = dict(autoscaler["metadata"].get("annotations") or {})
    rest = []
    for metric in spec.pop("metrics", None) or ():
        target = _cpu_target(metric)
        if target is not None and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = target
        else:
            rest.append(metric)
    for current in status.get("currentMetrics") or ():
        resource = current.get("resource") or {}
        if resource.get("name") == "cpu" and "averageUtilization" in (resource.get("current") or {}):
            status["currentCPUUtilizationPercentage"] = resource["current"]["averageUtilization"]
    for key, value in (
        (_METRICS, rest),
        (_BEHAVIOR, spec.pop("behavior", None)),
        (_CURRENT_METRICS, [_current_v1(metric) for metric in status.pop("currentMetrics", None) or ()]),
        (_CONDITIONS, status.pop("conditions", None)),
    ):
        if value:
            annotations[key] = msgspec.json.encode(value).decode()
    metadata = {**autoscaler["metadata"], **({"annotations": annotations} if annotations else {})}
    return {**autoscaler, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def autoscaler_v2(autoscaler: Object) -> Object:
    """An autoscaling/v2 autoscaler from one of v1, its annotations taken back into fields."""
    spec, status = dict(autoscaler["spec"]), dict(autoscaler.get("status") or {})
    annotations = dict(autoscaler["metadata"].get("annotations") or {})
    metrics = []
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
        metrics.append({"type": "Resource", "resource": resource})
    metrics += _taken(annotations, _METRICS) or []
    if metrics:
        spec["metrics"] = metrics
    status.pop("currentCPUUtilizationPercentage", None)
    for target_map, field, key in (
        (spec, "behavior", _BEHAVIOR),
        (status, "currentMetrics", _CURRENT_METRICS),
        (status, "conditions", _CONDITIONS),
    ):
        value = _taken(annotations, key)
        if isinstance(value, list) and key == _CURRENT_METRICS:
            value = [_current_v2(metric) for metric in value]
        if value:
            target_map[field] = value
    metadata = {k: v for k, v in autoscaler["metadata"].items() if k != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**autoscaler, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec, "status": status}


def without_notes(autoscaler: Object) -> Object:
    """An autoscaler without the annotations that stand for fields of v2."""
    metadata = dict(autoscaler["metadata"])
    notes = (_METRICS, _CURRENT_METRICS, _BEHAVIOR, _CONDITIONS)
    metadata["annotations"] = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in notes}
    return {**autoscaler, "metadata": metadata}


# What v2 has in `current` of a resource's metric, and v1 beside its name.
_CURRENT = (("averageUtilization", "currentAverageUtilization"), ("averageValue", "currentAverageValue"))


def _current_v1(metric: Object) -> Object:
    resource = metric.get("resource")
    if not isinstance(resource, dict):
        return metric
    current = {"averageValue": "0", **(resource.get("current") or {})}
    moved = {new: current[old] for old, new in _CURRENT if old in current}
    return {**metric, "resource": {"name": resource.get("name", ""), **moved}}


def _current_v2(metric: Any) -> Any:
    resource = metric.get("resource") if isinstance(metric, dict) else None
    if not isinstance(resource, dict) or "current" in resource:
        return metric
    current = {old: resource[new] for old, new in _CURRENT if new in resource}
    return {**metric, "resource": {"name": resource.get("name", ""), "current": current}}


def note_current_metrics(autoscaler: Object) -> None:
    """What Go's conversion makes of the status of a v1 autoscaler that is sent, in place.

    The CPU's use stands in an annotation, too, and if it stands there already, that counts.
    """
    percent = (autoscaler.get("status") or {}).get("currentCPUUtilizationPercentage")
    if autoscaler.get("apiVersion") != "autoscaling/v1" or percent is None:
        return
    annotations = autoscaler["metadata"].setdefault("annotations", {})
    noted = _taken(dict(annotations), _CURRENT_METRICS)
    if isinstance(noted, list):
        for current in noted:
            resource = current.get("resource") if isinstance(current, dict) else None
            used = resource.get("currentAverageUtilization") if isinstance(resource, dict) else None
            if isinstance(resource, dict) and resource.get("name") == "cpu" and type(used) is int:
                autoscaler["status"]["currentCPUUtilizationPercentage"] = used
        return
    cpu = {"name": "cpu", "currentAverageUtilization": percent, "currentAverageValue": "0"}
    annotations[_CURRENT_METRICS] = msgspec.json.encode([{"type": "Resource", "resource": cpu}]).decode()


def _cpu_target(metric: Object) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    target: int | None = (resource.get("target") or {}).get("averageUtilization")
    return target


def _taken(annotations: Object, key: str) -> Any:
    """Remove an annotation; answers with its JSON, or None."""
    text = annotations.pop(key, None)
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


# By kind, encoding version of the stored object, and apiVersion wanted.
CONVERSIONS: Mapping[tuple[str, str, str], Callable[[Object], Object]] = {
    ("Event", "events.k8s.io/v1", "v1"): core_event,
    ("Event", "v1", "events.k8s.io/v1"): new_event,
    ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1"): autoscaler_v1,
    ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2"): autoscaler_v2,
}
