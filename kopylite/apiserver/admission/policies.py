"""Admission policies: which ones a request meets, with which bindings and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kopylite.apiserver.admission.matching import label_selector_matches, matched, namespace_of, selectors_match
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.world import Admission, World, object_in

Object = dict[str, Any]
GROUP = "admissionregistration.k8s.io"


class Misconfigured(Exception):
    """A policy or a binding cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One policy, one of its bindings, and one of the binding's parameters.

    Attributes:
        resource: in whose version the policy wants to see the request.
        problem: why it cannot be used: what the failure policy is about; "" if it can. `binding` is None then if that
            is the policy's own.
    """

    policy: Object
    resource: Resource
    binding: Object | None = None
    param: Object | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        return str(self.policy["metadata"]["name"])

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.policy["spec"]
        return spec

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


def invocations(world: World, admission: Admission, plural: str) -> Iterator[Invocation]:
    """The policies of a kind that are about the request, by name, each with the bindings and parameters that are."""
    bindings: dict[str, list[Object]] = {}
    for record in _all(world, f"{plural.removesuffix('ies')}ybindings"):
        bindings.setdefault(record["spec"].get("policyName", ""), []).append(record)
    if not bindings:
        return
    for policy in _all(world, plural):
        bound = bindings.get(policy["metadata"]["name"])
        constraints = policy["spec"].get("matchConstraints") or {}
        resource = _matches(world, admission, constraints) if bound else None
        if resource is None:
            continue
        kind = policy["spec"].get("paramKind")
        params = None if kind is None else world.registry.find_kind(kind["apiVersion"], kind["kind"])
        if kind is not None and params is None:
            shown = f"{kind['apiVersion']}, Kind={kind['kind']}"
            text = f"failed to configure policy: failed to find resource referenced by paramKind: '{shown}'"
            yield Invocation(policy, resource, problem=text)
            continue
        for binding in bound or ():
            own = binding["spec"].get("matchResources")
            if own is None or _matches(world, admission, own, anything=True) is not None:
                yield from _with_params(world, admission, Invocation(policy, resource, binding), params)


def _all(world: World, plural: str) -> Iterator[Object]:
    """As they are when the first is asked for: others may go while one is awaited."""
    records = world.store.collection(f"{plural}.{GROUP}").records
    for record in [records[key] for key in sorted(records)]:
        yield record.decode()


def _matches(
    world: World, admission: Admission, constraints: Mapping[str, Any], *, anything: bool = False
) -> Resource | None:
    """In whose version the request matches; None if it does not.

    Args:
        anything: no rules mean every request.
    """
    policy = constraints.get("matchPolicy") or "Equivalent"
    if not selectors_match(world, admission, constraints):
        return None
    if matched(world, admission, constraints.get("excludeResourceRules") or (), policy) is not None:
        return None
    rules = constraints.get("resourceRules")
    if anything and not rules:
        return admission.call.resource
    found = matched(world, admission, rules or (), policy)
    return None if found is None else found.resource


def _with_params(
    world: World, admission: Admission, invocation: Invocation, kind: Resource | None
) -> Iterator[Invocation]:
    assert invocation.binding is not None, "parameters are those of a binding"
    reference = invocation.binding["spec"].get("paramRef")
    if kind is None or reference is None:
        yield invocation
        return
    policy, resource, binding = invocation.policy, invocation.resource, invocation.binding
    try:
        found = list(_params(world, admission, reference, kind))
    except Misconfigured as wrong:
        yield Invocation(policy, resource, binding, problem=f"failed to configure binding: {wrong}")
        return
    for param in found:
        yield Invocation(policy, resource, binding, param)


def _params(world: World, admission: Admission, reference: Mapping[str, Any], kind: Resource) -> Iterator[Object]:
    namespace = reference.get("namespace") or ""
    if namespace and not kind.namespaced:
        raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if kind.namespaced and not (namespace := namespace or namespace_of(admission)):
        text = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise Misconfigured(text)
    prefix = f"{namespace}/" if kind.namespaced else ""
    if name := reference.get("name"):
        record = world.store.get(kind.storage, prefix + name)
        found = [] if record is None else [object_in(kind, record)]
    else:
        selector, store = reference.get("selector"), world.store
        records = store.collection(kind.storage).scan(prefix, prefix, store.version)
        found = [object_in(kind, each) for each in records if label_selector_matches(selector, each.labels)]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    yield from found


def namespace_object(world: World, admission: Admission) -> Object | None:
    """`namespaceObject`: the namespace of the request, None at the cluster scope; ownership is not shown."""
    name = admission.call.target.namespace
    if not name or admission.call.resource.storage == "namespaces":
        return None
    found = world.lookup("", "namespaces", "", name)
    if found is not None:
        for hidden in ("managedFields", "ownerReferences"):
            found["metadata"].pop(hidden, None)
    return found
