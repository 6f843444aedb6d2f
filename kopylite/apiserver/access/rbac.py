"""RBAC: Roles, ClusterRoles and their bindings as an Authorizer. Off by default; for least-privilege tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kopylite.apiserver.access.authorization import Decision, SubjectRules
from kopylite.apiserver.request.request import MASTERS, SERVICE_ACCOUNT, Target, User
from kopylite.apiserver.schema.field_errors import aggregate, go_quote
from kopylite.apiserver.storage.history import StoredChange
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.errors import ApiError, BadRequest, InternalError, NotFound

GROUP = "rbac.authorization.k8s.io"
_RESOURCE_KEYS = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_KEYS = ("verbs", "nonResourceURLs")

PolicyRule = dict[str, Any]


class Grant(NamedTuple):
    """A rule, and why the user has it."""

    rule: PolicyRule
    binding: dict[str, Any]
    subject: dict[str, Any]


class RbacAuthorizer:
    """Allows what some binding of the user grants; nothing denies."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._decoded: dict[str, list[dict[str, Any]]] = {}
        store.observers.append(self._forget)

    def authorize(self, user: User, target: Target) -> Decision:
        """The reason names the binding that allows it, or the roles that no binding should name."""
        if MASTERS in user.groups:
            return Decision(True)
        covers = _covers if target.is_resource else _covers_path
        errors: list[ApiError] = []
        for grant in self._grants(user, target.namespace if target.is_resource else "", errors):
            if covers(grant.rule, target):
                return Decision(True, _reason(grant))
        return Decision(False, f"rbac: RBAC: {_texts(errors)}" if errors else "")

    def rules(self, user: User, namespace: str) -> SubjectRules:
        errors: list[ApiError] = []
        found = [grant.rule for grant in self._grants(user, namespace, errors)]
        return SubjectRules(
            [_part(rule, _RESOURCE_KEYS) for rule in found if rule.get("resources")],
            [_part(rule, _PATH_KEYS) for rule in found if rule.get("nonResourceURLs")],
            _texts(errors) if errors else "",
        )

    def rules_for(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[ApiError]]:
        """All rules that the user has there, and what could not be looked up."""
        errors: list[ApiError] = []
        return [grant.rule for grant in self._grants(user, namespace, errors)], errors

    def role_rules(self, ref: dict[str, Any], namespace: str) -> list[PolicyRule]:
        """The rules of the role that a binding in the namespace ("" for none) names.

        Raises:
            NotFound: there is none.
            BadRequest: it would have to be in a namespace.
            InternalError: it is of no kind that has rules.
        """
        kind, name = ref.get("kind", ""), ref.get("name", "")
        if kind not in ("Role", "ClusterRole"):
            raise InternalError(f"unsupported role reference kind: {go_quote(kind)}", reason="")
        if kind == "Role" and not namespace:
            raise BadRequest("Namespace parameter required.")
        for role in self._objects(f"{kind.lower()}s"):
            metadata = role["metadata"]
            if metadata["name"] == name and (kind == "ClusterRole" or metadata["namespace"] == namespace):
                return list(role.get("rules") or ())
        details = {"name": name, "group": GROUP, "kind": kind.lower()}
        raise NotFound(f"{kind.lower()}.{GROUP} {go_quote(name)} not found", details=details)

    def _grants(self, user: User, namespace: str, errors: list[ApiError]) -> Iterator[Grant]:
        """All rules granted cluster-wide, and those granted in the namespace; what is missing goes to `errors`."""
        for binding in self._objects("clusterrolebindings"):
            yield from self._bound(binding, user, "", errors)
        if not namespace:
            return
        for binding in self._objects("rolebindings"):
            if binding["metadata"]["namespace"] == namespace:
                yield from self._bound(binding, user, namespace, errors)

    def _bound(self, binding: dict[str, Any], user: User, namespace: str, errors: list[ApiError]) -> Iterator[Grant]:
        subject = _subject(binding, user, namespace)
        if subject is None:
            return
        try:
            rules = self.role_rules(binding["roleRef"], namespace)
        except ApiError as error:
            errors.append(error)
            return
        for rule in rules:
            yield Grant(rule, binding, subject)

    def _objects(self, plural: str) -> list[dict[str, Any]]:
        storage = f"{plural}.{GROUP}"
        found = self._decoded.get(storage)
        if found is None:
            records = self._store.collection(storage).records.values()
            found = self._decoded[storage] = [record.decode() for record in records]
        return found

    def _forget(self, storage: str, change: StoredChange) -> None:
        self._decoded.pop(storage, None)


def _texts(errors: list[ApiError]) -> str:
    return aggregate(error.message for error in errors)


def _reason(grant: Grant) -> str:
    """Why it is allowed, in upstream's words."""
    metadata, role, subject = grant.binding["metadata"], grant.binding["roleRef"], grant.subject
    namespace = metadata.get("namespace", "")
    binding = f"ClusterRoleBinding {go_quote(metadata['name'])}"
    if namespace:
        binding = f"RoleBinding {go_quote(metadata['name'] + '/' + namespace)}"
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name += f"/{subject.get('namespace') or namespace}"
    of = f"{role['kind']} {go_quote(role['name'])}"
    return f"RBAC: allowed by {binding} of {of} to {subject['kind']} {go_quote(name)}"


def _subject(binding: dict[str, Any], user: User, namespace: str) -> dict[str, Any] | None:
    """The subject of a binding that the user is."""
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User" and name == user.name:
            return dict(subject)
        if kind == "Group" and name in user.groups:
            return dict(subject)
        if kind == "ServiceAccount":
            where = subject.get("namespace") or namespace
            if where and user.name == f"{SERVICE_ACCOUNT}{where}:{name}":
                return dict(subject)
    return None


def _part(rule: PolicyRule, keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: rule[key] for key in keys if rule.get(key) or key == "verbs"}


def _covers(rule: PolicyRule, target: Target) -> bool:
    names = rule.get("resourceNames")
    return (
        _has(rule.get("verbs"), target.verb)
        and _has(rule.get("apiGroups"), target.group)
        and _covers_resource(rule.get("resources") or (), target)
        and (not names or target.name in names)
    )


def _covers_path(rule: PolicyRule, target: Target) -> bool:
    paths = rule.get("nonResourceURLs") or ()
    return _has(rule.get("verbs"), target.verb) and any(matches_path(path, target.path) for path in paths)


def _covers_resource(resources: Any, target: Target) -> bool:
    wanted = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    return (
        "*" in resources or wanted in resources or bool(target.subresource and f"*/{target.subresource}" in resources)
    )


def _has(values: Any, wanted: str) -> bool:
    return bool(values) and ("*" in values or wanted in values)


def matches_path(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))
