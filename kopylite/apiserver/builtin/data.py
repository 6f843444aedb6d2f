"""The structure of the built-in kinds, from the files in `kinds/`, each read at its first use.

They are made by scripts/extract_builtin.py from a running kube-apiserver, one field a line: the plain default of a
field stands here. The schemas are OpenAPI v3 with four keys of our own. Three say how Go writes a struct:
`x-kopylite-always` (fields that are always written, with their zero values), `x-kopylite-omit` (fields that are left
out at zero) and `x-kopylite-go` (the types as decoding errors name them); `x-kopylite-untyped` marks a value that has
one owner as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from kopylite.apiserver.schema.node import Definitions

ALWAYS, OMIT, GO_TYPES = "x-kopylite-always", "x-kopylite-omit", "x-kopylite-go"
OWN_KEYS = frozenset({ALWAYS, OMIT, GO_TYPES, "x-kopylite-untyped"})


@cache
def member(name: str) -> Any:
    """One decoded file, e.g. "resources"; shared, never to be changed.

    Raises:
        KeyError: there is no such file.
    """
    try:
        return msgspec.json.decode(resources.files(__package__).joinpath("kinds", f"{name}.json").read_bytes())
    except FileNotFoundError:
        raise KeyError(name) from None


def served() -> list[dict[str, Any]]:
    """Group, version and resources (as in discovery, sub-resources inside) of all that is served, in order."""
    listed: list[dict[str, Any]] = member("resources")
    return listed


class _Schemas(Mapping[str, dict[str, Any]]):
    """All schemas by full name; a package is parsed when one of its schemas is asked for."""

    def __getitem__(self, name: str) -> dict[str, Any]:
        package, _, kind = name.rpartition(".")
        schema: dict[str, Any] = member(package)[kind]
        return schema

    def __iter__(self) -> Iterator[str]:
        for names in documents().values():
            yield from names

    def __len__(self) -> int:
        return sum(map(len, documents().values()))


def documents() -> Mapping[str, list[str]]:
    """The names of the schemas that each OpenAPI document publishes, by group version ("apps/v1", "v1")."""
    names: Mapping[str, list[str]] = member("documents")
    return names


SCHEMAS: Mapping[str, dict[str, Any]] = _Schemas()
# One shared node for each schema.
DEFINITIONS = Definitions(SCHEMAS)


@cache
def kinds_of(api_version: str) -> Mapping[str, str]:
    """Full schema names by kind, for one group version."""
    group, _, version = api_version.rpartition("/")
    found = {}
    for name in documents()[api_version]:
        for gvk in SCHEMAS[name].get("x-kubernetes-group-version-kind", ()):
            if (gvk["group"], gvk["version"]) == (group, version):
                found[gvk["kind"]] = name
    return found


def published(name: str) -> dict[str, Any]:
    """A schema as OpenAPI documents show it, without our own keys."""
    return {k: v for k, v in SCHEMAS[name].items() if k not in OWN_KEYS}
