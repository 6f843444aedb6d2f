"""Pods, what makes pods, and autoscaling."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kopylite.apiserver.printers.cells import (
    AGE,
    NONE,
    UNKNOWN,
    UNSET,
    Object,
    at,
    columns,
    containers_of,
    labels_text,
    read,
    since,
    text_at,
)
from kopylite.apiserver.printers.tables import Since, age
from kopylite.apiserver.request.selectors import selector_text

_TEMPLATE = "spec.template.spec.containers"
_CONTAINERS, _IMAGES = containers_of(_TEMPLATE, "name"), containers_of(_TEMPLATE, "image")
_INTEGER = "integer"


def _selector(obj: Object) -> str:
    return selector_text(read(obj, "spec.selector", {})) or NONE


def pod_ready(pod: Object) -> str:
    """Ready containers of all; sidecars that have started count."""
    statuses = read(pod, "status.containerStatuses", [])
    sidecars = {c["name"] for c in read(pod, "spec.initContainers", []) if c.get("restartPolicy") == "Always"}
    started = [s for s in read(pod, "status.initContainerStatuses", []) if s.get("name") in sidecars and s.get("ready")]
    ready = sum(bool(s.get("ready")) for s in statuses) + len(started)
    return f"{ready}/{len(read(pod, 'spec.containers', [])) + len(sidecars)}"


def pod_status(pod: Object) -> str:
    """The one word that sums a pod up: phase, or the reason that stands out."""
    reason = read(pod, "status.reason") or read(pod, "status.phase", "")
    for condition in read(pod, "status.conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initializing = _init_reason(pod)
    reason = initializing or _container_reason(pod, reason)
    if read(pod, "metadata.deletionTimestamp"):
        lost = read(pod, "status.reason") == "NodeLost"
        if lost:
            return "Unknown"
        if read(pod, "status.phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(reason)


def _init_reason(pod: Object) -> str:
    """`Init:…` while an init container is not done; "" afterwards."""
    declared = read(pod, "spec.initContainers", [])
    sidecars = {c["name"] for c in declared if c.get("restartPolicy") == "Always"}
    for index, status in enumerate(read(pod, "status.initContainerStatuses", [])):
        state = status.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated and terminated.get("exitCode", 0) == 0:
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        if terminated:
            return f"Init:{_termination(terminated)}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(declared)}"
    return ""


def _container_reason(pod: Object, reason: str) -> str:
    running = False
    for status in reversed(read(pod, "status.containerStatuses", [])):
        state = status.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _termination(terminated)
        elif status.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in read(pod, "status.conditions", []))
        return "Running" if ready else "NotReady"
    return reason


def _termination(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def pod_restarts(pod: Object) -> str:
    """How many, and how long ago the last one was."""
    statuses = read(pod, "status.containerStatuses", []) + read(pod, "status.initContainerStatuses", [])
    count = sum(int(s.get("restartCount", 0)) for s in statuses)
    last = max((read(s, "lastState.terminated.finishedAt", "") for s in statuses), default="")
    if not count or not last:
        return str(count)
    shown = Since(last)
    shown.form = f"{count} ({{}} ago)"
    return shown


def _readiness_gates(pod: Object) -> str:
    gates = read(pod, "spec.readinessGates", [])
    if not gates:
        return NONE
    true = {c.get("type") for c in read(pod, "status.conditions", []) if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def _ready_of(ready: str, wanted: str) -> Any:
    return lambda obj: f"{read(obj, ready, 0)}/{read(obj, wanted, 0)}"


def _job_status(job: Object) -> str:
    true = {c.get("type") for c in read(job, "status.conditions", []) if c.get("status") == "True"}
    for condition, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in true:
            return shown
    if read(job, "metadata.deletionTimestamp"):
        return "Terminating"
    shown = next((c for c in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if c in true), "Running")
    return shown


def _job_completions(job: Object) -> str:
    succeeded = read(job, "status.succeeded", 0)
    completions = read(job, "spec.completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = read(job, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Object) -> Any:
    start, end = read(job, "status.startTime"), read(job, "status.completionTime")
    if not start:
        return ""
    return Since(start) if not end else age(start, datetime.fromisoformat(end))


def _autoscaler_reference(hpa: Object) -> str:
    target = read(hpa, "spec.scaleTargetRef", {})
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _autoscaler_targets(hpa: Object) -> str:
    """Current and wanted value of each metric; of a custom metric its type."""
    target = read(hpa, "spec.targetCPUUtilizationPercentage", None)
    if target is not None:  # of v1
        now = read(hpa, "status.currentCPUUtilizationPercentage", None)
        return f"cpu: {UNKNOWN if now is None else f'{now}%'}/{target}%"
    shown = []
    current = read(hpa, "status.currentMetrics", [])
    for index, metric in enumerate(read(hpa, "spec.metrics", [])):
        source = metric.get("type", "")
        key = f"{source[:1].lower()}{source[1:]}"
        target = read(metric, f"{key}.target", {})
        seen = read(current[index], f"{key}.current", {}) if index < len(current) else {}
        name = read(metric, f"{key}.name", "")
        label = f"{name}: " if source == "Resource" else ""
        if "averageUtilization" in target:
            now = f"{seen['averageUtilization']}%" if "averageUtilization" in seen else UNKNOWN
            shown.append(f"{label}{now}/{target['averageUtilization']}%")
        else:
            kind = "averageValue" if "averageValue" in target else "value"
            suffix = " (avg)" if kind == "averageValue" and source in ("External", "Object") else ""
            shown.append(f"{label}{seen.get(kind, UNKNOWN)}/{target.get(kind, '')}{suffix}")
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else NONE


def _revision_controller(revision: Object) -> str:
    owner = next((o for o in read(revision, "metadata.ownerReferences", []) if o.get("controller")), None)
    if owner is None:
        return NONE
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    return f"{owner.get('kind', '').lower()}{'.' + group if group else ''}/{owner.get('name', '')}"


def _replica_counts(ready: str = "status.readyReplicas") -> tuple[Any, ...]:
    return (
        ("Desired", at("spec.replicas", 0), _INTEGER),
        ("Current", at("status.replicas", 0), _INTEGER),
        ("Ready", at(ready, 0), _INTEGER),
    )


_WIDE = (("Containers*", _CONTAINERS), ("Images*", _IMAGES))

WORKLOADS = {
    "pods": columns(
        ("Ready", pod_ready),
        ("Status", pod_status),
        ("Restarts", pod_restarts),
        AGE,
        ("IP*", text_at("status.podIP")),
        ("Node*", text_at("spec.nodeName")),
        ("Nominated Node*", text_at("status.nominatedNodeName")),
        ("Readiness Gates*", _readiness_gates),
    ),
    "podtemplates": columns(
        ("Containers", containers_of("template.spec.containers", "name")),
        ("Images", containers_of("template.spec.containers", "image")),
        ("Pod Labels", lambda obj: labels_text(read(obj, "template.metadata.labels"))),
    ),
    "replicationcontrollers": columns(*_replica_counts(), AGE, *_WIDE, ("Selector*", _selector)),
    "replicasets.apps": columns(*_replica_counts(), AGE, *_WIDE, ("Selector*", _selector)),
    "deployments.apps": columns(
        ("Ready", _ready_of("status.readyReplicas", "spec.replicas")),
        ("Up-to-date", at("status.updatedReplicas", 0)),
        ("Available", at("status.availableReplicas", 0)),
        AGE,
        *_WIDE,
        ("Selector*", _selector),
    ),
    "statefulsets.apps": columns(("Ready", _ready_of("status.readyReplicas", "spec.replicas")), AGE, *_WIDE),
    "daemonsets.apps": columns(
        ("Desired", at("status.desiredNumberScheduled", 0), _INTEGER),
        ("Current", at("status.currentNumberScheduled", 0), _INTEGER),
        ("Ready", at("status.numberReady", 0), _INTEGER),
        ("Up-to-date", at("status.updatedNumberScheduled", 0), _INTEGER),
        ("Available", at("status.numberAvailable", 0), _INTEGER),
        ("Node Selector", lambda obj: labels_text(read(obj, "spec.template.spec.nodeSelector"))),
        AGE,
        *_WIDE,
        ("Selector*", _selector),
    ),
    "controllerrevisions.apps": columns(("Controller", _revision_controller), ("Revision", at("revision", 0)), AGE),
    "jobs.batch": columns(
        ("Status", _job_status),
        ("Completions", _job_completions),
        ("Duration", _job_duration),
        AGE,
        *_WIDE,
        ("Selector*", _selector),
    ),
    "cronjobs.batch": columns(
        ("Schedule", at("spec.schedule")),
        ("Timezone", text_at("spec.timeZone")),
        ("Suspend", lambda obj: "True" if read(obj, "spec.suspend") else "False", "boolean"),
        ("Active", lambda obj: len(read(obj, "status.active", [])), _INTEGER),
        ("Last Schedule", since("status.lastScheduleTime", NONE)),
        AGE,
        ("Containers*", containers_of(f"spec.jobTemplate.{_TEMPLATE}", "name")),
        ("Images*", containers_of(f"spec.jobTemplate.{_TEMPLATE}", "image")),
        ("Selector*", lambda obj: selector_text(read(obj, "spec.jobTemplate.spec.selector", {})) or NONE),
    ),
    "horizontalpodautoscalers.autoscaling": columns(
        ("Reference", _autoscaler_reference),
        ("Targets", _autoscaler_targets),
        ("MinPods", text_at("spec.minReplicas", UNSET)),
        ("MaxPods", at("spec.maxReplicas", 0)),
        ("Replicas", at("status.currentReplicas", 0)),
        AGE,
    ),
}
