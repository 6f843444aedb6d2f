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
        (_CURRENT_METRICS, status.pop("currentMetrics", None)),
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
        if value:
            target_map[field] = value
    metadata = {k: v for k, v in autoscaler["metadata"].items() if k != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**autoscaler, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec, "status": status}


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
