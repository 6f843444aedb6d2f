"""Validation of Job and CronJob. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.cron import schedule_problem, time_zone_problem
from kopylite.apiserver.builtin.preparation_groups import CONTROLLER_UID
from kopylite.apiserver.builtin.validation_pods import pod_template
from kopylite.apiserver.schema.field_errors import (
    OMITTED,
    duplicate,
    go_quote,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from kopylite.apiserver.schema.names import label_errors

_MISMATCH = "`selector` does not match template `labels`"
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MOST_RULES, _MOST_CODES = 20, 255
_MANY, _FEWER = 100_000, 10_000


def job(obj: Object) -> Errors:
    spec, metadata = obj["spec"], obj["metadata"]
    found: Errors = []
    template, selector = spec["template"], spec.get("selector")
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += checks.label_selector(selector, "spec.selector")
    found += _job_spec(spec, "spec")
    labels = template["metadata"].get("labels") or {}
    if not checks.label_selector(selector, "") and not checks.selects(selector, labels):
        shown = template["metadata"].get("labels")
        found.append(invalid("spec.template.metadata.labels", shown, _MISMATCH))
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        name = f"{metadata.get('name', '')}-{spec['completions'] - 1}"
        found += [invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {name}")
                  for _ in label_errors(name)]  # fmt: skip
    return found


def generated_selector(obj: Object) -> Errors:
    """A new job has the selector and labels that the server made, unless the user makes them."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return []
    labels = spec["template"]["metadata"].get("labels") or {}
    expected = {"matchLabels": {CONTROLLER_UID: metadata.get("uid", "")}}
    found: Errors = []
    for key, value in (
        ("controller-uid", metadata.get("uid", "")),
        (CONTROLLER_UID, metadata.get("uid", "")),
        ("job-name", metadata.get("name", "")),
        ("batch.kubernetes.io/job-name", metadata.get("name", "")),
    ):
        where = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            found.append(required(where, f"must be '{value}'"))
        elif labels[key] != value:
            found.append(invalid(where, labels, f"must be '{value}'"))
    legacy = {"matchLabels": {"controller-uid": metadata.get("uid", "")}}
    if spec.get("selector") not in (expected, legacy):
        found.append(invalid("spec.selector", spec.get("selector"), "`selector` not auto-generated"))
    return found


def _job_spec(spec: Object, path: str) -> Errors:
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    found = checks.nonnegative(spec, path, *numbers, "backoffLimitPerIndex", "maxFailedIndexes")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    manager = spec.get("managedBy")
    if manager is not None:
        found += checks.domain_path(f"{path}.managedBy", manager)
        found += [too_long(f"{path}.managedBy", 63)] if len(manager.encode()) > 63 else []
    found += _completion(spec, path)
    if spec.get("podFailurePolicy") is not None:
        found += _failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        found += _success_policy(spec, f"{path}.successPolicy")
    policy = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    if policy is not None and policy not in allowed:
        found.append(unsupported(f"{path}.podReplacementPolicy", policy, allowed))
    found += pod_template(spec["template"], f"{path}.template")
    return found + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _restart_policy(spec: Object, path: str) -> Errors:
    restart = spec["template"]["spec"].get("restartPolicy", "")
    if restart in ("Always", ""):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if restart not in ("OnFailure", "Never"):
        return [unsupported(path, restart, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and restart != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(path, restart, text)]
    return []


def _completion(spec: Object, path: str) -> Errors:
    mode = spec.get("completionMode")
    found: Errors = []
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        found.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        found += _indexed(spec, path)
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if mode in (None, "NonIndexed") and spec.get(field) is not None:
            found.append(invalid(f"{path}.{field}", spec[field], "requires indexed completion mode"))
    return found


def _indexed(spec: Object, path: str) -> Errors:
    completions, parallelism, failed = (spec.get(f) for f in ("completions", "parallelism", "maxFailedIndexes"))
    found: Errors = []
    if completions is None:
        found.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if (parallelism or 0) > _MANY:
        text = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        found.append(invalid(f"{path}.parallelism", parallelism, text))
    if completions is not None and failed is not None and failed > completions:
        found.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if (failed or 0) > _MANY:
        found.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY}"))
    if (completions or 0) <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return found
    if failed is None:
        text = f"must be specified when completions is above {_MANY}"
        found.append(required(f"{path}.maxFailedIndexes", text))
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if (value or 0) > _FEWER:
            text = f"must be less than or equal to {_FEWER} when completions are above {_MANY}"
            text = f"{text} and used with backoff limit per index"
            found.append(invalid(f"{path}.{field}", value, text))
    return found


def _failure_policy(spec: Object, path: str) -> Errors:
    rules = spec["podFailurePolicy"].get("rules") or ()
    template = spec["template"]["spec"]
    names = {c.get("name") for field in ("containers", "initContainers") for c in template.get(field) or ()}
    found: Errors = [too_many(f"{path}.rules", len(rules), _MOST_RULES)] if len(rules) > _MOST_RULES else []
    for index, rule in enumerate(rules):
        where, action = f"{path}.rules[{index}]", rule.get("action", "")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        found += _named(f"{where}.action", action, _ACTIONS)
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            text = "requires the backoffLimitPerIndex to be set"
            found.append(invalid(f"{where}.action", action, text))
        if codes is not None:
            found += _exit_codes(codes, f"{where}.onExitCodes", names)
        for position, condition in enumerate(conditions):
            here = f"{where}.onPodConditions[{position}]"
            found += checks.qualified_name(f"{here}.type", condition.get("type", ""))
            found += _named(f"{here}.status", condition.get("status", ""), ("False", "True", "Unknown"))
        if codes is not None and conditions:
            found.append(invalid(where, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported"))
        if codes is None and not conditions:
            found.append(invalid(where, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required"))
    return found


def _named(field: str, value: str, allowed: tuple[str, ...]) -> Errors:
    """A value of an enum that has to be there; the error of a missing one lists what there is."""
    if not value:
        listed = " ".join(f'"{one}"' for one in allowed)
        return [required(field, f"valid values: [{listed}]")]
    return checks.one_of(field, value, allowed)


def _exit_codes(codes: Object, path: str, names: Collection[str]) -> Errors:
    operator, name, values = codes.get("operator", ""), codes.get("containerName"), codes.get("values") or []
    found = _named(f"{path}.operator", operator, ("In", "NotIn"))
    if name is not None and name not in names:
        text = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(f"{path}.containerName", name, text))
    where = f"{path}.values"
    if not values:
        found.append(invalid(where, None, "at least one value is required"))
    if len(values) > _MOST_CODES:
        found.append(too_many(where, len(values), _MOST_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(invalid(f"{where}[{index}]", value, "must not be 0 for the In operator"))
        found += [duplicate(f"{where}[{index}]", value)] if value in seen else []
        seen.add(value)
    return found if values == sorted(values) else [*found, invalid(where, values, "must be ordered")]


def _success_policy(spec: Object, path: str) -> Errors:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown = checks.go_struct(
            {"Rules": [{"SucceededIndexes": r.get("succeededIndexes"), "SucceededCount": r.get("succeededCount")}
                       for r in policy.get("rules") or ()] or None}
        )  # fmt: skip
        return [invalid(path, shown, "requires indexed completion mode")]
    rules, where = policy.get("rules") or (), f"{path}.rules"
    found: Errors = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        found.append(required(where, text))
    found += [too_many(where, len(rules), _MOST_RULES)] if len(rules) > _MOST_RULES else []
    for index, rule in enumerate(rules):
        found += _success_rule(rule, f"{where}[{index}]", spec.get("completions") or 0)
    return found


def _success_rule(rule: Object, path: str, completions: int) -> Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    found: Errors = []
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        found.append(required(path, text))
    named = 0
    if indexes is not None:
        named, problem = _indexes(indexes, completions)
        if problem:
            text = f"error parsing succeededIndexes: {problem}"
            found.append(invalid(f"{path}.succeededIndexes", indexes, text))
    where = f"{path}.succeededCount"
    found += checks.nonnegative(rule, path, "succeededCount")
    if count is not None and count > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        found.append(invalid(where, count, text))
    if count is not None and indexes is not None and count > named:
        text = f"must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
        found.append(invalid(where, count, text))
    return found


def _indexes(text: str, completions: int) -> tuple[int, str]:
    """How many indexes `1,3-5` names, and what is wrong with it."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        parts = interval.split("-")
        if len(parts) > 2:
            rule = "an index interval can have at most two parts separated by '-'"
            return 0, f"the fragment {go_quote(interval)} violates the requirement that {rule}"
        for part in parts:
            if not re.fullmatch(r"[+-]?[0-9]{1,18}", part):
                return 0, f"cannot convert string to integer for index: {go_quote(part)}"
            if int(part) >= completions:
                return 0, f"too large index: {go_quote(part)}"
        first, end = int(parts[0]), int(parts[-1])
        before = last if last >= first else first
        if last >= first or (len(parts) == 2 and first >= end):
            return 0, f"non-increasing order, previous: {before}, current: {first if last >= first else end}"
        total, last = total + end - first + 1, end
    return total, ""


def update_job(new: Object, old: Object) -> Errors:
    spec, before = new["spec"], old["spec"]
    found: Errors = []
    if spec.get("completions") != before.get("completions"):
        indexed = spec.get("completionMode") == "Indexed"
        if not indexed:
            found += checks.immutable("spec.completions", spec.get("completions"), before.get("completions"))
        elif spec.get("completions") not in (None, spec.get("parallelism")):
            text = "can only be modified in tandem with spec.parallelism"
            found.append(invalid("spec.completions", spec["completions"], text))
    found += checks.immutable("spec.selector", spec.get("selector"), before.get("selector"))
    found += _same_job_template(spec, before, old)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found += checks.immutable(f"spec.{field}", spec.get(field), before.get(field))
    return found


def _same_job_template(spec: Object, before: Object, old: Object) -> Errors:
    """Where its pods may run can be changed while a job is suspended and never started."""
    template, known = spec["template"], before["template"]
    if _can_move(old):
        template = {**template, "metadata": {**template["metadata"]}, "spec": {**template["spec"]}}
        template["metadata"] = {**known["metadata"]}
        for field in ("nodeSelector", "affinity", "tolerations", "schedulingGates"):
            if field in known["spec"]:
                template["spec"][field] = known["spec"][field]
            else:
                template["spec"].pop(field, None)
    return checks.immutable("spec.template", template, known)


def _can_move(old: Object) -> bool:
    """Is a job suspended, and without a pod?"""
    status = old.get("status") or {}
    conditions = status.get("conditions") or ()
    suspended = any(c.get("type") == "Suspended" and c.get("status") == "True" for c in conditions)
    return bool(old["spec"].get("suspend")) and not status.get("active") and (suspended or not status.get("startTime"))


def cron_job(obj: Object) -> Errors:
    spec = obj["spec"]
    own: Errors = []
    schedule = spec["schedule"]
    if schedule and (problem := schedule_problem(schedule)):
        own.append(invalid("spec.schedule", schedule, problem))
    zone = spec.get("timeZone")
    if zone is not None:
        problem = "timeZone must be nil or non-empty string" if not zone else time_zone_problem(zone)
        if problem:
            own.append(invalid("spec.timeZone", zone, problem))
    own += checks.nonnegative(spec, "spec", "startingDeadlineSeconds")
    own += checks.one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    inner, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
    own += _job_spec(inner, path)
    if inner.get("selector") is not None:
        own.append(invalid(f"{path}.selector", inner["selector"], "`selector` will be auto-generated"))
    if inner.get("manualSelector"):
        own.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
    own += checks.nonnegative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return own if schedule else [*own, required("spec.schedule")]
