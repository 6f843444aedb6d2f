"""Scripts of requests, read from corpus/*.yaml.

A file has `section`, and `scripts`: a list of {name, steps}. Every script gets a namespace of its own, named `{ns}`;
names of cluster-scoped objects contain it too. {kibibyte} and {mebibyte} stand for as many letters, {hooks} for the URL
of a webhook that both servers reach (`tests/webhookserver.py`), {bundle} for its authority. Scripts are played
side by side, except those that say `alone: true`: they come first, one after the other, because they look at what all
others change, or wait for a controller that others hold up.

A step has one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE or WATCH with a path, and may have

    body       an object, sent as JSON; or a string, sent as it is
    type       the content type; short: json, merge, strategic, apply, yaml
    accept     the Accept header; short: table, partial, partials, yaml, discovery, protobuf
    headers    more headers; a list of values repeats one
    anonymous  without the administrator's credentials
    save       {variable: dotted.path}: taken from the answer, usable as {variable} in later paths and bodies
    events     WATCH: read this many events (then, or after `seconds`, close)
    seconds    WATCH: at most this long; default 5
    until      {dotted.path: value}: repeat it until that holds (60 s); only the last answer counts. `code` is the
               status, `warnings` their number
    part       a JSON pointer: only this part of the answer's body is compared
    without    names of keys that are not compared wherever they stand, e.g. descriptions
    ignore     dotted paths that are not compared, e.g. values that are random by design
    unordered  dotted paths of lists whose order is not compared
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CORPUS = Path(__file__).parent / "corpus"
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "WATCH")
PLAIN_KEYS = {"body", "headers", "anonymous", "save", "until", "part", "events", "seconds"}
LIST_KEYS = ("ignore", "without", "unordered")

CONTENT_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "yaml": "application/yaml",
}
ACCEPTS = {
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "partial": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "partials": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "yaml": "application/yaml",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "discovery": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
}
DEFAULT_TYPES = {"PATCH": "application/merge-patch+json"}


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a script. `name`: instead of its number, where scripts are made and numbers would move."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"
    headers: Mapping[str, str | list[str]] = field(default_factory=dict)
    anonymous: bool = False
    save: Mapping[str, str] = field(default_factory=dict)
    until: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""
    ignore: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    unordered: tuple[str, ...] = ()
    events: int = 0
    seconds: float = 5
    name: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """Steps that are played in order in a namespace of their own."""

    section: str
    name: str
    steps: tuple[Step, ...]
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.section}: {self.name}"


def corpus() -> Iterator[Script]:
    """Every script, in file order.

    Raises:
        ValueError: a file breaks the form above, or two scripts have one name.
    """
    names: set[str] = set()
    for file in sorted(CORPUS.glob("*.yaml")):
        document = yaml.safe_load(file.read_text())
        for raw in document["scripts"]:
            where = f"{file.name}: {raw.get('name')}"
            if raw["name"] in names:
                raise ValueError(f"{where}: the name is taken")
            names.add(raw["name"])
            steps = tuple(_step(step, where) for step in raw["steps"])
            yield Script(document["section"], raw["name"], steps, raw.get("alone", False))


def _step(raw: Mapping[str, Any], where: str) -> Step:
    rest = dict(raw)
    methods = [method for method in METHODS if method in rest]
    if len(methods) != 1:
        raise ValueError(f"{where}: a step needs exactly one of {', '.join(METHODS)}")
    method = methods[0]
    path = rest.pop(method)
    if method == "WATCH" and "watch=" not in path and "/watch/" not in path:
        raise ValueError(f"{where}: a watch has to ask for one: {path}")
    content_type = rest.pop("type", DEFAULT_TYPES.get(method, "application/json"))
    accept = rest.pop("accept", "application/json")
    lists = {key: tuple(rest.pop(key, ())) for key in LIST_KEYS}
    if unknown := set(rest) - PLAIN_KEYS:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
    forms = {"content_type": CONTENT_TYPES.get(content_type, content_type), "accept": ACCEPTS.get(accept, accept)}
    return Step(method, path, **(rest | lists | forms))
