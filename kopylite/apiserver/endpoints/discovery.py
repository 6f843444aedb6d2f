"""Discovery: what is served, in the legacy documents and in the aggregated one, and the plain paths around it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from kopylite.apiserver.request.negotiation import Media, accept_media, wanted_form
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.resources.registry import Registry, Resource, Subresource
from kopylite.errors import MethodNotAllowed, NotFound

_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}


class Discovery:
    """Answers /api, /apis and below. Encoded documents are kept until the registry changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._aggregated: dict[tuple[str, str], tuple[bytes, str]] = {}
        self.server_address = ""

    def respond(self, request: HttpRequest) -> Response:
        """Raises NotFound below a known group, MethodNotAllowed, NotAcceptable."""
        if request.method != "GET" and self._has_routes(request.path):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        if request.path.rstrip("/") in ("/api", "/apis") and (form := wanted_form(request, _AGGREGATED)):
            return self._respond_aggregated(request, form)
        document = self._document(request.path)
        if document is None:
            return page_not_found()
        media = accept_media(request, views=False)
        return Response(body=media.encode(document), content_type=media.type)

    def _has_routes(self, path: str) -> bool:
        """Whether a document has a route for each method, and not one handler for all of them."""
        parts = [part for part in path.split("/") if part]
        if parts in (["api"], ["api", "v1"]):
            return True
        return len(parts) == 3 and parts[0] == "apis" and self._registry.has_builtin(parts[1])

    def _document(self, path: str) -> dict[str, Any] | None:
        parts = [part for part in path.split("/") if part]
        if parts == ["api"]:
            return self._core_versions()
        if parts == ["apis"]:
            groups = [self._group(group) for group in self._registry.groups() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if len(parts) == 2 and parts[0] == "apis" and self._registry.versions(parts[1]):
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
        if parts[:1] == ["api"]:
            return self._resource_list("", parts[1]) if len(parts) == 2 else _missing()
        if len(parts) == 3 and parts[0] == "apis" and parts[2] in self._registry.versions(parts[1]):
            return self._resource_list(parts[1], parts[2])
        if len(parts) >= 3 and parts[0] == "apis" and self._registry.has_builtin(parts[1]):
            return _missing()
        return None

    def _core_versions(self) -> dict[str, Any]:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.server_address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def _group(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in self._registry.versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> dict[str, Any]:
        resources = self._registry.resources(group, version)
        if not resources:
            _missing()
        entries: list[dict[str, Any]] = []
        for resource in resources:
            entries.append(_entry(resource))
            entries.extend(_sub_entry(resource, resource.subresources[name]) for name in resource.subresources)
        group_version = f"{group}/{version}" if group else version
        # Of custom resources upstream says apiVersion, of built-ins only of groups that have one.
        head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
        return {**head, "groupVersion": group_version, "resources": entries}

    def _respond_aggregated(self, request: HttpRequest, form: str) -> Response:
        if self._generation != self._registry.generation:
            self._aggregated = {}
            self._generation = self._registry.generation
        path = request.path.rstrip("/")
        body, etag = self._aggregated.get((path, form)) or self._encode_aggregated(path, form)
        content_type = ";".join((form, *(f"{name}={value}" for name, value in _AGGREGATED.items())))
        headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("if-none-match") == etag:
            return Response(304, b"", content_type, headers)
        return Response(200, body, content_type, headers)

    def _encode_aggregated(self, path: str, form: str) -> tuple[bytes, str]:
        """The document and its hash, which is the same in each form."""
        document = self._aggregate(core=path == "/api")
        etag = f'"{hashlib.sha512(msgspec.json.encode(document)).hexdigest().upper()}"'
        self._aggregated[path, form] = Media(form).encode(document), etag
        return self._aggregated[path, form]

    def _aggregate(self, *, core: bool) -> dict[str, Any]:
        groups = [group for group in self._registry.groups() if bool(group) != core]
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [self._aggregated_version(group, v) for v in self._registry.versions(group)],
            }
            for group in groups
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _aggregated_version(self, group: str, version: str) -> dict[str, Any]:
        resources = [_aggregated_resource(resource) for resource in self._registry.resources(group, version)]
        return {"version": version, "resources": resources, "freshness": "Current"}


def page_not_found() -> Response:
    """What comes for a path that no handler knows."""
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


def _missing() -> dict[str, Any]:
    raise NotFound("the server could not find the requested resource")


def _subresources(resource: Resource) -> list[Subresource]:
    """Of built-ins by name, of custom resources as declared: status before scale."""
    declared = list(resource.subresources.values())
    return declared if resource.custom else sorted(declared, key=lambda sub: sub.name)


def _entry(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sorted(resource.verbs) if not resource.custom else list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = resource.storage_version_hash
    return entry


def _sub_entry(resource: Resource, sub: Subresource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if sub.group or sub.version:
        entry.update(group=sub.group, version=sub.version)
    return {**entry, "kind": sub.kind, "verbs": list(sub.verbs)}


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    # Built-ins leave group and version empty where they are those of the path.
    kind = {"group": resource.group, "version": resource.version} if resource.custom else {"group": "", "version": ""}
    found: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {**kind, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": sorted(resource.verbs) if not resource.custom else list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group or kind["group"],
                    "version": sub.version or kind["version"],
                    "kind": sub.kind,
                },
                "verbs": list(sub.verbs),
            }
            for _, sub in resource.subresources.items()
        ]
    return found
