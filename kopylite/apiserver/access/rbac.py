"""RBAC: Roles, ClusterRoles and their bindings as an Authorizer. Off by default; for least-privilege tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kopylite.apiserver.request.request import MASTERS, Target, User
from kopylite.apiserver.storage.history import Change
from kopylite.apiserver.storage.store import Store

GROUP = "rbac.authorization.k8s.io"
_SERVICE_ACCOUNT = "system:serviceaccount:"

Rule = dict[str, Any]


class Grant(NamedTuple):
    """A rule, and why the user has it."""

    rule: Rule
    binding: dict[str, Any]
    subject: dict[str, Any]


class RbacAuthorizer:
    """Allows what some binding of the user grants; nothing denies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: dict[str, list[dict[str, Any]]] = {}
        store.observers.append(self._forget)

    def allows(self, user: User, target: Target) -> bool:
        return MASTERS in user.groups or self._grant(user, target) is not None

    def reason(self, user: User, target: Target) -> str:
        """The binding that allows it, in upstream's words; "" if none does, or none needs to."""
        grant = None if MASTERS in user.groups else self._grant(user, target)
        if grant is None:
            return ""
        metadata, role, subject = grant.binding["metadata"], grant.binding["roleRef"], grant.subject
        namespace = metadata.get("namespace", "")
        binding = f'RoleBinding "{metadata["name"]}/{namespace}"'
        if not namespace:
            binding = f'ClusterRoleBinding "{metadata["name"]}"'
        name = subject["name"]
        if subject["kind"] == "ServiceAccount":
            name += f"/{subject.get('namespace') or namespace}"
        return f'RBAC: allowed by {binding} of {role["kind"]} "{role["name"]}" to {subject["kind"]} "{name}"'

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[Rule]]:
        """What the user may do in a namespace: resource rules and rules of other paths."""
        found = [grant.rule for grant in self._grants(user, namespace)]
        paths = [rule for rule in found if rule.get("nonResourceURLs")]
        return [rule for rule in found if rule.get("resources")], paths

    def _grant(self, user: User, target: Target) -> Grant | None:
        namespace = target.namespace if target.is_resource else ""
        covers = _covers if target.is_resource else _covers_path
        return next((grant for grant in self._grants(user, namespace) if covers(grant.rule, target)), None)

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """All rules granted cluster-wide, and those granted in the namespace."""
        for binding in self._objects("clusterrolebindings"):
            if subject := _subject(binding, user, ""):
                yield from (Grant(rule, binding, subject) for rule in self._role_rules(binding["roleRef"], ""))
        if not namespace:
            return
        for binding in self._objects("rolebindings"):
            if binding["metadata"]["namespace"] == namespace and (subject := _subject(binding, user, namespace)):
                yield from (Grant(rule, binding, subject) for rule in self._role_rules(binding["roleRef"], namespace))

    def _role_rules(self, ref: dict[str, Any], namespace: str) -> Iterator[Rule]:
        cluster = ref.get("kind") == "ClusterRole"
        for role in self._objects("clusterroles" if cluster else "roles"):
            metadata = role["metadata"]
            if metadata["name"] != ref.get("name") or (not cluster and metadata["namespace"] != namespace):
                continue
            yield from role.get("rules") or ()

    def _objects(self, plural: str) -> list[dict[str, Any]]:
        storage = f"{plural}.{GROUP}"
        found = self._decoded.get(storage)
        if found is None:
            records = self._store.collection(storage).records.values()
            found = self._decoded[storage] = [record.decode() for record in records]
        return found

    def _forget(self, storage: str, change: Change) -> None:
        self._decoded.pop(storage, None)


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
            if user.name == f"{_SERVICE_ACCOUNT}{where}:{name}":
                return dict(subject)
    return None


def _covers(rule: Rule, target: Target) -> bool:
    names = rule.get("resourceNames")
    return (
        _has(rule.get("verbs"), target.verb)
        and _has(rule.get("apiGroups"), target.group)
        and _covers_resource(rule.get("resources") or (), target)
        and (not names or target.name in names)
    )


def _covers_path(rule: Rule, target: Target) -> bool:
    paths = rule.get("nonResourceURLs") or ()
    return _has(rule.get("verbs"), target.verb) and any(_matches_path(path, target.path) for path in paths)


def _covers_resource(resources: Any, target: Target) -> bool:
    wanted = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    return (
        "*" in resources or wanted in resources or bool(target.subresource and f"*/{target.subresource}" in resources)
    )


def _has(values: Any, wanted: str) -> bool:
    return bool(values) and ("*" in values or wanted in values)


def _matches_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))
