"""Validation of disruption budgets, autoscalers, leases, classes and RBAC. Pure."""

from __future__ import annotations

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_resources import container_resource
from kopylite.apiserver.builtin.validation_scheduling import tolerations
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors, path_segment_errors
from kopylite.objects.amounts import parse_quantity

RBAC = "rbac.authorization.k8s.io"
MAX_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def pod_disruption_budget(obj: Object) -> Errors:
    spec = obj["spec"]
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    found: Errors = []
    if least is not None and most is not None:
        shown = checks.go_struct(
            {
                "MinAvailable": least,
                "Selector": spec.get("selector"),
                "MaxUnavailable": most,
                "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
            }
        )
        found.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            found += checks.number_or_percent(f"spec.{field}", spec[field])
            found += checks.at_most_100_percent(f"spec.{field}", spec[field])
    found += checks.label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    return found + checks.one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


_SOURCES = ("object", "external", "pods", "resource", "containerResource")
_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def autoscaler(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    least, most, metrics = spec.get("minReplicas"), spec["maxReplicas"], spec.get("metrics") or ()
    if least is not None and least < 0:
        found.append(invalid("spec.minReplicas", least, checks.NOT_NEGATIVE))
    if most < 0:
        found.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    reference = spec["scaleTargetRef"]
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if not value:
            found.append(required(f"spec.scaleTargetRef.{field}"))
        else:
            found += checks.texts(f"spec.scaleTargetRef.{field}", value, path_segment_errors(value))
    api_version = reference.get("apiVersion", "")
    if "/" not in api_version and (api_version != "v1" or reference.get("kind") != "ReplicationController"):
        found.append(invalid("spec.scaleTargetRef.apiVersion", api_version, "apiVersion must specify API group"))
    percent = spec.get("targetCPUUtilizationPercentage")  # v1 has this in the place of the metrics
    if percent is not None and percent < 1:
        path = "spec.metrics[0].resource.target.averageUtilization"
        found.append(invalid(path, percent, "must be greater than 0"))
    for index, metric in enumerate(metrics):
        found += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(forbidden("spec.metrics", text))
    found += _behavior(spec.get("behavior") or {})
    return [*found, required("spec.maxReplicas")] if most == 0 else found


def _metric(metric: Object, path: str) -> Errors:
    kind = metric.get("type", "")
    given = [field for field in _SOURCES if metric.get(field) is not None]
    own = _METRICS.get(kind, "")
    found: Errors = [] if kind else [required(f"{path}.type", "must specify a metric source type")]
    if not own:
        found.append(unsupported(f"{path}.type", kind, sorted(_METRICS)))
    if given:
        of = next(name for name, field in _METRICS.items() if field == given[0])
        found += _source(of, metric[given[0]], f"{path}.{given[0]}")
    if own and own not in given:
        found.append(required(f"{path}.{own}", "must populate information for the given metric source"))
    if len(given) > 1:
        others = [field for field in given if field != own]
        found += [forbidden(f"{path}.{field}", "must populate the given metric source only") for field in others]
    return found


def _source(kind: str, source: Object, path: str) -> Errors:
    target, where = source["target"], f"{path}.target"
    value, average = target.get("value"), target.get("averageValue")
    found: Errors = []
    if kind in ("Resource", "ContainerResource"):
        if kind == "ContainerResource" and not source.get("container"):
            found.append(required(f"{path}.container", "must specify a container"))
        if not source["name"]:
            found.append(required(f"{path}.name", "must specify a resource name"))
        return found + _target(target, where) + _utilization(target, where)
    if kind == "Object":
        described = source["describedObject"]
        for field in ("kind", "name"):
            name = described.get(field, "")
            here = f"{path}.describedObject.{field}"
            found += checks.texts(here, name, path_segment_errors(name)) if name else [required(here)]
    found += _identifier(source["metric"], f"{path}.metric")
    found += _target(target, where)
    if kind == "Pods" and (average is None or parse_quantity(average).value <= 0):
        found.append(required(f"{where}.averageValue", "must specify a positive target averageValue"))
    if kind == "Object" and value is None and average is None:
        found.append(required(f"{where}.averageValue", "must set either a target value or averageValue"))
    if kind == "External" and value is None and average is None:
        text = "must set either a target value for metric or a per-pod target"
        found.append(required(f"{where}.averageValue", text))
    if kind == "External" and value is not None and average is not None:
        text = "may not set both a target value for metric and a per-pod target"
        found.append(forbidden(f"{where}.value", text))
    return found


def _identifier(metric: Object, path: str) -> Errors:
    name = metric["name"]
    if not name:
        return [required(f"{path}.name", "must specify a metric name")]
    return checks.texts(f"{path}.name", name, path_segment_errors(name))


def _utilization(target: Object, path: str) -> Errors:
    utilization, average = target.get("averageUtilization"), target.get("averageValue")
    found: Errors = []
    if utilization is None and average is None:
        text = "must set either a target raw value or a target utilization"
        found.append(required(f"{path}.averageUtilization", text))
    elif utilization is not None and average is not None:
        text = "may not set both a target raw value and a target utilization"
        found.append(forbidden(f"{path}.averageValue", text))
    return found


def _target(target: Object, path: str) -> Errors:
    kind = target.get("type", "")
    found: Errors = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in ("Utilization", "Value", "AverageValue"):
        found.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if target.get(field) is not None and parse_quantity(target[field]).value <= 0:
            found.append(invalid(f"{path}.{field}", target[field], "must be positive"))
    if (target.get("averageUtilization") or 1) < 1 or target.get("averageUtilization") == 0:
        text = "must be greater than 0"
        found.append(invalid(f"{path}.averageUtilization", target["averageUtilization"], text))
    return found


def _behavior(behavior: Object) -> Errors:
    found: Errors = []
    for name in ("scaleUp", "scaleDown"):
        rules, path = behavior.get(name), f"spec.behavior.{name}"
        if rules is None:
            continue
        seconds, text = rules.get("stabilizationWindowSeconds"), "must be greater than or equal to zero"
        if seconds is not None and seconds < 0:
            found.append(invalid(f"{path}.stabilizationWindowSeconds", seconds, text))
        if seconds is not None and seconds > 3600:
            text = "must be less than or equal to 3600"
            found.append(invalid(f"{path}.stabilizationWindowSeconds", seconds, text))
        selected = ("Disabled", "Max", "Min")
        if rules.get("selectPolicy") is not None and rules["selectPolicy"] not in selected:
            found.append(unsupported(f"{path}.selectPolicy", rules["selectPolicy"], selected))
        policies = rules.get("policies") or ()
        if not policies:
            found.append(required(f"{path}.policies", "must specify at least one Policy"))
        for index, policy in enumerate(policies):
            found += _scaling_policy(policy, f"{path}.policies[{index}]")
        if rules.get("tolerance") is not None:
            found += checks.quantity_not_negative(f"{path}.tolerance", rules["tolerance"])
    return found


def _scaling_policy(policy: Object, path: str) -> Errors:
    found: Errors = []
    if policy["type"] not in ("Percent", "Pods"):
        found.append(unsupported(f"{path}.type", policy["type"], ("Percent", "Pods")))
    if policy["value"] <= 0:
        found.append(invalid(f"{path}.value", policy["value"], "must be greater than zero"))
    seconds = policy["periodSeconds"]
    if seconds <= 0:
        found.append(invalid(f"{path}.periodSeconds", seconds, "must be greater than zero"))
    if seconds > 1800:
        found.append(invalid(f"{path}.periodSeconds", seconds, "must be less than or equal to 1800"))
    return found


def lease(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        found.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    return found + checks.nonnegative(spec, "spec", "leaseTransitions")


def storage_class(obj: Object) -> Errors:
    provisioner = obj.get("provisioner", "")
    found: Errors = [] if provisioner else [required("provisioner")]
    if provisioner:
        found += checks.qualified_name("provisioner", provisioner.lower())
    found += checks.one_of("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    return found + checks.one_of("volumeBindingMode", obj.get("volumeBindingMode"), modes)


def update_storage_class(new: Object, old: Object) -> Errors:
    fields = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    return [e for field in fields for e in checks.frozen(field, new.get(field), old.get(field))]


def priority_class(obj: Object) -> Errors:
    found: Errors = []
    name = obj["metadata"].get("name", "")
    if name.startswith("system-"):
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        if name not in SYSTEM_PRIORITIES:
            found.append(forbidden("metadata.name", f"{text}{name} is not a known system priority class"))
        elif obj["value"] != SYSTEM_PRIORITIES[name]:
            text += f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
            found.append(forbidden("metadata.name", text))
    elif obj["value"] > MAX_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        found.append(forbidden("value", text))
    return found


def new_priority_class(obj: Object) -> Errors:
    policies = ("PreemptLowerPriority", "Never")
    return checks.one_of("preemptionPolicy", obj.get("preemptionPolicy"), policies)


def update_priority_class(new: Object, old: Object) -> Errors:
    found: Errors = []
    if new["value"] != old["value"]:
        found.append(forbidden("value", "may not be changed in an update."))
    ours, theirs = new.get("preemptionPolicy"), old.get("preemptionPolicy")
    return found + checks.immutable("preemptionPolicy", ours, theirs)


def runtime_class(obj: Object) -> Errors:
    handler = obj.get("handler", "")
    found = checks.texts("handler", handler, label_errors(handler)) if handler else [required("handler")]
    for name, text in sorted(((obj.get("overhead") or {}).get("podFixed") or {}).items()):
        path = f"overhead.limits[{name}]"
        found += container_resource(path, name) + checks.quantity_not_negative(path, text)
    scheduling = obj.get("scheduling") or {}
    found += checks.labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    return found + tolerations(scheduling.get("tolerations"), "scheduling.tolerations")


def update_runtime_class(new: Object, old: Object) -> Errors:
    return checks.frozen("handler", new.get("handler"), old.get("handler"))


def role(obj: Object) -> Errors:
    return [e for i, rule in enumerate(obj.get("rules") or ()) for e in _rule(rule, f"rules[{i}]", namespaced=True)]


def cluster_role(obj: Object) -> Errors:
    found = [e for i, rule in enumerate(obj.get("rules") or ()) for e in _rule(rule, f"rules[{i}]", namespaced=False)]
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return found
    path = "aggregationRule.clusterRoleSelectors"
    if not aggregation.get("clusterRoleSelectors"):
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        found.append(required(path, text))
    for index, selector in enumerate(aggregation.get("clusterRoleSelectors") or ()):
        problems = checks.label_selector(selector, f"{path}[{index}]")
        found += problems
        if problems:
            found.append(invalid(f"{path}[{index}]", None, "invalid label selector."))
    return found


def _rule(rule: Object, path: str, *, namespaced: bool) -> Errors:
    found: Errors = []
    urls = rule.get("nonResourceURLs")
    targets = rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames")
    verbs: Errors = [] if rule.get("verbs") else [required(f"{path}.verbs")]
    if urls:
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            found.append(invalid(f"{path}.nonResourceURLs", urls, text))
        if targets:
            text = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid(f"{path}.nonResourceURLs", urls, text))
        return found + verbs
    if not rule.get("apiGroups"):
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found + verbs


def role_binding(obj: Object) -> Errors:
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(obj: Object) -> Errors:
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Object, kinds: tuple[str, ...], *, namespaced: bool) -> Errors:
    reference = obj["roleRef"]
    found = checks.one_of("roleRef.apiGroup", reference["apiGroup"], (RBAC,))
    if reference["kind"] not in kinds:
        found.append(unsupported("roleRef.kind", reference["kind"], kinds))
    found += checks.texts("roleRef.name", reference["name"], path_segment_errors(reference["name"]))
    missing: Errors = []
    for index, subject in enumerate(obj.get("subjects") or ()):
        found += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
        if not subject["name"]:
            missing.append(required(f"subjects[{index}].name"))
    if not reference["name"]:
        missing.append(required("roleRef.name"))
    return found + missing


def _subject(subject: Object, path: str, *, namespaced: bool) -> Errors:
    kind, name, group = subject["kind"], subject["name"], subject.get("apiGroup", "")
    found: Errors = []
    if kind == "ServiceAccount":
        found += checks.subdomain(f"{path}.name", name)
        if group:
            found.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            found.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != RBAC:
            found.append(unsupported(f"{path}.apiGroup", group, (RBAC,)))
    else:
        found.append(unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return found


def update_binding(new: Object, old: Object) -> Errors:
    reference = new["roleRef"]
    if reference == old["roleRef"]:
        return []
    shown = {"APIGroup": reference["apiGroup"], "Kind": reference["kind"], "Name": reference["name"]}
    return [invalid("roleRef", checks.go_struct(shown), "field is immutable")]
