"""ApiCall: what one request asks the authorizer for. Pure: the same reading of a path that the server makes."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from kopylite.client import ApiRequest

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
# Sub-resources of a namespace; what else follows its name is a resource in it.
_OF_A_NAMESPACE = ("status", "finalize")
APPLY = "application/apply-patch+yaml"
_RBAC = "rbac.authorization.k8s.io"
_BINDINGS = ("rolebindings", "clusterrolebindings")


class _Role(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct):
    role: _Role | None = msgspec.field(default=None, name="roleRef")


# The namespace of a call that goes where the object of the run is, wherever that may be.
ANY = "*"


@dataclass(frozen=True, slots=True, order=True)
class ApiCall:
    """One verb on one resource.

    Attributes:
        group: "" for the core group.
        resource: the plural, with "/subresource" if any.
        verb: get, list, watch, create, update, patch, delete or deletecollection; bind, of a role.
        namespace: "" for cluster scope and for all namespaces; "*": that of whatever object is worked on.
        name: of the only object that it may be about; "": any.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""


def calls_of(request: ApiRequest, own: str | None = None) -> list[ApiCall]:
    """What the server asks its authorizer for one request; nothing for what is no resource.

    Args:
        own: the namespace of the object that is worked on; "": it is in none; None: no object is.
    """
    found = call_of(request, own)
    if found is None:
        return []
    if found.verb == "patch" and request.content_type == APPLY and "/" not in found.resource:
        # An apply makes the object if it is not there, and the server asks for that right too.
        return [found, ApiCall(found.group, found.resource, "create", found.namespace), *_bound(request, found)]
    return [found, *_bound(request, found)]


def _bound(request: ApiRequest, found: ApiCall) -> list[ApiCall]:
    """Who binds a role has to hold all of its rights, or that to bind it."""
    if found.group != _RBAC or found.resource not in _BINDINGS or not request.body:
        return []
    try:
        role = msgspec.json.decode(request.body, type=_Binding).role
    except msgspec.DecodeError:
        return []
    if role is None or role.kind not in ("ClusterRole", "Role") or not role.name:
        return []
    return [ApiCall(_RBAC, f"{role.kind.lower()}s", "bind", found.namespace, role.name)]


def call_of(request: ApiRequest, own: str | None = None) -> ApiCall | None:
    """The call that a request is; None: it is about no resource. `own` as in `calls_of`."""
    parts = [unquote(part) for part in request.path.split("/") if part]
    if not parts or parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return None
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _OF_A_NAMESPACE:
        namespace, rest = rest[1], rest[2:]
    named, resource = len(rest) > 1, "/".join((rest[0], *rest[2:]))
    if namespace and own is not None and own in ("", namespace):
        namespace = ANY
    return ApiCall(group, resource, _verb(request, named), namespace)


def _verb(request: ApiRequest, named: bool) -> str:
    if request.method in ("GET", "HEAD"):
        if named:
            return "get"
        return "watch" if request.params.get("watch", "false").lower() not in ("false", "0") else "list"
    if request.method == "DELETE":
        return "delete" if named else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())
