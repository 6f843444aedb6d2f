"""Escalation: nobody hands out rights by roles and bindings that he does not hold himself, or may explicitly grant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kopylite.apiserver.access.authorization import Authorizer, refusal
from kopylite.apiserver.access.rbac import GROUP, PolicyRule, RbacAuthorizer, matches_path
from kopylite.apiserver.request.request import MASTERS, Target
from kopylite.apiserver.schema.field_errors import aggregate, go_quote
from kopylite.apiserver.world import Admission, Call, not_found
from kopylite.errors import ApiError, NotFound

_ROLES: Final = (f"roles.{GROUP}", f"clusterroles.{GROUP}")
_BINDINGS: Final = (f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}")
_EVERYTHING: Final[list[PolicyRule]] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
# Changing these grants nothing: the garbage collector has to.
_COLLECTED: Final = ("ownerReferences", "finalizers", "managedFields", "selfLink")
_COMPACT: Final = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


class EscalationCheck:
    """An admission plug-in, the last of those that come before validation: there upstream's storage looks.

    Args:
        authorizer: who may `escalate` and `bind`.
        rbac: who holds which rights.
    """

    def __init__(self, authorizer: Authorizer, rbac: RbacAuthorizer) -> None:
        self._authorizer = authorizer
        self._rbac = rbac

    async def __call__(self, admission: Admission) -> None:
        """Raises Forbidden; NotFound: of the role that a binding names."""
        call, obj = admission.call, admission.obj
        storage = call.resource.storage
        if obj is None or call.target.subresource or storage not in (*_ROLES, *_BINDINGS):
            return
        if MASTERS in call.request.user.groups or (admission.old and _only_for_collection(obj, admission.old)):
            return
        if storage in _ROLES:
            self._check_role(call, obj, admission.old or {})
        else:
            self._check_binding(call, obj)

    def _check_role(self, call: Call, role: dict[str, Any], old: dict[str, Any]) -> None:
        name = call.target.name
        if self._may(call, "escalate", call.resource.plural, name, call.target.namespace):
            return
        self._confirm(call, role, role.get("rules") or [])
        if (_aggregates(role) or _aggregates(old)) and self._missing(call, _EVERYTHING):
            raise _forbidden(call, role, "must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, call: Call, binding: dict[str, Any]) -> None:
        ref, namespace = binding.get("roleRef") or {}, call.target.namespace
        kind = ref.get("kind", "")
        if kind in ("Role", "ClusterRole"):
            target = (f"{kind.lower()}s", ref.get("name", ""), namespace, ref.get("apiGroup", ""))
            if self._may(call, "bind", *target):
                return
        try:
            rules = self._rbac.role_rules(ref, namespace)
        except NotFound as error:
            raise _as_of(call, error) from None
        self._confirm(call, binding, rules)

    def _may(self, call: Call, verb: str, plural: str, name: str, namespace: str, group: str = GROUP) -> bool:
        target = Target(verb, "", group, "*", plural, namespace, name)
        return self._authorizer.authorize(call.request.user, target).allowed

    def _confirm(self, call: Call, obj: dict[str, Any], rules: list[PolicyRule]) -> None:
        """Raises Forbidden: the user does not hold all of the rules."""
        missing = self._missing(call, rules)
        if not missing:
            return
        user = call.request.user
        groups = " ".join(go_quote(group) for group in user.groups)
        lines = "\n".join(sorted({_compact_text(rule) for rule in _compacted(missing)}))
        text = (
            f"user {go_quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently "
            f"held:\n{lines}"
        )
        errors = self._rbac.rules_for(user, call.target.namespace)[1]
        if errors:
            missed = aggregate(_as_of(call, error).message for error in errors)
            text += f"; resolution errors: [{missed}]"
        raise _forbidden(call, obj, text)

    def _missing(self, call: Call, rules: list[PolicyRule]) -> list[PolicyRule]:
        own_rules = self._rbac.rules_for(call.request.user, call.target.namespace)[0]
        wanted = [single for rule in rules for single in _broken_down(rule)]
        return [single for single in wanted if not any(_covers(own, single) for own in own_rules)]


def _forbidden(call: Call, obj: dict[str, Any], text: str) -> Exception:
    return refusal(call.resource.group, call.resource.plural, str(obj["metadata"].get("name", "")), text)


def _as_of(call: Call, error: ApiError) -> ApiError:
    """A role that is not found: upstream names it as if it were of the kind that the request is about."""
    return not_found(call.resource, error.details["name"]) if isinstance(error, NotFound) else error


def _only_for_collection(obj: dict[str, Any], old: dict[str, Any]) -> bool:
    def rest(one: dict[str, Any]) -> dict[str, Any]:
        metadata = {key: value for key, value in one["metadata"].items() if key not in _COLLECTED and value}
        return {key: value for key, value in one.items() if value} | {"metadata": metadata}

    return rest(obj) == rest(old)


def _aggregates(role: dict[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _broken_down(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Rules of one verb and one resource, name or path each: one rule covers such a one, or none does."""
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                single = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**single, "resourceNames": [name]} for name in names) if names else [single]
    for path in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(own: PolicyRule, single: PolicyRule) -> bool:
    names, wanted_names = own.get("resourceNames") or (), single.get("resourceNames") or ()
    return (
        _has_all(own, single, "verbs")
        and _has_all(own, single, "apiGroups")
        and all(_covers_resource(own, resource) for resource in single.get("resources") or ())
        and all(_covers_path(own, path) for path in single.get("nonResourceURLs") or ())
        and (not names or bool(wanted_names and set(wanted_names) <= set(names)))
    )


def _has_all(own: PolicyRule, single: PolicyRule, key: str) -> bool:
    values = own.get(key) or ()
    return "*" in values or set(single.get(key) or ()) <= set(values)


def _covers_resource(own: PolicyRule, resource: str) -> bool:
    values = own.get("resources") or ()
    _, slash, part = resource.partition("/")
    return "*" in values or resource in values or bool(slash and f"*/{part}" in values)


def _covers_path(own: PolicyRule, path: str) -> bool:
    return any(matches_path(pattern, path) for pattern in own.get("nonResourceURLs") or ())


def _compacted(rules: list[PolicyRule]) -> Iterator[PolicyRule]:
    """Rules about the same single resource as one, with all their verbs."""
    joined: dict[tuple[str, str, str | None], PolicyRule] = {}
    for rule in rules:
        if "nonResourceURLs" in rule:
            yield rule
            continue
        key = (rule["apiGroups"][0], rule["resources"][0], next(iter(rule.get("resourceNames", ())), None))
        if key in joined:
            joined[key]["verbs"].extend(rule["verbs"])
        else:
            joined[key] = {**rule, "verbs": list(rule["verbs"])}
    yield from joined.values()


def _compact_text(rule: PolicyRule) -> str:
    parts = []
    for shown, key in _COMPACT:
        if values := rule.get(key):
            quoted = " ".join(go_quote(value) for value in values)
            parts.append(f"{shown}:[{quoted}]")
    return "{" + ", ".join(parts) + "}"
