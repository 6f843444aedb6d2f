"""MutatingAdmissionPolicies: expressions that change the object, by a JSON patch or by an apply configuration.

As apiserver's admission/plugin/policy/mutating/dispatcher.go.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kopylite.apiserver.admission.conversion import Versions
from kopylite.apiserver.admission.expressions import Authorize, ConditionFailed, conditions_match, variables_of
from kopylite.apiserver.admission.matching import is_exempt
from kopylite.apiserver.admission.policies import Invocation, invocations, namespace_object
from kopylite.apiserver.admission.policy_programs import Evaluation, ExpressionFailed
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.aside import aside
from kopylite.apiserver.patching.apply import merge_configuration
from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.cel.conversions import string
from kopylite.apiserver.schema.cel.values import OptionalValue, StructValue
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import Admission, World
from kopylite.errors import ApiError, Cause

Object = dict[str, Any]
_NAMES = ("object", "oldObject", "request", "authorizer", "params", "namespaceObject")


class MutationFailed(Exception):
    """A mutation cannot be made; the text says why."""


class MutatingPolicies:
    """A mutating plug-in."""

    def __init__(self, world: World, versions: Versions, authorize: Authorize) -> None:
        self._world = world
        self._versions = versions
        self._authorize = authorize

    async def __call__(self, admission: Admission) -> None:
        """Raises ApiError: a policy cannot be carried out, and says that this is no matter of indifference."""
        if is_exempt(admission.call.resource) or admission.obj is None:
            return
        again = admission.reinvocation
        failures: list[tuple[Invocation, str, str]] = []
        for invocation in invocations(self._world, admission, "mutatingadmissionpolicies"):
            if invocation.problem:
                failures.append((invocation, invocation.problem, "Forbidden"))
                continue
            key = _key(invocation)
            if again.round == 1 and key not in again.required:
                continue
            try:
                changed = await self._mutated(admission, invocation)
            except MutationFailed as failed:
                failures.append((invocation, str(failed), "Invalid"))
                continue
            if changed is None:
                continue
            if changed:
                again.require_previous()
                again.wanted = True
            if invocation.spec.get("reinvocationPolicy") == "IfNeeded":
                again.previous.add(key)
        counted = [failure for failure in failures if not failure[0].ignores_failures]
        if counted:
            raise _denied(admission, counted)

    async def _mutated(self, admission: Admission, invocation: Invocation) -> bool | None:
        """Whether the policy changed the object; None if its conditions are not met. Raises MutationFailed."""
        spec, resource, changed = invocation.spec, invocation.resource, False
        variables = await self._variables(admission, invocation)
        conditions, policy = spec.get("matchConditions"), spec.get("failurePolicy", "Fail")
        if conditions:
            try:
                if not await aside(lambda: conditions_match(conditions, variables, policy, _NAMES)):
                    return None
            except ConditionFailed as failed:
                raise MutationFailed(str(failed)) from None
        for mutation in spec.get("mutations") or ():
            variables = await self._variables(admission, invocation)
            before = variables["object"]
            bound = dict(variables)
            patched = await aside(lambda m=mutation, b=bound: _patched(spec, m, b, resource))  # type: ignore[misc]
            changed |= await self._versions.take(admission, resource, before, patched)
        return changed

    async def _variables(self, admission: Admission, invocation: Invocation) -> Mapping[str, Any]:
        objects = await self._versions.both(admission, invocation.resource)
        variables = variables_of(admission, invocation.resource, objects, self._authorize)
        space = namespace_object(self._world, admission)
        return {**variables, "params": invocation.param, "namespaceObject": space}


def _key(invocation: Invocation) -> tuple[str, str]:
    binding = invocation.binding["metadata"]["name"] if invocation.binding else ""
    param = (invocation.param or {}).get("metadata") or {}
    return f"policy {invocation.name}", f"{binding} {param.get('namespace', '')}/{param.get('name', '')}"


def _patched(spec: Mapping[str, Any], mutation: Mapping[str, Any], variables: Object, resource: Resource) -> Object:
    """The object after a mutation. Pure. Raises MutationFailed."""
    evaluation, obj = Evaluation(spec, variables), variables["object"]
    try:
        if mutation["patchType"] == "JSONPatch":
            return _json_patched(obj, evaluation.value(mutation["jsonPatch"]["expression"]))
        wanted = evaluation.value(mutation["applyConfiguration"]["expression"])
    except ExpressionFailed as failed:
        raise MutationFailed(str(failed)) from None
    if not isinstance(wanted, StructValue):
        raise MutationFailed(f"unsupported return type from ApplyConfiguration expression: {type(wanted).__name__}")
    _check_types(wanted, "Object")
    configuration = {"apiVersion": resource.api_version, "kind": resource.kind, **to_json(wanted)}
    try:
        return merge_configuration(copy.deepcopy(obj), configuration, resource.strategy.schema)
    except ValueError as wrong:
        raise MutationFailed(f"error applying patch: {wrong}") from None


def _json_patched(obj: Object, operations: Any) -> Object:
    if not isinstance(operations, list):
        raise MutationFailed("type mismatch: JSONPatchType.expression should evaluate to array")
    patch = []
    for operation in operations:
        if not isinstance(operation, StructValue) or operation.type != "JSONPatch":
            raise MutationFailed("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        _check_types(operation.get("value"), None)
        patch.append(to_json(operation))
    patched: Any = copy.deepcopy(obj)
    for step in patch:
        try:
            patched = json_patch(patched, [step])
        except ApiError as error:
            if step.get("op") == "test":
                return obj  # what fails its test is not patched at all
            raise MutationFailed(f"JSON Patch: {error.message}") from None
    if not isinstance(patched, dict):
        raise MutationFailed("JSON Patch: the patched object is no object")
    return patched


def _check_types(value: Any, wanted: str | None) -> None:
    """Objects in fields must be of the types of these fields. Raises MutationFailed."""
    if isinstance(value, StructValue):
        if wanted is not None and value.type != wanted:
            found = f"unexpected type name {go_quote(value.type)}, expected {go_quote(wanted)}"
            raise MutationFailed(f"type mismatch: {found}, which matches field name path from root Object type")
        for name, inner in value.items():
            _check_types(inner, f"{value.type}.{name}")
    elif isinstance(value, (list, dict)):
        for inner in value if isinstance(value, list) else value.values():
            _check_types(inner, wanted)


def to_json(value: Any) -> Any:
    """A value of CEL as JSON has it."""
    if isinstance(value, dict):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [to_json(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime, timedelta)):
        return string(value)
    if isinstance(value, OptionalValue):
        return to_json(value.value()) if value.has_value() else None
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _denied(admission: Admission, failures: list[tuple[Invocation, str, str]]) -> ApiError:
    texts = []
    for invocation, message, _ in failures:
        if invocation.binding is not None:
            about = f"policy '{invocation.name}' with binding '{invocation.binding['metadata']['name']}'"
        else:
            about = f"policy {go_quote(invocation.name)}"
        texts.append(f"{about} denied request: {message}")
    error = forbidden(admission, "admission request denied by policy")
    return ApiError(
        texts[0],
        code=error.code,
        reason=failures[0][2],
        details=error.details,
        causes=[Cause("", text) for text in texts],
    )
