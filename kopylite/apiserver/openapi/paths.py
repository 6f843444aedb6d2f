"""The `paths` of an OpenAPI document: one operation for each verb of each resource. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kopylite.apiserver.resources.registry import Resource, Subresource
from kopylite.apiserver.schema.publish import META

Operation = dict[str, Any]
# Names the schema of a kind in an apiVersion.
SchemaNames = Callable[[str, str], str]

_BOOLEANS = frozenset(
    {"allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force",
     "ignoreStoreReadErrorWithClusterBreakingPotential"}
)  # fmt: skip
_INTEGERS = frozenset({"limit", "timeoutSeconds", "gracePeriodSeconds"})
_IN_PATH = frozenset({"name", "namespace"})
_LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE = (
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
    "propagationPolicy",
)  # fmt: skip
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE_MANY = tuple(sorted({*_LIST, *_DELETE} - {"allowWatchBookmarks", "watch"}))
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
# They connect to a kubelet, which is not here: not served, so not documented.
_CONNECTIONS = frozenset({"attach", "exec", "portforward", "proxy"})
_TITLES = {"get": "read", "put": "replace", "patch": "patch", "delete": "delete", "post": "create"}
_VERBS = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}


class DocumentPaths:
    """The paths of one group version.

    Args:
        resources: all of it.
        name_of: names the schema of a kind.
        texts: descriptions of parameters, by name.
    """

    def __init__(self, resources: list[Resource], name_of: SchemaNames, texts: Mapping[str, str] = {}) -> None:
        self._resources = resources
        self._name_of = name_of
        self._texts = texts
        first = resources[0]
        self._custom = first.custom
        self._base = f"/apis/{first.api_version}" if first.group else f"/api/{first.version}"
        words = first.group.removesuffix(".k8s.io").split(".") if first.group else ["core"]
        camel = "".join(word[:1].upper() + word[1:] for word in words)
        self._tag = f"{camel[:1].lower()}{camel[1:]}_{first.version}"
        self._id = camel + first.version[:1].upper() + first.version[1:]

    def paths(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not self._custom:
            found[f"{self._base}/"] = {"get": self._index_operation()}
        for resource in self._resources:
            root = f"{self._base}/namespaces/{{namespace}}" if resource.namespaced else self._base
            self._add(found, f"{root}/{resource.plural}", self._collection(resource), resource.kind)
            self._add(found, f"{root}/{resource.plural}/{{name}}", self._item(resource), resource.kind)
            for subresource in resource.subresources.values():
                if subresource.name in _CONNECTIONS:
                    continue
                path = f"{root}/{resource.plural}/{{name}}/{subresource.name}"
                self._add(found, path, self._sub_item(resource, subresource), subresource.kind)
            if resource.namespaced and "list" in resource.verbs:
                found[f"{self._base}/{resource.plural}"] = self._all_namespaces(resource)
        return dict(sorted(found.items()))

    def _add(self, found: dict[str, Any], path: str, operations: dict[str, Any], kind: str) -> None:
        if operations:
            names = [name for name in ("name", "namespace") if f"{{{name}}}" in path]
            found[path] = {**operations, "parameters": self._parameters((*names, "pretty"), kind)}

    def _index_operation(self) -> Operation:
        return {
            "tags": [self._tag],
            "description": "get available resources",
            "operationId": f"get{self._id}APIResources",
            "responses": _responses(("200",), f"{META}.APIResourceList", self._types()),
        }

    def _types(self, *, streams: bool = False) -> tuple[str, ...]:
        """Media types of answers; those of a real server, whose built-in kinds have protobuf too."""
        if self._custom:
            return ("application/json", "application/yaml")
        proto = "application/vnd.kubernetes.protobuf"
        stream = ("application/json;stream=watch", f"{proto};stream=watch") if streams else ()
        return tuple(sorted(("application/json", proto, "application/yaml", *stream)))

    def _parameters(self, names: tuple[str, ...], kind: str = "") -> list[dict[str, Any]]:
        """`kind`: whose name it is."""
        texts = {**self._texts, "name": f"name of the {kind}"} if self._texts and kind else self._texts
        return [{**_parameter(name), **({"description": texts[name]} if name in texts else {})} for name in names]

    def _operation(self, resource: Resource, action: str, title: str, parameters: tuple[str, ...]) -> Operation:
        """The common part of an operation."""
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        return {
            "tags": [self._tag],
            "operationId": title,
            **({"parameters": self._parameters(parameters)} if parameters else {}),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        }

    def _title(self, verb: str, resource: Resource, suffix: str = "") -> str:
        scope = "Namespaced" if resource.namespaced else ""
        return f"{verb}{self._id}{scope}{resource.kind}{suffix}"

    def _body(self, schema: str, *, required: bool = True) -> dict[str, Any]:
        types = self._types() if self._custom else ("*/*",)
        body: dict[str, Any] = {"content": _content(types, schema)}
        return {**body, "required": True} if required else body

    def _collection(self, resource: Resource) -> dict[str, Any]:
        schema = self._name_of(resource.api_version, resource.kind)
        found = {}
        if "list" in resource.verbs:
            listed = self._name_of(resource.api_version, resource.list_kind)
            get = self._operation(resource, "list", self._title("list", resource), _LIST)
            found["get"] = {**get, "responses": _responses(("200",), listed, self._types(streams=True))}
        if "create" in resource.verbs:
            post = self._operation(resource, "post", self._title("create", resource), _WRITE)
            answers = _responses(("200", "201", "202"), schema, self._types())
            found["post"] = {**post, "requestBody": self._body(schema), "responses": answers}
        if "deletecollection" in resource.verbs:
            names = _LIST if self._custom else _DELETE_MANY
            delete = self._operation(resource, "deletecollection", self._collection_title(resource), names)
            if not self._custom:
                delete["requestBody"] = self._body(f"{META}.DeleteOptions", required=False)
            found["delete"] = {**delete, "responses": _responses(("200",), f"{META}.Status", self._types())}
        return found

    def _collection_title(self, resource: Resource) -> str:
        scope = "Namespaced" if resource.namespaced else ""
        return f"delete{self._id}Collection{scope}{resource.kind}"

    def _item(self, resource: Resource) -> dict[str, Any]:
        schema = self._name_of(resource.api_version, resource.kind)
        found = self._verbs(resource, resource.verbs, schema, "")
        if "delete" in resource.verbs:
            delete = self._operation(resource, "delete", self._title("delete", resource), _DELETE)
            delete["requestBody"] = self._body(f"{META}.DeleteOptions", required=False)
            found["delete"] = {**delete, "responses": _responses(("200", "202"), f"{META}.Status", self._types())}
        return found

    def _sub_item(self, resource: Resource, subresource: Subresource) -> dict[str, Any]:
        kind = subresource.kind
        own = f"{subresource.group}/{subresource.version}" if subresource.group else resource.api_version
        schema = _SCALE if kind == "Scale" else self._name_of(own, kind)
        suffix = "".join(part[:1].upper() + part[1:] for part in subresource.name.split("/"))
        found = self._verbs(resource, subresource.verbs, schema, suffix)
        if "create" in subresource.verbs:
            post = self._operation(resource, "post", self._title("create", resource, suffix), _WRITE)
            answers = _responses(("200", "201", "202"), schema, self._types())
            found["post"] = {**post, "requestBody": self._body(schema), "responses": answers}
        if subresource.group and not self._custom:
            gvk = {"group": subresource.group, "version": subresource.version, "kind": kind}
            for operation in found.values():
                operation["x-kubernetes-group-version-kind"] = gvk
        return found

    def _verbs(self, resource: Resource, verbs: tuple[str, ...], schema: str, suffix: str) -> dict[str, Any]:
        found = {}
        for method in ("get", "put", "patch"):
            if _VERBS[method] not in verbs:
                continue
            names = {"get": ("resourceVersion",) if self._custom else (), "put": _WRITE, "patch": (*_WRITE, "force")}
            title = self._title(_TITLES[method], resource, suffix)
            operation = self._operation(resource, method, title, names[method])
            codes = ("200",) if method == "get" or (method == "patch" and self._custom) else ("200", "201")
            if method == "put":
                operation["requestBody"] = self._body(schema)
            elif method == "patch":
                types = _PATCHES if self._custom else (*_PATCHES, _STRATEGIC)
                operation["requestBody"] = {"content": _content(types, f"{META}.Patch"), "required": True}
            found[method] = {**operation, "responses": _responses(codes, schema, self._types())}
        return found

    def _all_namespaces(self, resource: Resource) -> dict[str, Any]:
        listed = self._name_of(resource.api_version, resource.list_kind)
        title = f"list{self._id}{resource.kind}ForAllNamespaces"
        get = self._operation(resource, "list", title, ())
        get["responses"] = _responses(("200",), listed, self._types(streams=True))
        return {"get": get, "parameters": self._parameters(tuple(sorted((*_LIST, "pretty"))))}


def _parameter(name: str) -> dict[str, Any]:
    kind = "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"
    schema = {"type": kind, "uniqueItems": True}
    if name in _IN_PATH:
        return {"name": name, "in": "path", "required": True, "schema": schema}
    return {"name": name, "in": "query", "schema": schema}


def _content(types: tuple[str, ...], schema: str) -> dict[str, Any]:
    return {media: {"schema": {"$ref": f"#/components/schemas/{schema}"}} for media in types}


def _responses(codes: tuple[str, ...], schema: str, types: tuple[str, ...]) -> dict[str, Any]:
    texts = {"200": "OK", "201": "Created", "202": "Accepted"}
    found: dict[str, Any] = {code: {"description": texts[code], "content": _content(types, schema)} for code in codes}
    found["401"] = {"description": "Unauthorized"}
    return found
