"""Take the protobuf layout of the built-in kinds from Kubernetes' Go modules into the package's data file.

    scripts/extract_protobuf.py --modules "$(go env GOMODCACHE)/k8s.io" [--version v0.37.2]

Facts only: message, field number, type, and the JSON name of the field. Numbers and types are read from the
generated.proto of each package, JSON names from the struct tags beside it. The result has one member for each
package, {message: {number: [JSON name, kind, type]}}: a kind is one of one, many, map (type: the value's) and
inline (the fields belong to the message around it).
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from pathlib import Path

TARGET = Path(__file__).parent.parent / "kopylite" / "apiserver" / "request" / "protobuf" / "messages.zip"
MODULES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
STABLE = re.compile(r"\.v\d+$")
KEPT = ("k8s.io.apimachinery.pkg.",)
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (optional|repeated|map<string, ([\w.]+)>) (?:([\w.]+) )?(\w+) = (\d+);", re.MULTILINE)
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.MULTILINE | re.DOTALL)
# package -> message -> number -> [JSON name, kind, type]
Packages = dict[str, dict[str, dict[str, list[str]]]]
TAG = re.compile(r'`json:"([^"]*)"[^`]*protobuf:"\w+,(\d+)[^`]*`')


def json_names(folder: Path) -> dict[str, dict[str, str]]:
    """struct -> field number -> JSON name ("" of an inlined struct)."""
    found: dict[str, dict[str, str]] = {}
    for file in folder.glob("*.go"):
        for struct, body in STRUCT.findall(file.read_text()):
            names = {number: tag.split(",")[0] for tag, number in TAG.findall(body)}
            found.setdefault(struct, {}).update(names)
    return found


def messages(folder: Path, package: str) -> dict[str, dict[str, list[str]]]:
    names = json_names(folder)
    found: dict[str, dict[str, list[str]]] = {}
    for message, body in MESSAGE.findall((folder / "generated.proto").read_text()):
        fields = found[message] = {}
        for label, map_type, plain_type, name, number in FIELD.findall(body):
            kind = {"optional": "one", "repeated": "many"}.get(label, "map")
            json_name = names.get(message, {}).get(number, name)
            if not json_name:
                kind = "inline"
            fields[number] = [json_name, kind, full(map_type or plain_type, package)]
    return found


def full(name: str, package: str) -> str:
    if name.startswith("."):
        return name[1:]
    return f"{package}.{name}" if name[0].isupper() else name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, required=True)
    parser.add_argument("--version", default="v0.37.2")
    arguments = parser.parse_args()
    packages = all_packages(arguments.modules, arguments.version)
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for package in sorted(reachable(packages)):
            member = zipfile.ZipInfo(f"{package}.json")  # without a time stamp: equal input, equal file
            layout = json.dumps(packages[package], separators=(",", ":"), sort_keys=True)
            archive.writestr(member, layout, zipfile.ZIP_DEFLATED)


def all_packages(modules: Path, version: str) -> Packages:
    found: Packages = {}
    for module in MODULES:
        for proto in (modules / f"{module}@{version}").rglob("generated.proto"):
            text = re.search(r"^package (\S+);", proto.read_text(), re.MULTILINE)
            assert text, f"{proto} names no package"
            package = text[1].replace("kube_aggregator", "kube-aggregator").replace("_", "-")
            found[package] = messages(proto.parent, package)
    return found


def reachable(packages: Packages) -> set[str]:
    """Stable packages, and what their messages refer to: a stable kind may have fields of an alpha type."""
    kept: set[str] = set()
    waiting = [package for package in packages if STABLE.search(package) or package.startswith(KEPT)]
    while waiting:
        package = waiting.pop()
        if package in kept:
            continue
        kept.add(package)
        types = (of for fields in packages[package].values() for _, _, of in fields.values())
        waiting += (of.rpartition(".")[0] for of in types if of.rpartition(".")[0] in packages)
    return kept


if __name__ == "__main__":
    main()
