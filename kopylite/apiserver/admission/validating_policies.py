"""ValidatingAdmissionPolicies: expressions that say no, warn, or note something for the audit log.

As apiserver's admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kopylite.apiserver.admission.conversion import Versions
from kopylite.apiserver.admission.expressions import Authorize, ConditionFailed, conditions_match, variables_of
from kopylite.apiserver.admission.matching import is_exempt
from kopylite.apiserver.admission.policies import Invocation, invocations, namespace_object
from kopylite.apiserver.admission.policy_programs import Evaluation, ExpressionFailed
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.aside import aside
from kopylite.apiserver.world import Admission, World
from kopylite.errors import Cause, error_from_status

_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_MAX_MESSAGE = 5 * 1024
_MAX_ANNOTATION = 10 * 1024
_FAILURES, _SHOWN_FAILURES = "validation.policy.admission.k8s.io/validation_failure", 50


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a policy finds wrong; `reason` is that of the Status, `index` that of the validation."""

    message: str
    reason: str = "Invalid"
    index: int = 0
    failed: bool = False


@dataclass(slots=True)
class _Findings:
    denials: list[tuple[Invocation, Refusal]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    annotations: dict[str, list[str]] = field(default_factory=dict)


class ValidatingPolicies:
    """A validating plug-in."""

    def __init__(self, world: World, versions: Versions, authorize: Authorize) -> None:
        self._world = world
        self._versions = versions
        self._authorize = authorize

    async def __call__(self, admission: Admission) -> None:
        """Raises ApiError: a policy says no."""
        if is_exempt(admission.call.resource):
            return
        findings = _Findings()
        for invocation in invocations(self._world, admission, "validatingadmissionpolicies"):
            if invocation.problem:
                if not invocation.ignores_failures:
                    findings.denials.append((invocation, Refusal(invocation.problem)))
                continue
            variables = await self._variables(admission, invocation)
            decided = await aside(lambda i=invocation, v=variables: _decide(i, v))  # type: ignore[misc]
            self._note(admission, invocation, decided, findings)
        self._finish(admission, findings)

    async def _variables(self, admission: Admission, invocation: Invocation) -> Mapping[str, Any]:
        objects = await self._versions.both(admission, invocation.resource)
        variables = variables_of(admission, invocation.resource, objects, self._authorize)
        space = namespace_object(self._world, admission)
        return {**variables, "params": invocation.param, "namespaceObject": space}

    def _note(self, admission: Admission, invocation: Invocation, decided: _Decided, findings: _Findings) -> None:
        assert invocation.binding is not None, "only policies with a problem have none"
        actions, name = (
            invocation.binding["spec"].get("validationActions") or (),
            invocation.binding["metadata"]["name"],
        )
        for refusal in decided.refusals:
            if refusal.failed and invocation.ignores_failures:
                continue
            if "Deny" in actions:
                findings.denials.append((invocation, refusal))
            if "Audit" in actions:
                findings.failures.append(
                    {
                        "message": refusal.message,
                        "policy": invocation.name,
                        "binding": name,
                        "expressionIndex": refusal.index,
                        "validationActions": list(actions),
                    }
                )
            if "Warn" in actions:
                about = f"ValidatingAdmissionPolicy '{invocation.name}' with binding '{name}'"
                admission.call.warnings.append(f"Validation failed for {about}: {refusal.message}")
        for key, text in decided.annotations:
            values = findings.annotations.setdefault(f"{invocation.name}/{key}", [])
            if text not in values:
                values.append(text)
        if decided.annotation_problem and not invocation.ignores_failures:
            findings.denials.append((invocation, Refusal(decided.annotation_problem)))

    def _finish(self, admission: Admission, findings: _Findings) -> None:
        audit = admission.call.request.audit
        audit.update({key: ", ".join(values) for key, values in findings.annotations.items()})
        if findings.failures:
            audit[_FAILURES] = msgspec.json.encode(findings.failures[:_SHOWN_FAILURES]).decode()
        if not findings.denials:
            return
        invocation, refusal = findings.denials[0]
        binding = f" with binding '{invocation.binding['metadata']['name']}'" if invocation.binding else ""
        text = f"ValidatingAdmissionPolicy '{invocation.name}'{binding} denied request: {refusal.message}"
        status = forbidden(admission, text).to_status()
        status |= {"reason": refusal.reason, "code": _CODES.get(refusal.reason, 500)}
        error = error_from_status(status)
        error.causes = (Cause("", text),)
        raise error


@dataclass(frozen=True, slots=True)
class _Decided:
    refusals: tuple[Refusal, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    annotation_problem: str = ""


def _decide(invocation: Invocation, variables: Mapping[str, Any]) -> _Decided:
    """What the policy says of the request. Pure: may be called twice."""
    spec = invocation.spec
    evaluation = Evaluation(spec, variables)
    conditions = spec.get("matchConditions")
    try:
        names = ("object", "oldObject", "request", "authorizer", "params", "namespaceObject")
        if conditions and not conditions_match(conditions, variables, spec.get("failurePolicy", "Fail"), names):
            return _Decided()
    except ConditionFailed as failed:
        return _Decided((Refusal(str(failed), failed=True),))
    refusals = tuple(_refusals(spec, evaluation))
    annotations: list[tuple[str, str]] = []
    for each in spec.get("auditAnnotations") or ():
        try:
            value = evaluation.value(each["valueExpression"])
        except ExpressionFailed as failed:
            return _Decided(refusals, tuple(annotations), str(failed))
        if isinstance(value, str) and value.strip():
            annotations.append((each["key"], value.strip()[:_MAX_ANNOTATION]))
    return _Decided(refusals, tuple(annotations))


def _refusals(spec: Mapping[str, Any], evaluation: Evaluation) -> Iterator[Refusal]:
    for index, validation in enumerate(spec.get("validations") or ()):
        try:
            if evaluation.value(validation["expression"]) is True:
                continue
        except ExpressionFailed as failed:
            yield Refusal(str(failed), index=index, failed=True)
            continue
        message = _message(validation, evaluation) or (validation.get("message") or "").strip()
        text = message or f"failed expression: {validation['expression'].strip()}"
        yield Refusal(text, validation.get("reason") or "Invalid", index)


def _message(validation: Mapping[str, Any], evaluation: Evaluation) -> str:
    """What the messageExpression yields; "" if there is none, or it is not fit to be shown."""
    expression = validation.get("messageExpression")
    if not expression:
        return ""
    try:
        text = evaluation.value(expression)
    except ExpressionFailed:
        return ""
    text = text.strip() if isinstance(text, str) else ""
    return "" if "\n" in text or len(text.encode()) > _MAX_MESSAGE else text
