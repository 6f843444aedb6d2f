"""From a Forbidden to the RBAC rule that is missing. Reads the error; asks nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kopylite.errors import Forbidden

# The sentence of kube-apiserver's authorizer, the same since RBAC exists.
_SENTENCE = re.compile(
    r'(?:User "(?P<user>[^"]*)" )?cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)"| at the cluster scope)?'
)


@dataclass(frozen=True, slots=True)
class Permission:
    """What a user may not do.

    Attributes:
        verb: get, list, watch, create, update, patch, delete or deletecollection.
        resource: the plural, with "/subresource" if any.
        group: "" for the core group.
        namespace: "" where the permission is needed for the whole cluster.
        user: who asked; "" if the server did not say.
    """

    verb: str
    resource: str
    group: str
    namespace: str = ""
    user: str = ""


def missing_permission(error: Forbidden) -> Permission | None:
    """What RBAC refused; None when something else did (an admission plugin, a terminating namespace, a quota)."""
    match = _SENTENCE.search(error.message)
    if match is None:
        return None
    part = match.groupdict(default="")
    return Permission(part["verb"], part["resource"], part["group"], part["namespace"], part["user"])


def rbac_rule(error: Forbidden) -> str:
    """The rule that would allow what was refused, as YAML for a Role or ClusterRole; "" when RBAC did not refuse.

    A refused list or watch asks for both: a cache needs both.
    """
    missing = missing_permission(error)
    if missing is None:
        return ""
    verbs = ["list", "watch"] if missing.verb in ("list", "watch") else [missing.verb]
    quoted = ", ".join(f'"{verb}"' for verb in verbs)
    scope = f"in a Role of namespace {missing.namespace}" if missing.namespace else "in a ClusterRole"
    who = f", bound to {missing.user}" if missing.user else ""
    return f'# {scope}{who}\n- apiGroups: ["{missing.group}"]\n  resources: ["{missing.resource}"]\n  verbs: [{quoted}]'
