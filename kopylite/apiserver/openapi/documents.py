"""OpenApi: the documents under /openapi, made from what the registry serves. Pure.

kubectl reads schemas (explain, validation), and from each PATCH operation its kind, content types (a strategic
merge there or not decides how `apply` patches) and query parameters. Documents are made when they are asked
for; the index needs only their hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kopylite.apiserver.builtin.data import OWN_KEYS, SCHEMAS, documents
from kopylite.apiserver.crd.custom_resources import CustomResourceStrategy
from kopylite.apiserver.openapi.paths import DocumentPaths, Names
from kopylite.apiserver.openapi.v2 import definition, document
from kopylite.apiserver.openapi.v2_paths import converted_paths
from kopylite.apiserver.resources.registry import Registry, Resource
from kopylite.apiserver.schema.publish import META, published, published_list

_PREFIX = "#/components/schemas/"
# What every document of custom resources refers to, besides the resources themselves.
_CUSTOM_ROOTS = tuple(f"{META}.{name}" for name in ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status"))
# A kind whose apiVersion, kind and metadata are described as those of all kinds are.
_ORDINARY = "io.k8s.api.core.v1.ConfigMap"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"

Schema = dict[str, Any]
Describe = Callable[[str, Schema], Schema]


class OpenApi:
    """The OpenAPI v3 documents of a server.

    Args:
        registry: what is served now.
        minor: the emulated minor version of Kubernetes, for the documents' titles.
        describe: adds descriptions to a schema of a built-in kind, given its full name; must not change it.
    """

    def __init__(self, registry: Registry, minor: int, describe: Describe = lambda name, schema: schema) -> None:
        self._registry = registry
        self._minor = minor
        self._describe = describe
        self._cache: dict[str, tuple[str, dict[str, Any]]] = {}

    def index(self) -> dict[str, Any]:
        """The body of /openapi/v3: for each document its address, which changes with the content."""
        paths = {}
        for group in self._registry.groups():
            for version in self._registry.versions(group):
                key = f"apis/{group}/{version}" if group else f"api/{version}"
                address = f"/openapi/v3/{key}?hash={self._hash(self._resources(key))}"
                paths[key] = {"serverRelativeURL": address}
        return {"paths": dict(sorted(paths.items()))}

    def document(self, key: str) -> dict[str, Any] | None:
        """The document of a group version, by its key in the index ("apis/apps/v1"); None if it is not served."""
        resources = self._resources(key)
        if not resources:
            return None
        digest = self._hash(resources)
        cached = self._cache.get(key)
        if cached is None or cached[0] != digest:
            cached = self._cache[key] = digest, self._make(resources)
        return cached[1]

    def swagger(self) -> dict[str, Any]:
        """The document of /openapi/v2, which covers everything. Made anew when what is served has changed."""
        generation = str(self._registry.generation)
        cached = self._cache.get("v2")
        if cached is None or cached[0] != generation:
            definitions = {name: definition(self._builtin(name), custom=False) for name in SCHEMAS}
            for resources in self._custom_versions():
                schemas = self._custom_schemas(resources)
                names = schemas.keys() - SCHEMAS.keys()
                definitions |= {name: definition(schemas[name], custom=True) for name in names}
            made = document(self._all_paths(), dict(sorted(definitions.items())), self._minor)
            cached = self._cache["v2"] = generation, made
        return cached[1]

    def _all_paths(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for group in self._registry.groups():
            for version in self._registry.versions(group):
                document = self.document(f"apis/{group}/{version}" if group else f"api/{version}")
                assert document is not None, "of what is served"
                found |= converted_paths(document["paths"])
        return found

    def _custom_versions(self) -> Iterator[list[Resource]]:
        for group in self._registry.groups():
            for version in self._registry.versions(group):
                resources = self._registry.resources(group, version)
                if resources[0].custom:
                    yield resources

    def hash(self, key: str) -> str:
        """The current hash of a document, as the index has it; for ETag."""
        return self._hash(self._resources(key))

    def _resources(self, key: str) -> list[Resource]:
        prefix, _, rest = key.partition("/")
        group, _, version = rest.rpartition("/")
        if (prefix == "api") is not (group == "") or prefix not in ("api", "apis"):
            return []
        return self._registry.resources(group, version)

    def _hash(self, resources: list[Resource]) -> str:
        seen = [(r.plural, r.encoding_version, r.verbs, sorted(r.subresources), sorted(r.fields)) for r in resources]
        return hashlib.sha512(repr((self._minor, seen)).encode()).hexdigest().upper()

    def _make(self, resources: list[Resource]) -> dict[str, Any]:
        custom = resources[0].custom
        title = "Kubernetes CRD Swagger" if custom else "Kubernetes"
        version = "v0.1.0" if custom else f"1.{self._minor}"
        schemas = self._custom_schemas(resources) if custom else self._builtin_schemas(resources[0].api_version)
        names = _custom_name if custom else _builtin_names(schemas)
        components: dict[str, Any] = {"schemas": dict(sorted(schemas.items()))}
        if not custom:
            components["securitySchemes"] = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
        return {
            "openapi": "3.0.0",
            "info": {"title": title, "version": version},
            "paths": DocumentPaths(resources, names).paths(),
            "components": components,
        }

    def _builtin_schemas(self, api_version: str) -> dict[str, Schema]:
        schemas = {name: self._builtin(name) for name in documents()[api_version]}
        group, _, version = api_version.rpartition("/")
        for kind in ("DeleteOptions", "WatchEvent"):
            name = f"{META}.{kind}"
            if name in schemas:
                gvks = [{"group": "", "kind": kind, "version": "v1"}]
                if group:
                    gvks.append({"group": group, "kind": kind, "version": version})
                schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": gvks}
        return schemas

    def _builtin(self, name: str) -> Schema:
        schema = {key: value for key, value in SCHEMAS[name].items() if key not in OWN_KEYS}
        return self._describe(name, schema)

    def _custom_schemas(self, resources: list[Resource]) -> dict[str, Schema]:
        schemas: dict[str, Schema] = {}
        roots = [*_CUSTOM_ROOTS, _SCALE] if any("scale" in r.subresources for r in resources) else list(_CUSTOM_ROOTS)
        for name in _closure(roots):
            schemas[name] = self._builtin(name)
        for resource in resources:
            strategy = resource.strategy
            assert isinstance(strategy, CustomResourceStrategy)
            name, list_name = (_custom_name(resource.api_version, k) for k in (resource.kind, resource.list_kind))
            schema = self._describe(name, self._with_meta_texts(published(strategy.definition)))
            schemas[name] = {**schema, **_gvk(resource, resource.kind)}
            listed = self._describe(list_name, published_list(name))
            schemas[list_name] = {**listed, **_gvk(resource, resource.list_kind)}
            if resource.fields:
                fields = [{"fieldPath": field} for field in resource.fields]
                schemas[name]["x-kubernetes-selectable-fields"] = fields
                schemas[list_name]["x-kubernetes-selectable-fields"] = fields
        return schemas

    def _with_meta_texts(self, schema: Schema) -> Schema:
        """The schema of a custom kind, its apiVersion, kind and metadata described as in every kind."""
        texts = self._builtin(_ORDINARY)["properties"]
        fields = {
            name: {**schema["properties"][name], "description": texts[name]["description"]}
            for name in ("apiVersion", "kind", "metadata")
            if "description" in texts[name]
        }
        return {**schema, "properties": {**schema["properties"], **fields}}


def _gvk(resource: Resource, kind: str) -> Schema:
    gvk = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [gvk]}


def _custom_name(api_version: str, kind: str) -> str:
    """`com.example.v1.Widget` for Widget in example.com/v1."""
    group, _, version = api_version.partition("/")
    return ".".join([*reversed(group.split(".")), version, kind])


def _builtin_names(schemas: Mapping[str, Schema]) -> Names:
    """Names for the kinds that the schemas of one document stand for, of whatever group."""
    names = {
        (f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"], gvk["kind"]): name
        for name, schema in schemas.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }
    return lambda api_version, kind: names[api_version, kind]


def _closure(roots: list[str]) -> Iterator[str]:
    """The schemas that `roots` need, themselves included."""
    seen: set[str] = set()
    queue = list(roots)
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            queue.extend(_references(SCHEMAS[name]))
    yield from sorted(seen)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(_PREFIX)
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
