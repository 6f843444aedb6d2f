"""From Forbiddens to the RBAC rules that are missing. Reads the errors; asks nobody.

The server says of each refusal who may not do what. One answer names one verb; what a person needs is one rule for
each resource, with all verbs that were refused, in the kind of role that fits how the operator watches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kopylite.errors import Forbidden
from kopylite.troubleshooting import Trouble

# The sentence of kube-apiserver's authorizer, the same since RBAC exists.
_SENTENCE = re.compile(
    r'(?:User "(?P<user>[^"]*)" )?cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)"| at the cluster scope)?'
)
_ANONYMOUS = "system:anonymous"
_SERVICE_ACCOUNT = "system:serviceaccount:"

# A rule that grew is told again, but not more often than this; the pause doubles up to the second number.
FIRST_PAUSE = 3.0
LONGEST_PAUSE = 300.0
# A resource that was not refused for so long is mended; a refusal after that is news.
MENDED_SECONDS = 3600.0
SHOWN_NAMESPACES = 5


class Permission(msgspec.Struct, frozen=True):
    """One thing that a user may do, or has to be allowed.

    Attributes:
        verb: get, list, watch, create, update, patch, delete or deletecollection; bind, of a role.
        resource: the plural, with "/subresource" if any.
        group: "" for the core group.
        namespace: "" where the permission is needed for the whole cluster.
        user: who asked; "" if the server did not say.
        name: of the only object that it is about; "": all.
    """

    verb: str
    resource: str
    group: str
    namespace: str = ""
    user: str = ""
    name: str = ""


def missing_permission(error: Forbidden) -> Permission | None:
    """What RBAC refused; None when something else did (an admission plugin, a terminating namespace, a quota)."""
    match = _SENTENCE.search(error.message)
    if match is None:
        return None
    part = match.groupdict(default="")
    return Permission(part["verb"], part["resource"], part["group"], part["namespace"], part["user"])


class _Rule(msgspec.Struct):
    """All that was refused of one resource. `told`: nothing has come since it was last told."""

    verbs: set[str] = msgspec.field(default_factory=set)
    namespaces: set[str] = msgspec.field(default_factory=set)
    user: str = ""
    last: float = 0.0
    told: bool = False
    next_telling: float = 0.0
    pause: float = FIRST_PAUSE


class MissingPermissions:
    """Collects what RBAC refuses to one operator, and tells which rules are missing.

    Args:
        name: of the operator, for the commands that it proposes.
        limited: it works in some namespaces, so that Roles there are enough; else its rules belong in a ClusterRole.
    """

    def __init__(self, name: str, *, limited: bool = False) -> None:
        self._name = name
        self._limited = limited
        self._rules: dict[tuple[str, str], _Rule] = {}
        self._anonymous_told = False
        self._anonymous = False

    def note(self, error: Forbidden, now: float) -> None:
        """Take a refusal in; one that RBAC has nothing to do with is ignored."""
        missing = missing_permission(error)
        if missing is None:
            return
        if missing.user == _ANONYMOUS:
            self._anonymous = True
            return
        of = missing.group, missing.resource
        rule = self._rules.get(of)
        if rule is None or now - rule.last > MENDED_SECONDS:
            rule = self._rules[of] = _Rule()
        rule.last = now
        # A cache needs both, and the server refuses the first of them first.
        verbs = {"list", "watch"} if missing.verb in ("list", "watch") else {missing.verb}
        namespaces = {missing.namespace} if self._limited or not missing.namespace else {""}
        if not (verbs <= rule.verbs and namespaces <= rule.namespaces and missing.user == rule.user):
            rule.verbs |= verbs
            rule.namespaces |= namespaces
            rule.user = missing.user
            rule.told = False

    def news(self, now: float) -> Iterator[str]:
        """What is to be told now: a text for each role that lacks something new, with all that it lacks there."""
        if self._anonymous and not self._anonymous_told:
            self._anonymous_told = True
            yield (
                "the API server takes this operator for anonymous: it was sent no credentials, or none that it knows. "
                "No RBAC rule mends that; mend the credentials of the kubeconfig or of the service account. "
                f"See {Trouble.FORBIDDEN}"
            )
        due: dict[tuple[str, frozenset[str]], list[tuple[tuple[str, str], _Rule]]] = {}
        for of, rule in sorted(self._rules.items()):
            if not rule.told and now >= rule.next_telling:
                rule.told = True
                rule.next_telling, rule.pause = now + rule.pause, min(rule.pause * 2, LONGEST_PAUSE)
                due.setdefault((rule.user, _where(rule)), []).append((of, rule))
        for (user, namespaces), rules in due.items():
            yield self._text(user, namespaces, rules)

    def _text(self, user: str, namespaces: frozenset[str], rules: list[tuple[tuple[str, str], _Rule]]) -> str:
        kind = "a Role" if namespaces else "a ClusterRole"
        kind = "Roles" if len(namespaces) > 1 else kind
        where = f" of namespace {_listed(namespaces)} (if there is one)" if namespaces else ""
        who = f", bound to {user}" if user else ""
        lines = [f"the API server refuses what this operator needs. Missing are, in {kind}{where}{who}:"]
        for (group, resource), rule in rules:
            verbs = ", ".join(f'"{verb}"' for verb in sorted(rule.verbs))
            lines += [f'- apiGroups: ["{group}"]', f'  resources: ["{resource}"]', f"  verbs: [{verbs}]"]
        if user:
            lines += [f"# and its binding, if there is none yet: {self._binding(user, namespaces)}"]
        lines += [f"# See {Trouble.FORBIDDEN}"]
        return "\n".join(lines)

    def _binding(self, user: str, namespaces: frozenset[str]) -> str:
        subject = f"--user={user}"
        if user.startswith(_SERVICE_ACCOUNT):
            subject = f"--serviceaccount={user.removeprefix(_SERVICE_ACCOUNT)}"
        if not namespaces:
            return f"kubectl create clusterrolebinding {self._name} --clusterrole={self._name} {subject}"
        more = ", and so in each" if len(namespaces) > 1 else ""
        return f"kubectl create rolebinding {self._name} -n {min(namespaces)} --role={self._name} {subject}{more}"


def _where(rule: _Rule) -> frozenset[str]:
    """The namespaces whose Roles lack the rule; none: a ClusterRole does, which counts in all of them."""
    return frozenset() if "" in rule.namespaces else frozenset(rule.namespaces)


def _listed(names: frozenset[str]) -> str:
    shown = sorted(names)[:SHOWN_NAMESPACES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
