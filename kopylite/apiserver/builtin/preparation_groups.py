"""What the server itself writes into objects of the named groups, on create and on update. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.resources.strategy import StrategyContext

Object = dict[str, Any]

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_UID_LABELS = ("controller-uid", CONTROLLER_UID)


def decode_stateful_set(stateful_set: Object) -> None:
    for claim in stateful_set["spec"].get("volumeClaimTemplates") or ():
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"


def decode_daemon_set(daemon_set: Object) -> None:
    """The annotation stands for a field that apps/v1 no longer has: it is always there."""
    daemon_set["metadata"].setdefault("annotations", {}).setdefault(TEMPLATE_GENERATION, "0")


def create_daemon_set(daemon_set: Object, context: StrategyContext) -> None:
    annotations = daemon_set["metadata"]["annotations"]
    if not annotations[TEMPLATE_GENERATION].isdigit() or int(annotations[TEMPLATE_GENERATION]) < 1:
        annotations[TEMPLATE_GENERATION] = "1"


def update_daemon_set(daemon_set: Object, old: Object, context: StrategyContext) -> None:
    generation = int((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0"))
    if daemon_set["spec"]["template"] != old["spec"]["template"]:
        generation += 1
    daemon_set["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = str(generation)


def update_deployment(deployment: Object, old: Object, context: StrategyContext) -> None:
    """A change of annotations counts as one of the spec: they are copied to replica sets."""
    metadata, before = deployment["metadata"], old["metadata"]
    if (metadata.get("annotations") or {}) != (before.get("annotations") or {}):
        metadata["generation"] = before.get("generation", 0) + 1


def update_deployment_status(deployment: Object, old: Object, context: StrategyContext) -> None:
    if "labels" in old["metadata"]:
        deployment["metadata"]["labels"] = old["metadata"]["labels"]
    else:
        deployment["metadata"].pop("labels", None)


def update_endpoint_slice(endpoints: Object, old: Object, context: StrategyContext) -> None:
    metadata, before = endpoints["metadata"], old["metadata"]
    if (metadata.get("labels") or {}) != (before.get("labels") or {}):
        metadata["generation"] = before.get("generation", 0) + 1


def create_job(job: Object, context: StrategyContext) -> None:
    """Give the job a selector of its own, unless the user takes care of that."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    # The job's own labels, when defaulted from the template's, are the same map in the real server too.
    defaulted = not metadata.get("labels") or metadata["labels"] == labels
    for name in _NAME_LABELS:
        labels.setdefault(name, metadata.get("name", ""))
    for name in _UID_LABELS:
        labels.setdefault(name, metadata.get("uid", ""))
    if defaulted and labels:
        metadata["labels"] = dict(labels)
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault(CONTROLLER_UID, metadata.get("uid", ""))


def create_priority_class(priority_class: Object, context: StrategyContext) -> None:
    priority_class["metadata"]["generation"] = 1


def update_approval(request: Object, old: Object, context: StrategyContext) -> None:
    """`/approval` takes conditions only."""
    _date_conditions(request, old, context)
    conditions = request["status"].get("conditions")
    request["spec"], request["status"] = old["spec"], dict(old["status"])
    if conditions is not None:
        request["status"]["conditions"] = conditions


def update_request_status(request: Object, old: Object, context: StrategyContext) -> None:
    """`/status` of a request for a certificate leaves approvals as they are."""
    for kind in ("Approved", "Denied"):
        before = [c for c in old["status"].get("conditions") or () if c.get("type") == kind]
        conditions = request["status"].get("conditions") or []
        places = [index for index, c in enumerate(conditions) if c.get("type") == kind]
        if len(before) == len(places):
            for index, condition in zip(places, before, strict=True):
                conditions[index] = condition
    _date_conditions(request, old, context)


def _date_conditions(request: Object, old: Object, context: StrategyContext) -> None:
    now = f"{context.clock.now().isoformat(timespec='seconds')[:19]}Z"
    known = {
        (c.get("type"), c.get("status")): c.get("lastTransitionTime")
        for c in reversed(old["status"].get("conditions") or ())
    }
    for condition in request["status"].get("conditions") or ():
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        if not condition.get("lastTransitionTime"):
            before = known.get((condition.get("type"), condition.get("status")))
            condition["lastTransitionTime"] = before or now


def freeze_spec(obj: Object, old: Object, context: StrategyContext) -> None:
    """The main endpoint changes metadata only."""
    obj["spec"] = old["spec"]


def update_csi_driver(driver: Object, old: Object, context: StrategyContext) -> None:
    """A new driver has no generation; it is counted from its first change on."""
    generation = old["metadata"].get("generation", 0)
    if driver["spec"] != old["spec"]:
        generation += 1
    if generation:
        driver["metadata"]["generation"] = generation


_PROTECTED_CLASS = "kubernetes.io/vac-protection"


def protect_attributes_class(obj: Object, context: StrategyContext) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if _PROTECTED_CLASS not in finalizers:
        finalizers.append(_PROTECTED_CLASS)


def decode_lease(lease: Object) -> None:
    """Without coordinated elections, which are off by default, there is nothing to say about them."""
    for field in ("preferredHolder", "strategy"):
        lease["spec"].pop(field, None)


def create_taint_rule(rule: Object, context: StrategyContext) -> None:
    _time_taint(rule["spec"].get("taint") or {}, context)


def create_resource_slice(resource_slice: Object, context: StrategyContext) -> None:
    for device in resource_slice["spec"].get("devices") or ():
        for taint in device.get("taints") or ():
            _time_taint(taint, context)


def _time_taint(taint: Object, context: StrategyContext) -> None:
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = context.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
