"""Request and Response as the core sees them, with no socket in sight, and what a path means (Target)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

ANONYMOUS = "system:anonymous"
AUTHENTICATED, UNAUTHENTICATED, MASTERS = "system:authenticated", "system:unauthenticated", "system:masters"
# What begins the user name of a service account; its namespace and name follow, with a colon between.
SERVICE_ACCOUNT = "system:serviceaccount:"
# Below /namespaces/{name}/ these are sub-resources of the namespace, no resources in it.
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str = ANONYMOUS
    groups: tuple[str, ...] = (UNAUTHENTICATED,)
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The authentication/v1 UserInfo."""
        info: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


@dataclass(slots=True)
class HttpRequest:
    """One request. Header names are lower case; `query` keeps every value of a repeated parameter.

    Attributes:
        audit: annotations that webhooks and policies make for the audit log; `AccessLog` keeps them.
    """

    method: str
    path: str
    query: dict[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = field(default_factory=User)
    audit: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        user: User = ADMIN,
    ) -> HttpRequest:
        """From a request target ("/api/v1/pods?limit=5"); for in-process callers."""
        path, _, query = target.partition("?")
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        return cls(method, unquote(path), parse_query(query), lower, body, user)

    def param(self, name: str) -> str:
        """The first value of a query parameter, "" if there is none."""
        values = self.query.get(name)
        return values[0] if values else ""

    @property
    def agent(self) -> str:
        return self.headers.get("user-agent", "")


@dataclass(slots=True)
class Response:
    """An answer: a body, or a stream of chunks (the caller must close it)."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    stream: AsyncGenerator[bytes, None] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about, in the words of authorization.

    Attributes:
        verb: get, list, watch, create, update, patch, delete, deletecollection; else the HTTP method, lower case.
        resource: the plural; "" for everything that is no resource (discovery, health).
        legacy_watch: by the deprecated `/watch/` prefix.
        nameless: about a resource, and none is named: a review may ask so.
    """

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    legacy_watch: bool = False
    nameless: bool = False

    @property
    def is_resource(self) -> bool:
        return bool(self.resource) or self.nameless


def parse_query(query: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        found.setdefault(key, []).append(value)
    return found


def parse_target(request: HttpRequest) -> Target:
    """Never fails: what is no resource path comes back with `resource` empty."""
    other = Target(request.method.lower(), request.path)
    parts = [part for part in request.path.split("/") if part]
    if not parts or parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return other
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return other
    resource, name, subresource = (*rest[:3], "", "")[:3]
    if resource == "namespaces" and not group:
        namespace = name
    name_by_selector = "" if name else selected_name(request)
    verb = _verb(request, name, watch)
    return Target(
        verb,
        request.path,
        group,
        version,
        resource,
        namespace,
        name or (name_by_selector if verb in ("list", "watch") else ""),
        # What follows a proxy is the path behind it.
        subresource if subresource in ("", "proxy") else "/".join((subresource, *rest[3:])),
        watch,
    )


def _verb(request: HttpRequest, name: str, legacy_watch: bool) -> str:
    if request.method in ("GET", "HEAD"):
        if legacy_watch or (not name and is_true(request.query.get("watch"))):
            return "watch"
        return "get" if name else "list"
    verb = _VERBS.get(request.method, request.method.lower())
    return "deletecollection" if verb == "delete" and not name else verb


def selected_name(request: HttpRequest) -> str:
    """The name in a `fieldSelector=metadata.name=x`: such a list or watch acts on that one object."""
    for term in request.param("fieldSelector").split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name" and value:
            return value.removeprefix("=")
    return ""


def is_true(values: list[str] | None) -> bool:
    """A boolean query parameter: present and neither `false` nor `0`, as apimachinery converts it."""
    return bool(values) and values[0].lower() not in ("false", "0")  # type: ignore[index]
