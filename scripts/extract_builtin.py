"""Take the structure of the built-in kinds from a running kube-apiserver into the package's data files.

    KUBECONFIG=... scripts/extract_builtin.py --types "$(go env GOMODCACHE)/k8s.io" [--version v0.37.2]

Facts only: fields, types, formats, required, enums, defaults, list types and keys, patch strategies, kinds,
resources. Descriptions are left out. What OpenAPI does not tell, namely how Go writes a field that is not set
(pointers, omitempty), is read from the struct tags of the API types at `--types`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from plainjson import plain_json

TARGET = Path(__file__).parent.parent / "kopylite" / "apiserver" / "builtin" / "kinds"
MODULES = {
    "io.k8s.api.": "api",
    "io.k8s.apimachinery.": "apimachinery",
    "io.k8s.apiextensions-apiserver.": "apiextensions-apiserver",
    "io.k8s.kube-aggregator.": "kube-aggregator",
}
KEPT_PACKAGES = {"intstr.", "resource.", "runtime.", "types."}
DROPPED = {"description", "x-kubernetes-unions"}
# Structs that OpenAPI shows as scalars, and how Go writes their zero value.
ZERO_STRUCTS: dict[str, Any] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": None,
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": None,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "0",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 0,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": None,
}
FIELD = re.compile(r"^\s+(?:(\w+)\s+)?(\*?(?:\[\])?\*?[\w.\[\]*]+)\s+`json:\"([^\"]*)\"")
STRUCT = re.compile(r"^type (\w+) struct \{")


def raw(path: str) -> Any:
    done = subprocess.run(["kubectl", "get", "--raw", path], check=True, capture_output=True)
    return json.loads(done.stdout)


def without_descriptions(schema: Any, *, properties: bool = False) -> Any:
    if isinstance(schema, dict):
        kept = schema.items() if properties else ((k, v) for k, v in schema.items() if k not in DROPPED)
        return {k: without_descriptions(v, properties=k == "properties" and not properties) for k, v in kept}
    return [without_descriptions(v) for v in schema] if isinstance(schema, list) else schema


class GoTypes:
    """The struct fields of API packages: name on the wire -> (Go type, tag options)."""

    def __init__(self, root: Path, version: str) -> None:
        self.root, self.version = root, version
        self.packages: dict[str, dict[str, list[tuple[str, str, list[str]]]]] = {}

    def package(self, name: str) -> dict[str, list[tuple[str, str, list[str]]]]:
        """The structs of an OpenAPI package name such as `io.k8s.api.core.v1`."""
        if name not in self.packages:
            prefix, module = next(((p, m) for p, m in MODULES.items() if name.startswith(p)), ("", ""))
            folder = self.root / f"{module}@{self.version}" / name.removeprefix(prefix).replace(".", "/")
            self.packages[name] = self.structs(folder) if module and folder.is_dir() else {}
        return self.packages[name]

    @staticmethod
    def structs(folder: Path) -> dict[str, list[tuple[str, str, list[str]]]]:
        found: dict[str, list[tuple[str, str, list[str]]]] = {}
        for path in sorted(folder.glob("*.go")):
            current: list[tuple[str, str, list[str]]] | None = None
            for line in path.read_text().splitlines():
                if start := STRUCT.match(line):
                    current = found.setdefault(start[1], [])
                elif line.startswith("}"):
                    current = None
                elif current is not None and (field := FIELD.match(line)):
                    name, *options = field[3].split(",")
                    current.append((name, field[2], options))
        return found

    def fields(self, package: str, struct: str) -> dict[str, tuple[str, list[str]]]:
        result: dict[str, tuple[str, list[str]]] = {}
        for name, go_type, options in self.package(package).get(struct, []):
            if name and name != "-":
                result[name] = (go_type, options)
            elif not name:
                other = go_type.lstrip("*").rpartition(".")[2]
                home = package if "." not in go_type else "io.k8s.apimachinery.pkg.apis.meta.v1"
                result |= self.fields(home, other)
        return result


def reference(schema: dict[str, Any]) -> str:
    ref = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref") or ""
    return ref.rpartition("/")[2]


class Zeros:
    """How fields that are not set look on the wire."""

    def __init__(self, schemas: dict[str, Any], types: GoTypes) -> None:
        self.schemas, self.types = schemas, types

    def annotate(self, name: str) -> None:
        """Note in a schema which fields are always written, with what value, and which are left out at zero."""
        schema = self.schemas[name]
        package, _, struct = name.rpartition(".")
        always: dict[str, Any] = {}
        omit: list[str] = []
        names: dict[str, str] = {}
        for field, (go_type, options) in self.types.fields(package, struct).items():
            prop = schema.get("properties", {}).get(field)
            if prop is None:
                continue
            names[field] = qualified(go_type)
            pointer, empty = go_type.startswith("*"), "omitempty" in options
            struct_like = not pointer and self.is_struct(prop)
            if "omitzero" in options and struct_like:
                omit.append(field)
            elif struct_like or not empty:
                always[field] = None if pointer else self.zero(prop)
            elif not pointer:
                omit.append(field)
        if always:
            schema["x-kopylite-always"] = always
        if omit:
            schema["x-kopylite-omit"] = sorted(omit)
        if names:
            schema["x-kopylite-go"] = names

    def is_struct(self, prop: dict[str, Any]) -> bool:
        ref = reference(prop)
        return ref in ZERO_STRUCTS or bool(ref and "properties" in self.schemas.get(ref, {}))

    def zero(self, prop: dict[str, Any]) -> Any:
        """The zero value by wire type; that of a struct is `{}`: its own fields say the rest."""
        ref = reference(prop)
        if ref in ZERO_STRUCTS:
            return ZERO_STRUCTS[ref]
        target = self.schemas.get(ref, prop)
        if "properties" in target:
            return {}
        return {"string": "", "integer": 0, "number": 0, "boolean": False}.get(target.get("type", ""))


def qualified(go_type: str) -> str:
    """A type as Go's decoder names it in its errors: `PullPolicy` is `v1.PullPolicy`, `corev1.Pod` is `v1.Pod`."""

    def one(match: re.Match[str]) -> str:
        package, name = match[1], match[2]
        if not package and name[0].islower():
            return name
        return f"{package if package in KEPT_PACKAGES else 'v1.'}{name}"

    return re.sub(r"(\w+\.)?(\w+)", one, go_type.removeprefix("*")).replace("v1.map", "map")


def resources() -> list[dict[str, Any]]:
    groups = [("", [("v1", "/api/v1")])] + [
        (group["name"], [(v["version"], f"/apis/{v['groupVersion']}") for v in group["versions"]])
        for group in raw("/apis")["groups"]
    ]
    found = []
    for group, versions in groups:
        for version, path in versions:
            by_name: dict[str, dict[str, Any]] = {}
            for item in raw(path)["resources"]:
                plural, _, sub = item.pop("name").partition("/")
                if sub:
                    by_name.setdefault(plural, {"plural": plural, "subresources": {}})["subresources"][sub] = item
                else:
                    by_name.setdefault(plural, {"plural": plural, "subresources": {}}).update(item)
            found.append({"group": group, "version": version, "resources": list(by_name.values())})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", type=Path, required=True, help="folder that holds the modules of k8s.io")
    parser.add_argument("--version", default="v0.37.2", help="version of those modules")
    arguments = parser.parse_args()
    schemas: dict[str, Any] = {}
    documents: dict[str, list[str]] = {}
    for path, entry in raw("/openapi/v3")["paths"].items():
        if path == "api/v1" or path.count("/") == 2:
            found = raw(entry["serverRelativeURL"]).get("components", {}).get("schemas", {})
            documents[path.removeprefix("apis/").removeprefix("api/")] = sorted(found)
            for name, schema in found.items():
                known = without_descriptions(schema)
                if schemas.setdefault(name, known) != known:
                    kinds = schemas[name].setdefault("x-kubernetes-group-version-kind", [])
                    kinds += [k for k in known["x-kubernetes-group-version-kind"] if k not in kinds]
    # Field management takes a RawExtension for one value, whatever is in it.
    schemas["io.k8s.apimachinery.pkg.runtime.RawExtension"]["x-kopylite-untyped"] = True
    zeros = Zeros(schemas, GoTypes(arguments.types, arguments.version))
    for name in schemas:
        zeros.annotate(name)
    packages: dict[str, dict[str, Any]] = {}
    for name, schema in sorted(schemas.items()):
        package, _, kind = name.rpartition(".")
        packages.setdefault(package, {})[kind] = schema
    write({"resources": resources(), "documents": documents, "version": raw("/version")} | packages)


def write(members: dict[str, Any]) -> None:
    for path in TARGET.glob("*.json"):
        path.unlink()
    for name, value in members.items():
        (TARGET / f"{name}.json").write_text(plain_json(value))


if __name__ == "__main__":
    main()
