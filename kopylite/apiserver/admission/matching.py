"""Which requests a webhook or a policy is about: rules, selectors, equivalent versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kopylite.apiserver.request.selectors import parse_label_selector, selector_text
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.world import Admission, World, not_found
from kopylite.errors import ApiError

Object = dict[str, Any]
_CONFIGURATION = "admissionregistration.k8s.io"
_KINDS = frozenset(
    {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
     "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
)  # fmt: skip


def is_exempt(resource: Resource) -> bool:
    """What decides on requests is no subject of such decisions: a mistake could not be undone."""
    return resource.group == _CONFIGURATION and resource.kind in _KINDS


def namespace_of(admission: Admission) -> str:
    """The namespace of the request; of a Namespace: itself."""
    call = admission.call
    if call.resource.storage == "namespaces":
        return name_of(admission)
    return call.target.namespace


def name_of(admission: Admission) -> str:
    """The name in the path or in the object; "" while it is to be generated."""
    shown = (admission.obj or admission.old or {}).get("metadata") or {}
    return str(admission.call.target.name or shown.get("name") or "")


@dataclass(frozen=True, slots=True)
class Match:
    """The resource in whose version a webhook or policy wants to see the request."""

    resource: Resource
    rule: Mapping[str, Any]


def matched(world: World, admission: Admission, rules: Iterable[Mapping[str, Any]], policy: str) -> Match | None:
    """The first rule that the request matches, itself or (policy Equivalent) in another version; None for none."""
    listed = list(rules)
    resource = admission.call.resource
    for rule in listed:
        if rule_matches(rule, admission, resource):
            return Match(resource, rule)
    if policy != "Exact":
        for rule in listed:
            for other in equivalents(world, resource):
                if rule_matches(rule, admission, other):
                    return Match(other, rule)
    return None


def equivalents(world: World, resource: Resource) -> Iterator[Resource]:
    """Other versions and groups of the same objects."""
    for other in world.registry:
        if other.storage == resource.storage and other.api_version != resource.api_version:
            yield other


def rule_matches(rule: Mapping[str, Any], admission: Admission, resource: Resource) -> bool:
    operations, scope = rule.get("operations") or (), rule.get("scope") or "*"
    cluster = resource.storage == "namespaces" or not namespace_of(admission)
    if scope != "*" and cluster != (scope == "Cluster"):
        return False
    if "*" not in operations and admission.operation not in operations:
        return False
    if not _listed(rule.get("apiGroups"), resource.group) or not _listed(rule.get("apiVersions"), resource.version):
        return False
    names = rule.get("resourceNames")
    if names and name_of(admission) not in names:
        return False
    return any(_names(text, resource.plural, admission.call.target.subresource) for text in rule.get("resources") or ())


def _listed(items: Iterable[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _names(text: str, plural: str, subresource: str) -> bool:
    resource, _, part = text.partition("/")
    return resource in ("*", plural) and part in ("*", subresource)


def label_selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """An absent selector matches everything. Raises BadRequest for one that is none."""
    if not selector or not any(selector.values()):
        return True
    return parse_label_selector(selector_text(dict(selector))).matches(labels or {})


def namespace_labels(world: World, admission: Admission) -> Mapping[str, str]:
    """Of the request's namespace. Raises NotFound: there is none."""
    call = admission.call
    if call.resource.storage == "namespaces" and not call.target.subresource and admission.obj is not None:
        return _labels(admission.obj)
    name = namespace_of(admission)
    found = world.lookup("", "namespaces", "", name)
    if found is None:
        namespaces = world.registry.find("", "v1", "namespaces")
        raise not_found(namespaces, name) if namespaces is not None else ApiError(f"no namespace {name}")
    return _labels(found)


def selectors_match(world: World, admission: Admission, owner: Mapping[str, Any]) -> bool:
    """Whether the namespaceSelector and objectSelector of a webhook or policy take the request.

    Raises:
        NotFound: there is no such namespace.
    """
    by_namespace = owner.get("namespaceSelector")
    in_namespace = namespace_of(admission) or admission.call.resource.storage == "namespaces"
    by_object = owner.get("objectSelector")
    if by_object and any(by_object.values()):
        shown = [obj for obj in (admission.obj, admission.old) if obj is not None]
        if not any(label_selector_matches(by_object, _labels(obj)) for obj in shown):
            return False
    if not in_namespace or not by_namespace or not any(by_namespace.values()):
        return True
    return label_selector_matches(by_namespace, namespace_labels(world, admission))


def _labels(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}
