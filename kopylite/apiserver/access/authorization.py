"""Who may do what: the protocol of authorizers, the one that lets everybody, and the text of a refusal. Pure."""

from __future__ import annotations

from typing import Protocol

from kopylite.apiserver.request.request import Target, User
from kopylite.errors import Forbidden


class Authorizer(Protocol):
    def allows(self, user: User, target: Target) -> bool: ...
    def reason(self, user: User, target: Target) -> str:
        """Why it is allowed; "" where there is nothing to say."""
        ...


class AllowAll:
    """The default: everybody who is let in may do everything, as with `--authorization-mode=AlwaysAllow`."""

    __slots__ = ()

    def allows(self, user: User, target: Target) -> bool:
        return True

    def reason(self, user: User, target: Target) -> str:
        return ""


def forbidden(user: User, target: Target, reason: str = "") -> Forbidden:
    """The 403 for a request that is not allowed."""
    if not target.is_resource:
        return Forbidden(f'forbidden: User "{user.name}" cannot {target.verb} path "{target.path}"', details={})
    qualified = f"{target.resource}.{target.group}" if target.group else target.resource
    resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    name = f' "{target.name}"' if target.name else ""
    where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
    text = (
        f'{qualified}{name} is forbidden: User "{user.name}" cannot {target.verb} resource "{resource}" '
        f'in API group "{target.group}"{where}'
    )
    details = {"name": target.name, "group": target.group, "kind": target.resource}
    return Forbidden(text + (f": {reason}" if reason else ""), details={k: v for k, v in details.items() if v})
