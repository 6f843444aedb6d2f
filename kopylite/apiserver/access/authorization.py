"""Who may do what: the protocol of authorizers, the one that lets everybody, and the text of a refusal. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from kopylite.apiserver.request.request import Target, User
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.errors import Forbidden

# Upstream's texts about rights may end in a web page.
_SANITIZED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Decision(NamedTuple):
    """What an authorizer says.

    Attributes:
        reason: why it is allowed, or what went wrong while it was looked for; "" where there is nothing to say.
    """

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SubjectRules:
    """What a user may do in a namespace, as far as an authorizer can list it.

    Attributes:
        resources: in the form of SubjectRulesReviewStatus.resourceRules.
        paths: in the form of its nonResourceRules.
        error: what could not be looked up; "" for nothing.
    """

    resources: list[dict[str, Any]]
    paths: list[dict[str, Any]]
    error: str = ""


class Authorizer(Protocol):
    def authorize(self, user: User, target: Target) -> Decision: ...
    def rules(self, user: User, namespace: str) -> SubjectRules: ...


class AllowAll:
    """The default: everybody who is let in may do everything, as with `--authorization-mode=AlwaysAllow`."""

    __slots__ = ()

    def authorize(self, user: User, target: Target) -> Decision:
        return Decision(True)

    def rules(self, user: User, namespace: str) -> SubjectRules:
        every = ["*"]
        return SubjectRules(
            [{"verbs": every, "apiGroups": every, "resources": every}], [{"verbs": every, "nonResourceURLs": every}]
        )


def forbidden(user: User, target: Target, reason: str = "") -> Forbidden:
    """The 403 for a request that is not allowed."""
    asks = f"User {go_quote(user.name)} cannot {target.verb}"
    if not target.is_resource:
        text = f"{asks} path {go_quote(target.path)}".translate(_SANITIZED)
        return Forbidden(f"forbidden: {text}" + (f": {reason}" if reason else ""), details={})
    resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    where = f"in the namespace {go_quote(target.namespace)}" if target.namespace else "at the cluster scope"
    text = f"{asks} resource {go_quote(resource)} in API group {go_quote(target.group)} {where}".translate(_SANITIZED)
    return refusal(target.group, target.resource, target.name, text + (f": {reason}" if reason else ""))


def refusal(group: str, plural: str, name: str, text: str) -> Forbidden:
    """A 403 about one object."""
    qualified = f"{plural}.{group}" if group else plural
    shown = f" {go_quote(name)}" if name else ""
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", plural)) if value}
    return Forbidden(f"{qualified}{shown} is forbidden: {text}", details=details)


def check(authorizer: Authorizer, user: User, target: Target) -> None:
    """Raises Forbidden."""
    decision = authorizer.authorize(user, target)
    if not decision.allowed:
        raise forbidden(user, target, decision.reason)
