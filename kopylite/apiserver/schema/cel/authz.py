"""Kubernetes' CEL library of authorization: `authorizer.group("apps").resource("deployments").check("get")`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kopylite.apiserver.schema.cel.library import Library, no_overload

AUTHORIZATION = Library()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a check asks about, in the words of authorization; `account` is whose rights count, if not the user's."""

    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    account: tuple[str, str] | None = None


# From what is asked and the verb: whether it is allowed, why (or why not), and what went wrong.
Decide = Callable[[Asked, str], tuple[bool, str, str]]


class Access(dict[str, Any]):
    """`authorizer`, and everything that is built from it; `authorizer.requestResource` is its only field."""

    def __init__(self, decide: Decide, asked: Asked, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(fields or {})
        self.decide = decide
        self.asked = asked

    def narrowed(self, **fields: Any) -> Access:
        return Access(self.decide, replace(self.asked, **fields))


@dataclass(frozen=True, slots=True)
class Decided:
    allowed: bool
    reason: str = ""
    error: str = field(default="")


def _narrowing(function: str, member: str) -> None:
    @AUTHORIZATION.add(function)
    def narrow(access: Access, value: str) -> Access:
        if not isinstance(access, Access) or not isinstance(value, str):
            raise no_overload()
        return access.narrowed(**{member: value})


for _name in ("path", "group", "resource", "subresource", "namespace", "name"):
    _narrowing(_name, _name)


@AUTHORIZATION.add("serviceAccount")
def service_account(access: Access, namespace: str, name: str) -> Access:
    return access.narrowed(account=(namespace, name))


@AUTHORIZATION.add("fieldSelector")
def field_selector(access: Access, selector: str) -> Access:
    return access.narrowed()


@AUTHORIZATION.add("labelSelector")
def label_selector(access: Access, selector: str) -> Access:
    return access.narrowed()


@AUTHORIZATION.add("check")
def check(access: Access, verb: str) -> Decided:
    return Decided(*access.decide(access.asked, verb))


@AUTHORIZATION.add("allowed", "bool")
def allowed(decided: Decided) -> bool:
    return decided.allowed


@AUTHORIZATION.add("reason", "string")
def reason(decided: Decided) -> str:
    return decided.reason


@AUTHORIZATION.add("errored", "bool")
def errored(decided: Decided) -> bool:
    return bool(decided.error)


@AUTHORIZATION.add("error", "string")
def error(decided: Decided) -> str:
    return decided.error
