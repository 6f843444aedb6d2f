"""Scenario: what people do to the operator's objects, step by step; from a file or as a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopylite.devcluster.cluster import CrdSource, crds_in
from kopylite.errors import KopyliteError, UsageError
from kopylite.objects import wire_of
from kopylite.objects.yamlread import read_documents

if TYPE_CHECKING:
    from kopylite.sweep.scene import Scene

EXAMPLE = """\
crds: [thing.crd.yaml]
steps:
  - apply: {apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: default}, spec: {size: 1}}
  - patch: {apiVersion: example.com/v1, kind: Thing, name: a, namespace: default, patch: {spec: {size: 2}}}
  - delete: {apiVersion: example.com/v1, kind: Thing, name: a, namespace: default}"""
_ACTIONS = ("apply", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done, after which the cluster comes to rest.

    Attributes:
        action: apply, patch or delete.
        obj: what is applied; of the others: apiVersion, kind and metadata with name and namespace.
        patch: a merge patch.
    """

    action: str
    obj: Mapping[str, Any]
    patch: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        metadata = self.obj["metadata"]
        name = f"{metadata.get('namespace', '')}/{metadata['name']}".strip("/")
        return f"{self.action} {self.obj['kind']} {name}"


Play = Callable[["Scene"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps, or a function that does what it likes on a Scene.

    Attributes:
        crds: installed before anything else; those of the App's own classes need not be named.
        steps: each is followed by quiet.
        play: instead of the steps.
        name: for people.
    """

    steps: tuple[Step, ...] = ()
    crds: tuple[CrdSource, ...] = ()
    play: Play | None = None
    name: str = "the scenario"


def scenario_of(given: Scenario | Play | str | Path | Sequence[Mapping[str, Any]]) -> Scenario:
    """A Scenario from whatever stands for one: a file, a function, or objects that are applied one after the other.

    Raises:
        UsageError: a file is none, or an object.
    """
    if isinstance(given, Scenario):
        return given
    if isinstance(given, (str, Path)):
        return read_scenario(Path(given))
    if callable(given):
        return Scenario(play=given, name=getattr(given, "__qualname__", "the scenario"))
    return Scenario(tuple(_applied(obj, f"objects[{n}]") for n, obj in enumerate(given)), name="the objects")


def _applied(obj: Any, where: str) -> Step:
    """Raises UsageError."""
    try:
        wire = obj if isinstance(obj, dict) else wire_of(obj)
    except (KopyliteError, TypeError, AttributeError):
        raise UsageError(f"{where}: an object as a map, or of a CustomResource class, not {_shown(obj)}") from None
    return _step({"apply": wire}, where)


def read_scenario(path: Path) -> Scenario:
    """A scenario's file. Paths in it are relative to it.

    Raises:
        UsageError: it cannot be read, or says what no scenario can; names the file and the place in it.
    """
    try:
        documents = read_documents(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UsageError(f"{path}: a scenario is one YAML map with crds and steps:\n{EXAMPLE}")
    document = documents[0]
    _check_keys(document, ("crds", "steps"), f"{path}")
    named = document.get("crds") or []
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise UsageError(f"{path}: crds: a list of files with CustomResourceDefinitions, not {_shown(named)}")
    crds = [crd for name in named for crd in _crds(path, name)]
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps:
        raise UsageError(f"{path}: steps: a list with at least one step, not {_shown(steps)}:\n{EXAMPLE}")
    return Scenario(
        tuple(_step(step, f"{path}: steps[{number}]") for number, step in enumerate(steps)),
        tuple(crds),
        None,
        str(path),
    )


def _crds(path: Path, name: str) -> Sequence[Mapping[str, Any]]:
    try:
        return crds_in(path.parent / name)
    except UsageError as error:
        raise UsageError(f"{path}: crds: {error} (paths are relative to the scenario's file)") from error


def _step(step: Any, where: str) -> Step:
    if not isinstance(step, dict) or len(step) != 1:
        raise UsageError(f"{where}: a step is a map with one key, {', '.join(_ACTIONS)}, not {_shown(step)}")
    [(action, body)] = step.items()
    if action not in _ACTIONS:
        raise UsageError(f"{where}: there is no step {action!r}; there are {', '.join(_ACTIONS)}")
    where = f"{where}.{action}"
    if not isinstance(body, dict):
        raise UsageError(f"{where}: a map, not {_shown(body)}")
    for key in ("apiVersion", "kind"):
        _check_text(body.get(key), f"{where}.{key}")
    if action == "apply":
        metadata = body.get("metadata")
        if not isinstance(metadata, dict):
            raise UsageError(f"{where}.metadata: a map with a name, not {_shown(metadata)}")
        _check_text(metadata.get("name"), f"{where}.metadata.name")
        if "namespace" in metadata:
            _check_text(metadata["namespace"], f"{where}.metadata.namespace")
        return Step(action, body)
    _check_keys(body, ("apiVersion", "kind", "name", "namespace", *(["patch"] if action == "patch" else [])), where)
    _check_text(body.get("name"), f"{where}.name")
    if "namespace" in body:
        _check_text(body["namespace"], f"{where}.namespace")
    if action == "patch" and not isinstance(body.get("patch"), dict):
        raise UsageError(f"{where}.patch: a merge patch, which is a map, not {_shown(body.get('patch'))}")
    metadata = {key: body[key] for key in ("name", "namespace") if key in body}
    obj = {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata}
    return Step(action, obj, body.get("patch", {}))


def _check_keys(body: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    if unknown := [str(key) for key in body if key not in known]:
        raise UsageError(f"{where}: there is no key {unknown[0]!r}; there are {', '.join(known)}")


def _check_text(value: Any, where: str) -> None:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where}: a text, not {_shown(value)}")


def _shown(value: Any) -> str:
    words = {"int": "a number", "float": "a number", "dict": "a map", "bool": "yes or no", "str": "a text"}
    return "nothing" if value is None else words.get(type(value).__name__, f"a {type(value).__name__}")
