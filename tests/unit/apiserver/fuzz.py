"""Requests that nobody would send, by the schema of each kind and by no schema at all. Seeded: each can be repeated."""

# ruff: noqa: E501 - tables of odd texts

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from kopylite.apiserver.builtin import data

_REF = "#/components/schemas/"
_DEPTH = 6

# What each kind of value is replaced by. The strings are texts that some parser reads: numbers, times, names, rules.
NUMBERS: list[Any] = [
    0, -1, 1, 1.0, 1.5, -0.0, 1e30, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**40, 1e308, 65536,
]  # fmt: skip
TEXTS = [
    "", "a", "A", "1", "-1", "1e30", "1e-30", "9999999999Ei", "1e999999999", "1.5.5", "1Ki5", "9" * 5000, "1" * 400 + "m",
    "100%", "-1%", "9" * 400 + "%", "é", "\x00", "\x7f", "\u2028", "a/b", "a/b/c", "/", "//", ".", "..", "*", "%", "%zz",
    "a" * 64, "a" * 254, "a." * 130, "-", "_", " ", "\n", "\t\u00a0", "null", "true", "{}", "[]", "$(x)", "$", "a=b", "a,b",
    "2024-02-30T00:00:00Z", "2024-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2024-01-01",
    "2024-01-01T00:00:00+99:99", "1h", "-1ns", "1h1h1h", "999999999h", "10.0.0.1", "::1", "::ffff:1.2.3.4", "fe80::1%eth0",
    "10.0.0.0/8", "10.0.0.1/33", "::/129", "* * * * *", "@every 1h", "*/0 * * * *", "60 24 32 13 8", "TZ=x * * * * *",
    "aGVsbG8=", "a===", "http://x:99999/", "https://[::1", "//x", "a:b@c", "v1", "apps/v1", "(", "[a", "^(a+)+$", "\\p{Lx",
    "self", "self.x > ", "self == oldSelf", "self.all(x, x.all(y, y))", "((((" * 40 + "))))" * 40, ".spec.x", "{.spec['a']}",
    "IfNotPresent", "Always", "ClusterIP", "ExternalName", "None", "kubernetes.io/x", "default", "kube-system",
]  # fmt: skip
# A lone surrogate is legal in JSON text, and no Unicode text at all.
OTHERS: list[Any] = [
    None,
    True,
    False,
    [],
    {},
    [None],
    {"": None},
    {"a": {}},
    [[]],
    ["a", "a"],
    {"name": ""},
    [{}],
    [1, "a"],
]

QUERY: Mapping[str, list[str]] = {
    "resourceVersion": ["0", "1", "-1", "x", "9" * 5000, "99999999999999999999", "1.5", "", "١"],
    "resourceVersionMatch": ["Exact", "NotOlderThan", "x", ""],
    "limit": ["0", "1", "-1", "x", "9" * 5000, "99999999999999999999"],
    "continue": ["x", "", "é", base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":-5,"start":"x"}').decode(),
                 base64.urlsafe_b64encode(b"[" * 3000).decode(), base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":99999999999999999999,"start":"/"}').decode()],
    "labelSelector": ["a=b", "a in (", "!", "a in (b,c),!d", "a>1", "a>" + "9" * 5000, "é=é", "(" * 200, ",,,", "a=" + "b" * 70],
    "fieldSelector": ["metadata.name=x", "a", "=", "metadata.name!=a,b", "\\", "metadata.name=\\x", "spec.nodeName=", "," * 50],
    "timeoutSeconds": ["1", "0", "-1", "x", "9" * 5000, "1.5", "99999999999"],
    "timeout": ["1s", "x", "-1s", "0", "9" * 400 + "h", "1h1h"],
    "watch": ["1", "true", "x", ""],
    "sendInitialEvents": ["true", "false", "x"],
    "allowWatchBookmarks": ["true", "x"],
    "fieldManager": ["m", "", "m" * 200, "\x00", "é", "a/b"],
    "fieldValidation": ["Strict", "Warn", "Ignore", "x", ""],
    "force": ["true", "false", "x"],
    "dryRun": ["All", "x", ""],
    "gracePeriodSeconds": ["0", "-1", "x", "9" * 5000, "99999999999999999999"],
    "propagationPolicy": ["Orphan", "Foreground", "x", ""],
    "orphanDependents": ["true", "x"],
    "pretty": ["true", "x"],
    "includeObject": ["None", "Object", "x"],
}  # fmt: skip
ACCEPTS = [
    "application/json", "*/*", "", "application/yaml", "text/html", "application/json;as=Table;v=v1;g=meta.k8s.io", ";;;", ",",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=x;v=y;g=z", "é", "application/*;q=x",
    "application/vnd.kubernetes.protobuf", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "a/b;c=\"",
]  # fmt: skip
PATCHES = [
    "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/apply-patch+cbor", "x", "",
]  # fmt: skip
BODIES = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    "application/json; charset=x",
]


@dataclass(slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.path[:200]} {self.headers} {self.body[:600]!r}"


class Fuzz:
    """An endless supply of odd requests to what the built-in kinds and one custom kind serve."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._kinds = list(_kinds())

    def requests(self, count: int) -> Iterator[Asked]:
        for _ in range(count):
            yield self._request()

    def seeds(self) -> Iterator[Asked]:
        """An object `a` of each kind that takes the plainest one, so that later requests meet something."""
        containers = [{"name": "a", "image": "a"}]
        template = {"metadata": {"labels": {"a": "a"}}, "spec": {"containers": containers, "restartPolicy": "Always"}}
        specs: dict[str, Any] = {
            "Pod": {"containers": containers}, "Service": {"ports": [{"port": 80}]}, "Widget": {"size": 1},
            "Deployment": {"selector": {"matchLabels": {"a": "a"}}, "template": template},
            "StatefulSet": {"selector": {"matchLabels": {"a": "a"}}, "template": template, "serviceName": "a"},
            "ReplicaSet": {"selector": {"matchLabels": {"a": "a"}}, "template": template},
            "ResourceQuota": {"hard": {"cpu": "1"}}, "NetworkPolicy": {"podSelector": {}},
            "PersistentVolumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }  # fmt: skip
        for path, _, kind, api_version, verbs in self._kinds:
            if "create" in verbs:
                plain = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}
                spec = {"spec": specs[kind]} if kind in specs else {}
                yield Asked("POST", path, {}, json.dumps(plain | spec).encode())

    def _request(self) -> Asked:
        if self.random.random() < 0.05:
            return self._lost()
        collection, item, kind, api_version, verbs = self.random.choice(self._kinds)
        schema = self._body(kind, api_version)
        name = self.random.choice(["a", "a", "a", "b", "default", "kubernetes", "widgets.example.com"])
        if self.random.random() < 0.9 and isinstance(schema.get("metadata"), dict):
            schema["metadata"] = {**(schema["metadata"] if self.random.random() < 0.2 else {}), "name": name}
        method = self._method(verbs)
        path = collection if method == "POST" or self.random.random() < 0.1 else f"{item.replace('NAME', name)}"
        headers = {}
        if method == "PATCH":
            headers["content-type"] = self.random.choice(PATCHES)
            if headers["content-type"] == "application/json-patch+json":
                schema = self._json_patch(schema)
        elif self.random.random() < 0.1:
            headers["content-type"] = self.random.choice(BODIES)
        if method == "DELETE" and self.random.random() < 0.7:
            schema = self._of_type("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", 0)
        if self.random.random() < 0.15:
            headers["accept"] = self.random.choice(ACCEPTS)
        if self.random.random() < 0.8:
            for _ in range(self.random.choice([0, 0, 1, 1, 2, 4])):
                schema = self.mutated(schema)
        return Asked(method, path + self._query(method), headers, self._encoded(schema, headers, method))

    def _body(self, kind: str, api_version: str) -> dict[str, Any]:
        crd = kind == "CustomResourceDefinition" and self.random.random() < 0.7
        body = _definition(self) if crd else self._object(kind)
        if self.random.random() < 0.95:
            body["apiVersion"], body["kind"] = api_version, kind
        return body

    def _method(self, verbs: list[str]) -> str:
        known = [verb for verb in verbs if verb in _METHODS]
        if known and self.random.random() < 0.9:
            return _METHODS[self.random.choice(known)]
        return self.random.choice(["POST", "PUT", "PATCH", "GET", "DELETE"])

    def _encoded(self, obj: Any, headers: dict[str, str], method: str) -> bytes:
        if method == "GET":
            return b""
        body = json.dumps(obj).encode()
        pick = self.random.random()
        if pick > 0.1:
            return body
        if pick > 0.08:
            return body[: self.random.randrange(len(body) + 1)]
        if pick > 0.06:
            at = self.random.randrange(len(body) + 1)
            return body[:at] + self.random.randbytes(3) + body[at + 3 :]
        if pick > 0.05:
            return self.random.choice(
                [b"[" * 20000, b'{"a":' * 20000, b"\xff\xfe", b"null", b'"a"', b"1", b"[]", b"{}", b" "]
            )
        if pick > 0.04:
            headers["content-type"] = "application/yaml" if method != "PATCH" else headers.get("content-type", "")
            return self.random.choice([b"a: &a [*a]", b"a: !!python/name:os", b"a: 2024-01-01", b"? [a]\n: b", b"a: 0x" + b"f" * 5000,
                                       b"- " * 5000, b"a: &x {b: *x}", b"<<: {a: b}", b"a: .nan", b"---\na: b\n---\nc: d", b"%", b"a: 1_0"])  # fmt: skip
        if pick > 0.02:
            headers["content-type"] = "application/vnd.kubernetes.protobuf"
            return self._protobuf()
        headers["content-encoding"] = "gzip"
        return gzip.compress(body)

    def _protobuf(self) -> bytes:
        inner = bytearray(self.random.randbytes(self.random.randrange(60)))
        for _ in range(self.random.randrange(6)):
            inner += bytes([self.random.choice([0x0A, 0x12, 0x1A, 0x08, 0x22]), self.random.randrange(8)])
        api, kind = self.random.choice(
            [(b"v1", b"Pod"), (b"apps/v1", b"Deployment"), (b"v1", b"ConfigMap"), (b"", b""), (b"v1", b"Event")]
        )
        meta = b"\x0a" + bytes([len(api)]) + api + b"\x12" + bytes([len(kind)]) + kind
        return b"k8s\x00\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([min(len(inner), 127)]) + bytes(inner)

    def _query(self, method: str) -> str:
        names = self.random.sample(sorted(QUERY), self.random.choice([0, 0, 0, 1, 1, 2, 3]))
        if method == "GET" and self.random.random() < 0.3:
            names.append("timeoutSeconds")
        parts = [f"{name}={quote(self.random.choice(QUERY[name]), safe='')}" for name in names]
        return f"?{'&'.join(parts)}" if parts else ""

    def _lost(self) -> Asked:
        """A path that is nowhere, or a document."""
        part = self.random.choice(
            ["api", "apis", "v1", "..", "", "é", "%", "\x00", "openapi", "v2", "v3", "version", "healthz", "x" * 300]
        )
        paths = ["/", "/api", "/apis", "/openapi/v2", "/openapi/v3", f"/{part}", f"/apis/{part}", f"/api/v1/{part}/{part}",
                 f"/apis/apps/v1/namespaces/{part}/deployments/{part}/{part}", f"/openapi/v3/{part}", "/healthz/x", "/version/x",
                 f"/api/v1/namespaces/{part}", "/api/v1/watch/pods", f"/api/v1/namespaces/default/pods/a/{part}", "//", "/readyz?verbose"]  # fmt: skip
        method = self.random.choice(
            ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "x"]
        )
        headers = {"accept": self.random.choice(ACCEPTS)} if self.random.random() < 0.5 else {}
        return Asked(
            method, self.random.choice(paths) + self._query(method), headers, self.random.choice([b"", b"{}", b"["])
        )

    def _json_patch(self, obj: Any) -> Any:
        paths = ["", "/", "/metadata/labels/a", "/spec", "/spec/x/0", "/metadata/finalizers/-", "/metadata/finalizers/" + "9" * 5000,
                 "/metadata/finalizers/-1", "a", "/~2", "/~0~1", "/metadata", "/kind", "/spec/containers/0"]  # fmt: skip
        value = self.random.choice([obj, 1, None, "a", [], {}, 1e30])
        return [
            {
                "op": self.random.choice(["add", "remove", "replace", "move", "copy", "test", "x"]),
                "path": self.random.choice(paths),
                "from": self.random.choice(paths),
                "value": value,
            }
            for _ in range(self.random.randrange(4))
        ]

    def mutated(self, obj: Any) -> Any:
        """The value with one place in it replaced."""
        places = list(_places(obj))
        if not places:
            return self.value()
        parent, key = self.random.choice(places)
        pick = self.random.random()
        if pick < 0.1:
            del parent[key]
        elif pick < 0.2 and isinstance(parent, dict):
            parent[self.random.choice(TEXTS)] = self.value()
        elif pick < 0.3 and isinstance(parent, list):
            parent.extend(json.loads(json.dumps(parent)))
        elif isinstance(parent[key], str) and pick < 0.7:
            parent[key] = self.random.choice([*TEXTS, "\ud800"])
        elif isinstance(parent[key], (int, float)) and pick < 0.7:
            parent[key] = self.random.choice(NUMBERS)
        else:
            parent[key] = self.value()
        return obj

    def value(self) -> Any:
        value = self.random.choice([*NUMBERS, *self.random.sample(TEXTS, 12), *OTHERS, "\ud800", 10**400])
        return json.loads(json.dumps(value)) if isinstance(value, (dict, list)) else value

    def _object(self, kind: str) -> dict[str, Any]:
        names = [name for name in data.SCHEMAS if name.rpartition(".")[2] == kind]
        return self._of_type(self.random.choice(names), 0) if names else {"metadata": {}, "spec": {"size": 1}}

    def _of_type(self, name: str, depth: int) -> Any:
        return self._of_schema(data.SCHEMAS[name], depth)

    def _of_schema(self, schema: Mapping[str, Any], depth: int) -> Any:
        ref = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
        if ref is not None:
            return self._of_type(ref.removeprefix(_REF), depth)
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            return self._of_struct(schema, depth)
        if kind == "array":
            count = self.random.choice([0, 1, 1, 2]) if depth < _DEPTH else 0
            return [self._of_schema(schema["items"], depth + 1) for _ in range(count)]
        if kind == "integer":
            return (
                self.random.choice([1, 2, 80, 0, *NUMBERS])
                if self.random.random() < 0.1
                else self.random.choice([1, 2, 80])
            )
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "number":
            return self.random.choice([1, 0.5])
        return self._text(schema)

    def _of_struct(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        found = {}
        needed = set(schema.get("required") or ())
        few = 0.9 if depth < 2 else 0.3 if depth < 4 else 0.15
        for name, prop in (schema.get("properties") or {}).items():
            if name == "managedFields" and self.random.random() < 0.95:
                continue
            if name in needed or (depth < _DEPTH and self.random.random() < few):
                found[name] = self._of_schema(prop, depth + 1)
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and depth < _DEPTH:
            for _ in range(self.random.randrange(3)):
                found[self.random.choice(["a", "b", "cpu", "memory", "app"])] = self._of_schema(values, depth + 1)
        return found

    def _text(self, schema: Mapping[str, Any]) -> str:
        if schema.get("enum"):
            return str(self.random.choice(schema["enum"]))
        if schema.get("format") == "date-time":
            return "2024-01-01T00:00:00Z"
        if self.random.random() < 0.04:
            return self.random.choice(TEXTS)
        return self.random.choice(["a", "b", "1", "100m", "1Gi", "TCP", "10.0.0.1", "default", "v1", "x.example.com"])


_METHODS = {"create": "POST", "get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_ALL = ["create", "get", "update", "patch", "delete"]
_WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def _kinds() -> Iterator[tuple[str, str, str, str, list[str]]]:
    """(collection path, item path with NAME, kind, apiVersion, verbs) of all resources and sub-resources."""
    for group in data.served():
        api_version = f"{group['group']}/{group['version']}" if group["group"] else group["version"]
        prefix = f"/apis/{api_version}" if group["group"] else f"/api/{api_version}"
        for resource in group["resources"]:
            inside = "/namespaces/default" if resource["namespaced"] else ""
            path = f"{prefix}{inside}/{resource['plural']}"
            yield path, f"{path}/NAME", resource["kind"], api_version, resource["verbs"]
            for name, sub in resource["subresources"].items():
                below = f"{path}/NAME/{name}"
                of = "/".join(filter(None, (sub.get("group"), sub.get("version")))) or api_version
                yield below.replace("NAME", "a"), below, sub["kind"], of, sub["verbs"]
    for _ in range(10):
        yield _WIDGETS, f"{_WIDGETS}/NAME", "Widget", "example.com/v1", _ALL
    yield f"{_WIDGETS}/a/status", f"{_WIDGETS}/NAME/status", "Widget", "example.com/v1", ["get", "update", "patch"]
    yield f"{_WIDGETS}/a/scale", f"{_WIDGETS}/NAME/scale", "Scale", "autoscaling/v1", ["get", "update", "patch"]


def _definition(fuzz: Fuzz) -> dict[str, Any]:
    """A CRD that is nearly right."""
    some = fuzz.random.choice
    leaf = {
        "type": some(["string", "integer", "number", "object", "array", "boolean"]),
        "pattern": some(TEXTS), "format": some(["date-time", "ipv4", "uuid", "int64", "duration", "x", ""]),
        "minimum": some(NUMBERS), "maxLength": some(NUMBERS), "enum": [fuzz.value(), "a"], "default": fuzz.value(),
        "x-kubernetes-validations": [{"rule": some(TEXTS), "message": some(TEXTS), "messageExpression": some(TEXTS)}],
        "x-kubernetes-list-type": some(["map", "set", "atomic"]), "items": {"type": "string"}, "multipleOf": some(NUMBERS),
    }  # fmt: skip
    leaf = {key: leaf[key] for key in ["type", *fuzz.random.sample(sorted(leaf), 4)]}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": leaf}}}}
    column = {"name": "A", "type": some(["string", "date", "integer"]), "jsonPath": some(TEXTS)}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [column],
    }
    names = {"kind": "Gadget", "plural": "gadgets"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": "gadgets.example.com"}, "spec": spec}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _places(inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from _places(inner)
