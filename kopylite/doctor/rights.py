"""RBAC: may the operator do what it needs? Asked for each verb, and answered with the rules that are missing. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from kopylite.client import Permission
from kopylite.deploy import rules_of
from kopylite.doctor.findings import Finding, error, listed
from kopylite.objects.yamlwrite import to_yaml

CHECK = "rights"
GROUP = "rbac.authorization.k8s.io"
READS = ("get", "list", "watch")
CERTAIN = ("leases", "events")
# Rules that are named in a line; the YAML has them all.
NAMED = 8


def attributes(permission: Permission) -> dict[str, str]:
    """resourceAttributes of an access review."""
    resource, _, subresource = permission.resource.partition("/")
    found = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    return {key: value for key, value in found.items() if value or key == "group"}


def judge(missing: Iterable[Permission], app: str, user: str, assumed: Collection[str] = ()) -> Iterator[Finding]:
    """A finding for each role that lacks something, with that role.

    Args:
        missing: what was refused.
        app: the name of the App.
        user: who was asked about; "" if that is not known.
        assumed: names of Apps whose writes are a guess, since nobody has recorded them.
    """
    places: dict[str, list[Permission]] = {}
    for each in missing:
        places.setdefault(each.namespace, []).append(each)
    for namespace, lacking in sorted(places.items()):
        where = f"{user or 'the user of this kubeconfig'}, {f'namespace {namespace}' if namespace else 'the cluster'}"
        what = f"may not {listed(_told(lacking), NAMED)}"
        if assumed and any(each.verb not in READS and each.resource not in CERTAIN for each in lacking):
            what += ". Writes are assumed, for no recording of what the App does was given: --rbac-from FILE"
        yield error(CHECK, where, what, f"kubectl apply -f - <<'END'\n{role(lacking, app, user, namespace)}END")


def role(missing: Iterable[Permission], app: str, user: str, namespace: str) -> str:
    """The role that has what is missing, and its binding, as YAML. It stands beside the one that is there."""
    prefix = "" if namespace else "Cluster"
    metadata = {"name": f"{app}-missing", **({"namespace": namespace} if namespace else {})}
    version = f"{GROUP}/v1"
    rules = [rule.to_wire() for rule in rules_of(missing)]
    reference = {"apiGroup": GROUP, "kind": f"{prefix}Role", "name": metadata["name"]}
    documents: list[dict[str, Any]] = [
        {"apiVersion": version, "kind": f"{prefix}Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": version,
            "kind": f"{prefix}RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [_subject(user)],
        },
    ]
    return to_yaml(documents)


def rule(permissions: Iterable[Permission]) -> str:
    """The rules that allow something, on one line: `{apiGroups: [""], resources: ["pods"], verbs: ["list"]}`."""
    shown = []
    for each in rules_of(permissions):
        parts = {
            "apiGroups": [each.group],
            "resources": each.resources,
            "resourceNames": each.names,
            "verbs": each.verbs,
        }
        quoted = {key: ", ".join(f'"{value}"' for value in values) for key, values in parts.items() if values}
        shown.append("{" + ", ".join(f"{key}: [{values}]" for key, values in quoted.items()) + "}")
    return ", ".join(shown)


def _subject(user: str) -> dict[str, str]:
    if user.startswith("system:serviceaccount:"):
        _, _, namespace, account = user.split(":", 3)
        return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return {"apiGroup": GROUP, "kind": "User", "name": user or "WHO-YOU-ARE (kubectl auth whoami)"}


def _told(missing: Iterable[Permission]) -> list[str]:
    told = []
    for each in rules_of(missing):
        resources = ", ".join(_named(resource, each.group) for resource in each.resources)
        told.append(f"{'/'.join(each.verbs)} {resources}{f' ({each.names[0]})' if each.names else ''}")
    return told


def _named(resource: str, group: str) -> str:
    """As kubectl writes it: "myapps.example.com/status"."""
    plural, slash, subresource = resource.partition("/")
    return f"{plural}{f'.{group}' if group else ''}{slash}{subresource}"
