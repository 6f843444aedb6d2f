"""Validation of disruption budgets, autoscalers, leases, classes, RBAC and webhook configurations. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors, path_segment_errors, subdomain_errors

RBAC = "rbac.authorization.k8s.io"
MAX_USER_PRIORITY = 1_000_000_000


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
    if not reference.get("apiVersion"):
        found.append(invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group"))
    for index, metric in enumerate(metrics):
        found += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(forbidden("spec.metrics", text))
    return [*found, required("spec.maxReplicas")] if most == 0 else found


def _metric(metric: Object, path: str) -> Errors:
    kind = metric.get("type", "")
    if not kind:
        return [required(f"{path}.type", "must specify a metric source type")]
    if kind not in _METRICS:
        return [unsupported(f"{path}.type", kind, sorted(_METRICS))]
    source = metric.get(_METRICS[kind])
    if source is None:
        return [required(f"{path}.{_METRICS[kind]}", "must populate information for the given metric source")]
    found: Errors = []
    where = f"{path}.{_METRICS[kind]}"
    if kind in ("Resource", "ContainerResource"):
        if not source["name"]:
            found.append(required(f"{where}.name", "must specify a resource name"))
        target = source["target"]
        found += _target_type(target, f"{where}.target")
        if target.get("averageUtilization") is None and target.get("averageValue") is None:
            text = "must set either a target raw value or a target utilization"
            found.append(required(f"{where}.target.averageUtilization", text))
        elif target.get("averageUtilization") is not None and target.get("averageValue") is not None:
            text = "may not set both a target raw value and a target utilization"
            found.append(forbidden(f"{where}.target.averageValue", text))
        if (target.get("averageUtilization") or 1) < 1:
            text = "must be greater than 0"
            found.append(invalid(f"{where}.target.averageUtilization", target["averageUtilization"], text))
    else:
        found += _target_type(source["target"], f"{where}.target")
    return found


def _target_type(target: Object, path: str) -> Errors:
    kind = target.get("type", "")
    if not kind:
        return [required(f"{path}.type", "must specify a metric target type")]
    if kind in ("Utilization", "Value", "AverageValue"):
        return []
    return [invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")]


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
    if obj["value"] > MAX_USER_PRIORITY and not obj["metadata"].get("name", "").startswith("system-"):
        text = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        found.append(forbidden("value", text))
    policies = ("PreemptLowerPriority", "Never")
    return found + checks.one_of("preemptionPolicy", obj.get("preemptionPolicy"), policies)


def update_priority_class(new: Object, old: Object) -> Errors:
    found: Errors = []
    if new["value"] != old["value"]:
        found.append(forbidden("value", "may not be changed in an update."))
    ours, theirs = new.get("preemptionPolicy"), old.get("preemptionPolicy")
    return found + checks.immutable("preemptionPolicy", ours, theirs)


def runtime_class(obj: Object) -> Errors:
    handler = obj.get("handler", "")
    return checks.texts("handler", handler, label_errors(handler)) if handler else [required("handler")]


def update_runtime_class(new: Object, old: Object) -> Errors:
    return checks.immutable("handler", new.get("handler"), old.get("handler"))


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


_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def mutating_webhooks(obj: Object) -> Errors:
    return _webhooks(obj, mutating=True)


def validating_webhooks(obj: Object) -> Errors:
    return _webhooks(obj, mutating=False)


def _webhooks(obj: Object, *, mutating: bool) -> Errors:
    found: Errors = []
    names: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        found += _webhook(webhook, path)
        if mutating:
            policy = webhook.get("reinvocationPolicy")
            found += checks.one_of(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
        found += _hook_client(webhook["clientConfig"], f"{path}.clientConfig")
        found += _review_versions(webhook, path)
        if webhook["name"] in names:
            found.append(duplicate(f"{path}.name", webhook["name"]))
        names.add(webhook["name"])
    return found


def _webhook(webhook: Object, path: str) -> Errors:
    found: Errors = []
    name = webhook["name"]
    found += checks.texts(f"{path}.name", name, subdomain_errors(name))
    if name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        found.append(invalid(f"{path}.name", name, text))
    for index, rule in enumerate(webhook.get("rules") or ()):
        found += _hook_rule(rule, f"{path}.rules[{index}]")
    found += checks.one_of(f"{path}.failurePolicy", webhook.get("failurePolicy"), ("Fail", "Ignore"))
    found += checks.one_of(f"{path}.matchPolicy", webhook.get("matchPolicy"), ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        found.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    else:
        found += checks.one_of(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        found.append(invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds"))
    for field in ("namespaceSelector", "objectSelector"):
        found += checks.label_selector(webhook.get(field), f"{path}.{field}")
    return found


def _hook_rule(rule: Object, path: str) -> Errors:
    found: Errors = []
    operations = rule.get("operations") or ()
    if not operations:
        found.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        found.append(invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations"))
    for index, operation in enumerate(operations):
        found += checks.one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field in ("apiGroups", "apiVersions", "resources"):
        values: Any = rule.get(field) or ()
        if not values:
            found.append(required(f"{path}.{field}"))
        if field != "resources" and len(values) > 1 and "*" in values:
            what = "API groups" if field == "apiGroups" else "API versions"
            found.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {what}"))
    return found + checks.one_of(f"{path}.scope", rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _hook_client(client: Object, path: str) -> Errors:
    url, service = client.get("url"), client.get("service")
    found: Errors = []
    if url is not None and service is None:
        parts = urlsplit(url)
        form = "https://host[/path]"
        if parts.scheme != "https":
            text = f"'https' is the only allowed URL scheme; desired format: {form}"
            found.append(invalid(f"{path}.url", parts.scheme, text))
        if not parts.netloc:
            found.append(invalid(f"{path}.url", "", f"host must be specified; desired format: {form}"))
        return found
    if service is None or url is not None:
        return [required(path, "exactly one of url or service is required")]
    for field in ("name", "namespace"):
        if not service[field]:
            found.append(required(f"{path}.service.{field}"))
    return found + checks.port_number(f"{path}.service.port", service.get("port", 443))


def _review_versions(webhook: Object, path: str) -> Errors:
    versions = webhook.get("admissionReviewVersions") or []
    where = f"{path}.admissionReviewVersions"
    if not versions:
        return [required(where, "must specify one of v1, v1beta1")]
    if not {"v1", "v1beta1"} & set(versions):
        return [invalid(where, versions, "must include at least one of v1, v1beta1")]
    return []


def update_request_status(request: Object, old: Object) -> Errors:
    """What `/status` of a request for a certificate may not do."""
    path, found = "status.conditions", []
    for kind in ("Approved", "Denied", "Failed"):
        before, after = _conditions(old, kind), _conditions(request, kind)
        if len(after) < len(before):
            found.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        if len(after) > len(before) and kind != "Failed":
            found.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
    given = old["status"].get("certificate")
    if given and request["status"].get("certificate") != given:
        found.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return found


def _conditions(obj: Object, kind: str) -> list[Object]:
    return [c for c in obj["status"].get("conditions") or () if c.get("type") == kind]
