"""Impersonation: a request that wants to act as somebody else, and whether its user may let it. Pure.

Since 1.36 there are five ways to get the right, tried in order. The oldest, the verb `impersonate`, comes last. The
others are constrained: the verb `impersonate:MODE` on whom, and `impersonate-on:MODE:VERB` on what is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from kopylite.apiserver.access.authorization import Authorizer, check, forbidden
from kopylite.apiserver.request.request import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    SERVICE_ACCOUNT,
    UNAUTHENTICATED,
    Target,
    User,
)
from kopylite.apiserver.schema.field_errors import FieldError, aggregate, go_quote, invalid
from kopylite.apiserver.schema.names import label_errors, subdomain_errors
from kopylite.errors import BadRequest, Forbidden

CONSTRAINED_MINOR: Final = 36

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_AUTHENTICATION: Final = ("authentication.k8s.io", "v1")
_NODE, _NODES = "system:node:", "system:nodes"
_NODE_NAME_EXTRA: Final = "authentication.kubernetes.io/node-name"
# From so many values of one kind on, the right to all of them is asked for first.
_MANY = 4
_REMEMBERED = 10_000
_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


@dataclass(frozen=True, slots=True)
class _Mode:
    """One way to get the right.

    Attributes:
        verb: on the user, his groups, uid and extras.
        on: what the verb of the request itself is put behind; "" when it does not matter.
    """

    verb: str
    on: str = ""
    any_node: bool = False


_LEGACY: Final = _Mode("impersonate")


def _constrained(name: str, *, any_node: bool = False) -> _Mode:
    return _Mode(f"impersonate:{name}", f"impersonate-on:{name}:", any_node)


def wanted_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """The user that the headers (names in lower case, every value) ask for; None: they do not ask.

    Raises:
        BadRequest: groups, a uid or extras without a user name.
    """
    name, uid = "", ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        if key == _USER:
            name = name or value
        elif key == _UID:
            uid = uid or value
        elif key == _GROUP:
            groups.append(value)
        elif key.startswith(_EXTRA):
            extra.setdefault(unquote(key.removeprefix(_EXTRA)), []).append(value)
    if not name:
        if not uid and not groups and not extra:
            return None
        raise BadRequest(f"requested {_go_user(uid, groups, extra)} without impersonating a user name")
    return User(name, tuple(groups), uid, {key: tuple(values) for key, values in extra.items()})


class Impersonator:
    """Lets requests act as the users that their headers ask for.

    Args:
        minor: the emulated Kubernetes minor.
    """

    def __init__(self, authorizer: Authorizer, minor: int) -> None:
        self._authorizer = authorizer
        self._minor = minor
        # What last worked for a user is tried first: a refusal speaks of what was tried first.
        self._last: dict[str, _Mode] = {}

    def user(self, headers: Iterable[tuple[str, str]], requester: User, target: Target) -> User:
        """The user that a request acts as: its own, unless its headers ask for another.

        Args:
            headers: of the request, names in lower case, every value of a repeated one.
            target: what the request is about.

        Raises:
            Forbidden: `requester` may not act as that user.
            BadRequest: no user is named.
        """
        wanted = wanted_user(headers)
        if wanted is None:
            return requester
        modes = _modes(wanted, requester, self._minor)
        modes.sort(key=lambda mode: mode != self._last.get(requester.name))
        refusals: list[Forbidden] = []
        for mode in modes:
            try:
                if mode.on:
                    asked = replace(target, verb=mode.on + target.verb)
                    check(self._authorizer, _asking(requester, mode), asked)
                user = _acting_as(wanted, requester, mode, self._authorizer)
            except Forbidden as refusal:
                refusals.append(refusal)
            else:
                self._remember(requester.name, mode)
                return user
        raise refusals[0]

    def _remember(self, name: str, mode: _Mode) -> None:
        self._last.pop(name, None)
        self._last[name] = mode
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]


def _modes(wanted: User, requester: User, minor: int) -> list[_Mode]:
    """Those that may let `requester` be `wanted`, in the order in which they are tried."""
    modes: list[_Mode] = []
    node, account = _node(wanted.name), account_of(wanted.name)
    alone = not wanted.uid and not wanted.groups and not wanted.extra
    if minor < CONSTRAINED_MINOR:
        return [_LEGACY]
    if alone and node:
        if account_of(requester.name) and requester.extra.get(_NODE_NAME_EXTRA) == (node,):
            modes.append(_constrained("associated-node", any_node=True))
        modes.append(_constrained("arbitrary-node"))
    if alone and account:
        modes.append(_constrained("serviceaccount"))
    if not node and not account:
        modes.append(_constrained("user-info"))
    return [*modes, _LEGACY]


def _acting_as(wanted: User, requester: User, mode: _Mode, authorizer: Authorizer) -> User:
    """Raises Forbidden."""
    asking = _asking(requester, mode)
    group, version = ("", "v1") if mode is _LEGACY else _AUTHENTICATION
    who, groups = Target(mode.verb, "", group, version, "users", name=wanted.name), wanted.groups
    node, account = _node(wanted.name), account_of(wanted.name)
    if node and mode is not _LEGACY:
        who, groups = replace(who, resource="nodes", name="*" if mode.any_node else node), (_NODES,)
    if account:
        who = replace(who, resource="serviceaccounts", namespace=account[0], name=account[1])
        groups = wanted.groups or account_groups(account[0])
    check(authorizer, asking, who)
    if wanted.uid:
        check(authorizer, asking, Target(mode.verb, "", *_AUTHENTICATION, "uids", name=wanted.uid))
    _check_groups(wanted.groups, asking, replace(who, resource="groups", namespace="", name=""), authorizer)
    extras = Target(mode.verb, "", *_AUTHENTICATION, "userextras")
    _check_extra(wanted.extra, asking, extras, authorizer)
    if wanted.name == ANONYMOUS:
        default = UNAUTHENTICATED
    elif UNAUTHENTICATED in groups:
        default = ""
    else:
        default = AUTHENTICATED
    if default and default not in groups:
        groups = (*groups, default)
    return replace(wanted, groups=groups)


def _check_groups(groups: tuple[str, ...], asking: User, target: Target, authorizer: Authorizer) -> None:
    """Raises Forbidden."""
    if target.verb != _LEGACY.verb and groups:
        if "" in groups:
            raise forbidden(asking, target, "impersonating the empty string group is not allowed")
        if MASTERS in groups:
            text = f"impersonating the {MASTERS} group is not allowed"
            raise forbidden(asking, replace(target, name=MASTERS), text)
        if len(groups) >= _MANY and authorizer.authorize(asking, replace(target, name="*")).allowed:
            return
    for group in groups:
        check(authorizer, asking, replace(target, name=group))


def _check_extra(extra: Mapping[str, tuple[str, ...]], asking: User, target: Target, authorizer: Authorizer) -> None:
    """Raises Forbidden."""
    if target.verb != _LEGACY.verb and extra:
        if problem := _extra_problem(extra):
            raise forbidden(asking, target, problem)
        many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
        if many and authorizer.authorize(asking, replace(target, subresource="*", name="*")).allowed:
            return
    for key, values in extra.items():
        for value in values:
            check(authorizer, asking, replace(target, subresource=key, name=value))


def _extra_problem(extra: Mapping[str, tuple[str, ...]]) -> str:
    """Why constrained impersonation takes no such extra; "" if it does."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if errors := _key_errors(key):
            return f"impersonating an invalid key in extra is not allowed: {aggregate(str(e) for e in errors)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {go_quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_errors(key: str) -> list[FieldError]:
    """Why `key` is no domain with a path behind it, such as `example.com/role`."""
    field = "extra.key"
    domain, slash, path = key.partition("/")
    if not slash or not domain or not path:
        return [invalid(field, key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(field, domain, text) for text in subdomain_errors(domain)]
    if not re.fullmatch(_PATH, path):
        errors.append(invalid(field, path, f"Invalid path (regex used for validation is '{_PATH}')"))
    return errors


def _asking(requester: User, mode: _Mode) -> User:
    """Who asks for the right: the rights to an associated node do not depend on which node it is."""
    return replace(requester, extra={}) if mode.any_node else requester


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that the user name stands for; None: it is no such name."""
    if not user.startswith(SERVICE_ACCOUNT):
        return None
    namespace, _, name = user.removeprefix(SERVICE_ACCOUNT).partition(":")
    if label_errors(namespace) or subdomain_errors(name):
        return None
    return namespace, name


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every service account of a namespace."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def _node(user: str) -> str:
    """The name of the node that the user name stands for; "" if it is no such name."""
    name = user.removeprefix(_NODE) if user.startswith(_NODE) else ""
    return name if name and not subdomain_errors(name) else ""


def _go_user(uid: str, groups: list[str], extra: Mapping[str, list[str]]) -> str:
    """A user without a name, as Go's %#v has it."""

    def texts(values: Iterable[str]) -> str:
        return f"[]string{{{', '.join(go_quote(value) for value in values)}}}"

    shown_groups = texts(groups) if groups else "[]string(nil)"
    pairs = ", ".join(f"{go_quote(key)}:{texts(values)}" for key, values in sorted(extra.items()))
    shown_extra = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{go_quote(uid)}, Groups:{shown_groups}, Extra:{shown_extra}}}'
