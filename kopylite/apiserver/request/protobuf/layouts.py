"""The layout of messages: which field has which number, type and JSON name; from scripts/extract_protobuf.py. Pure."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib import resources

import msgspec

# What an enveloped object begins with.
MAGIC = b"k8s\x00"
META = "k8s.io.apimachinery.pkg.apis.meta.v1"
RUNTIME = "k8s.io.apimachinery.pkg.runtime"
EXTENSIONS = "k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1"
# The packages of groups whose path is not k8s.io.api.GROUP.VERSION.
_PACKAGES = {
    "": "k8s.io.api.core",
    "apiextensions.k8s.io": "k8s.io.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube-aggregator.pkg.apis.apiregistration",
    "meta.k8s.io": "k8s.io.apimachinery.pkg.apis.meta",
}
# (JSON name, kind, type); a kind is one, many, map (type: the value's) or inline (its fields belong to the parent).
WireField = tuple[str, str, str]
Layout = dict[int, WireField]


def message_name(api_version: str, kind: str) -> str:
    """The full name of the message of a kind. It need not exist."""
    group, _, version = api_version.rpartition("/")
    package = _PACKAGES.get(group) or f"k8s.io.api.{group.split('.')[0]}"
    own = f"{package}.{version}"
    # Options, Status and the documents of discovery belong to every group.
    shared = kind in package_of(META) and kind not in package_of(own)
    return f"{META if shared else own}.{kind}"


def layout_of(name: str) -> Layout:
    """Raises KeyError: there is no message of that name."""
    package, _, message = name.rpartition(".")
    return package_of(package)[message]


def is_list(layout: Layout) -> bool:
    """Whether a message only stands for a named list of texts, which has no name for its one field in JSON."""
    return layout == {1: ("items", "many", "string")}


@cache
def package_of(name: str) -> dict[str, Layout]:
    """The messages of a package; none if it is unknown."""
    if f"{name}.json" not in _archive().namelist():
        return {}
    raw: dict[str, dict[str, list[str]]] = msgspec.json.decode(_archive().read(f"{name}.json"))
    return {
        message: {int(number): (json_name, kind, of) for number, (json_name, kind, of) in fields.items()}
        for message, fields in raw.items()
    }


@cache
def _archive() -> zipfile.ZipFile:
    # Read through one open file for the life of the process.
    return zipfile.ZipFile(io.BytesIO(resources.files(__package__).joinpath("messages.zip").read_bytes()))
