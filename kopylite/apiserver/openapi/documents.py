"""OpenApi: the documents under /openapi, made from what the registry serves. Pure.

kubectl reads schemas (explain, validation), and from each PATCH operation its kind, content types (a strategic
merge there or not decides how `apply` patches) and query parameters. Documents are made when they are asked
for, in small steps, since they are large; the index needs only their hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from kopylite.apiserver.builtin.data import OWN_KEYS, SCHEMAS, documents
from kopylite.apiserver.openapi.paths import DocumentPaths, SchemaNames
from kopylite.apiserver.openapi.sharing import NodeSteps, Shared
from kopylite.apiserver.openapi.v2 import definition, document
from kopylite.apiserver.openapi.v2_paths import V2Paths
from kopylite.apiserver.resources.registry import Registry, Resource
from kopylite.apiserver.schema.publish import META, published, published_list

_PREFIX = "#/components/schemas/"
# What every document of custom resources refers to, besides the resources themselves.
_CUSTOM_ROOTS = tuple(f"{META}.{name}" for name in ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status"))
# A kind whose apiVersion, kind and metadata are described as those of all kinds are.
_ORDINARY = "io.k8s.api.core.v1.ConfigMap"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"

T = TypeVar("T")
Schema = dict[str, Any]
Describe = Callable[[str, Schema], Schema]


class OpenApi:
    """The OpenAPI documents of a server.

    Args:
        registry: what is served now.
        minor: the emulated minor version of Kubernetes, for the documents' titles.
        describe: adds descriptions to a schema of a built-in kind, given its full name; must not change it.
        parameters: gives the descriptions of parameters, by name.
    """

    def __init__(
        self,
        registry: Registry,
        minor: int,
        describe: Describe = lambda name, schema: schema,
        parameters: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._registry = registry
        self._minor = minor
        self._describe = describe
        self._parameters = parameters
        # By key and form ("" is the document itself): the hash of what was served, and what was made of it.
        self._kept: dict[tuple[str, str], tuple[str, Shared[Any]]] = {}

    def index(self) -> dict[str, Any]:
        """The body of /openapi/v3: for each document its address, which changes with the content."""
        paths = {}
        for group, version in self._group_versions():
            key = _key(group, version)
            paths[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash={self.hash(key)}"}
        return {"paths": dict(sorted(paths.items()))}

    def served(self, key: str) -> bool:
        """Whether there is a document of this key in the index ("apis/apps/v1")."""
        return bool(self._resources(key))

    def document(self, key: str) -> NodeSteps[dict[str, Any]]:
        """The document of a group version that is served."""
        return self._once(key, "", self.hash(key), lambda: self._make(self._resources(key)))

    def swagger(self) -> NodeSteps[dict[str, Any]]:
        """The document of /openapi/v2, which covers everything. Made anew when what is served has changed."""
        return self._once("", "", self.hash(""), self._make_swagger)

    def encoded(self, key: str, form: str, encode: Callable[[dict[str, Any]], NodeSteps[bytes]]) -> NodeSteps[bytes]:
        """A document, or with the key "" that of /openapi/v2, in a form; `encode` makes it."""

        def make() -> NodeSteps[bytes]:
            document = yield from (self.document(key) if key else self.swagger())
            return (yield from encode(document))

        return self._once(key, form, self.hash(key), make)

    def _once(self, key: str, form: str, digest: str, make: Callable[[], NodeSteps[T]]) -> NodeSteps[T]:
        """What `make` makes, made once as long as the digest stays; several may wait for it."""
        kept = self._kept.get((key, form))
        if kept is None or kept[0] != digest:
            self._kept = {known: value for known, value in self._kept.items() if not known[0] or self.served(known[0])}
            kept = self._kept[key, form] = digest, Shared(make())
        shared: Shared[T] = kept[1]
        return shared.wait()

    def _make_swagger(self) -> NodeSteps[dict[str, Any]]:
        definitions = {}
        for name in SCHEMAS:
            definitions[name] = definition(self._builtin(name), custom=False)
            yield
        for resources in self._custom_versions():
            schemas = yield from self._custom_schemas(resources)
            names = schemas.keys() - SCHEMAS.keys()
            definitions |= {name: definition(schemas[name], custom=True) for name in names}
        paths = yield from self._all_paths()
        return document(*paths, dict(sorted(definitions.items())), self._minor)

    def _all_paths(self) -> NodeSteps[tuple[dict[str, Any], dict[str, Any]]]:
        """The paths, and the parameters that they share."""
        paths = V2Paths()
        for group, version in self._group_versions():
            key = _key(group, version)
            if self.served(key):  # it may have gone since the first step
                made = yield from self.document(key)
                for path, item in made["paths"].items():
                    paths.add(path, item)
                    yield
        return paths.found, paths.parameters

    def _group_versions(self) -> list[tuple[str, str]]:
        return [(group, version) for group in self._registry.groups() for version in self._registry.versions(group)]

    def _custom_versions(self) -> Iterator[list[Resource]]:
        for group, version in self._group_versions():
            resources = self._registry.resources(group, version)
            if resources and resources[0].custom:
                yield resources

    def hash(self, key: str) -> str:
        """The current hash of a document, as the index has it, or of that of /openapi/v2 ("")."""
        if key:
            return self._hash(self._resources(key))
        seen = [self._hash(self._registry.resources(*group_version)) for group_version in self._group_versions()]
        return _digest(seen)

    def _resources(self, key: str) -> list[Resource]:
        prefix, _, rest = key.partition("/")
        group, _, version = rest.rpartition("/")
        if (prefix == "api") is not (group == "") or prefix not in ("api", "apis"):
            return []
        return self._registry.resources(group, version)

    def _hash(self, resources: list[Resource]) -> str:
        seen = [(r.plural, r.encoding_version, r.verbs, sorted(r.subresources), sorted(r.fields)) for r in resources]
        return _digest((self._minor, seen))

    def _make(self, resources: list[Resource]) -> NodeSteps[dict[str, Any]]:
        custom = resources[0].custom
        title = "Kubernetes CRD Swagger" if custom else "Kubernetes"
        version = "v0.1.0" if custom else f"1.{self._minor}"
        schemas = yield from (
            self._custom_schemas(resources) if custom else self._builtin_schemas(resources[0].api_version)
        )
        names = _custom_name if custom else _builtin_names(schemas)
        components: dict[str, Any] = {"schemas": dict(sorted(schemas.items()))}
        if not custom:
            components["securitySchemes"] = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
        return {
            "openapi": "3.0.0",
            "info": {"title": title, "version": version},
            "paths": DocumentPaths(resources, names, self._parameters()).paths(),
            "components": components,
        }

    def _builtin_schemas(self, api_version: str) -> NodeSteps[dict[str, Schema]]:
        schemas = {}
        for name in documents()[api_version]:
            schemas[name] = self._builtin(name)
            yield
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

    def _custom_schemas(self, resources: list[Resource]) -> NodeSteps[dict[str, Schema]]:
        schemas: dict[str, Schema] = {}
        roots = [*_CUSTOM_ROOTS, _SCALE] if any("scale" in r.subresources for r in resources) else list(_CUSTOM_ROOTS)
        for name in _closure(roots):
            schemas[name] = self._builtin(name)
        for resource in resources:
            yield
            name, list_name = (_custom_name(resource.api_version, k) for k in (resource.kind, resource.list_kind))
            schema = self._describe(name, self._with_meta_texts(published(resource.definition)))
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


def _key(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _digest(value: Any) -> str:
    return hashlib.sha512(repr(value).encode()).hexdigest().upper()


def _gvk(resource: Resource, kind: str) -> Schema:
    gvk = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [gvk]}


def _custom_name(api_version: str, kind: str) -> str:
    """`com.example.v1.Widget` for Widget in example.com/v1."""
    group, _, version = api_version.partition("/")
    return ".".join([*reversed(group.split(".")), version, kind])


def _builtin_names(schemas: Mapping[str, Schema]) -> SchemaNames:
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
