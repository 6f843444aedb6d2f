"""States: what a cluster holds, without what no two runs have alike: uids, versions, times, made-up names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kopylite.apiserver.storage.store import ObjectStore
from kopylite.redaction import redact
from kopylite.sweep.trace import NOISE

Objects = dict[str, dict[str, Any]]
"""Objects by "storage namespace/name"; of those with a made-up name, "storage namespace/prefix* #n"."""

# Shorter endings are numbers, or words.
SHORTEST_MADE_UP = 4

# What second writers of the sweep leave; not compared.
NOTE = "sweep.kopylite.dev/note"
HOLD = "sweep.kopylite.dev/hold"
DATA_KEY = "sweep-note"

# Made by the cluster's own controllers from others: what differs in them differs there too.
_DERIVED = frozenset(
    {"controllerrevisions.apps", "endpointslices.discovery.k8s.io", "endpoints", "nodes", "namespaces",
     "clusterroles.rbac.authorization.k8s.io", "apiservices.apiregistration.k8s.io",
     "customresourcedefinitions.apiextensions.k8s.io", "serviceaccounts", "resourcequotas"}
)  # fmt: skip
_WORKLOADS = frozenset({"pods", "replicasets.apps"})
_OWN_METADATA = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
                 "deletionGracePeriodSeconds")  # fmt: skip
_COUNTS = ("deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
           "deployment.kubernetes.io/desired-replicas",
           "deployment.kubernetes.io/max-replicas", NOTE)  # fmt: skip
# Addresses and ports that the server chooses, and what depends on when it was looked.
_CHOSEN = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "podIP", "podIPs", "hostIP",
                     "nodeName", "collisionCount", "lastUpdateTime"})  # fmt: skip
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def objects_of(store: ObjectStore, since: int) -> Objects:
    """What was written since a version and is there, made comparable."""
    found: list[tuple[str, dict[str, Any], int]] = []
    for storage, records in store.contents().items():
        if storage not in NOISE and storage not in _DERIVED:
            found += [(storage, record.decode(), record.version) for record in records]
    masks = Masks((storage, obj) for storage, obj, _ in found)
    states: Objects = {}
    for storage, obj, version in found:
        if version <= since or _is_old_replica_set(storage, obj) or _is_publishers(storage, obj):
            continue
        key = masks.key(storage, obj["metadata"])
        if key in states or key.endswith("*"):
            key += f" #{sum(other.startswith(key) for other in states) + 1}"
        states[key] = masks.applied(storage, obj)
    return states


class Masks:
    """What is not compared, and how what stands for it is called.

    Args:
        objects: all that there are, with their storages.
    """

    def __init__(self, objects: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> None:
        self._words: dict[str, str] = {}
        for storage, obj in objects:
            self.learn(storage, obj)

    def learn(self, storage: str, obj: Mapping[str, Any]) -> None:
        """Know an object by its uid and, if the server made it up, by its name."""
        metadata = obj["metadata"]
        name = self.name(metadata)
        if metadata.get("uid"):
            self._words[metadata["uid"]] = f"<uid of {storage} {name}>"
        if name != metadata["name"]:
            self._words[metadata["name"]] = name

    def name(self, metadata: Mapping[str, Any]) -> str:
        prefix = metadata.get("generateName")
        name = str(metadata["name"])
        made_up = prefix and name.startswith(prefix) and len(name) == len(prefix) + 5
        return self.text(f"{prefix}*" if made_up else name, known_names=False)

    def key(self, storage: str, metadata: Mapping[str, Any]) -> str:
        return f"{storage} {metadata.get('namespace', '')}/{self.name(metadata)}".replace(" /", " ")

    def text(self, text: str, *, known_names: bool = True) -> str:
        """A text without what varies."""
        if known_names and text in self._words:
            return self._words[text]
        if len(text) >= 10:
            text = _TIME.sub("<time>", text)
            text = _UUID.sub(lambda found: self._words.get(found[0], "<uid>"), text)
        return text

    def applied(self, storage: str, obj: Mapping[str, Any]) -> dict[str, Any]:
        """An object without what varies."""
        metadata = {key: value for key, value in obj["metadata"].items() if key not in _OWN_METADATA}
        if "deletionTimestamp" in metadata:
            metadata["deletionTimestamp"] = "<set>"
        metadata["name"] = self.name(obj["metadata"])
        annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k not in _COUNTS}
        if annotations:
            metadata["annotations"] = annotations
        if storage in _WORKLOADS:  # played, and its details come from what is compared
            return {"kind": obj.get("kind"), "metadata": self._value(metadata, "")}
        masked: dict[str, Any] = {key: self._value(value, key) for key, value in obj.items() if key != "metadata"}
        masked["metadata"] = self._value(metadata, "metadata")
        if isinstance(data := masked.get("data"), dict):
            data.pop(DATA_KEY, None)
        if isinstance(status := masked.get("status"), dict) and "observedGeneration" in status:
            known, present = status["observedGeneration"], obj["metadata"].get("generation")
            status["observedGeneration"] = "<current>" if known == present else "<behind>"
        return masked

    def _value(self, value: Any, key: str) -> Any:
        if key in _CHOSEN:
            return "<chosen>"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item, "") for item in value]
        if isinstance(value, dict):
            return {self.text(name): self._value(item, name) for name, item in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class MadeUp:
    """Names that an operator makes up: each run has another one, of the same length, behind the same beginning."""

    place: str
    length: int

    def fits(self, key: str) -> bool:
        return key.startswith(self.place) and len(key) == self.length


def made_up_names(runs: Sequence[Iterable[str]]) -> frozenset[MadeUp]:
    """What names that are in one of several runs only have in common: `a-x7` and `a-k2` begin with `a-`."""
    known = [set(keys) for keys in runs]
    own = [sorted(keys - set().union(*(k for k in known if k is not keys))) for keys in known]
    found = set()
    for key in own[0] if own else ():
        for other in (each for keys in own[1:] for each in keys):
            place = _common_start(key, other)
            place = place[: max(place.rfind("-"), place.rfind("."), place.rfind("/")) + 1]
            if len(key) == len(other) and len(key) - len(place) >= SHORTEST_MADE_UP and "/" in place:
                found.add(MadeUp(place, len(key)))
    return frozenset(found)


def _common_start(one: str, other: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def without_made_up(state: Objects, names: Collection[MadeUp]) -> Objects:
    """The objects by keys that all runs have."""
    if not names:
        return state
    renamed: Objects = {}
    for key, obj in state.items():
        fresh = general(key, names)
        if fresh != key:
            fresh += f" #{sum(other.startswith(fresh) for other in renamed) + 1}"
        renamed[fresh] = obj
    return renamed


def general(key: str, names: Collection[MadeUp]) -> str:
    """A key with a star for what is made up."""
    return next((f"{each.place}*" for each in names if each.fits(key)), key)


def _is_old_replica_set(storage: str, obj: Mapping[str, Any]) -> bool:
    """The history of a Deployment: how long it is depends on how many states were seen."""
    return storage == "replicasets.apps" and not (obj.get("spec") or {}).get("replicas")


def _is_publishers(storage: str, obj: Mapping[str, Any]) -> bool:
    return storage == "configmaps" and obj["metadata"]["name"] == "kube-root-ca.crt"


def differences(left: Any, right: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Paths where two values differ, with both; a value that is not there is None."""
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in [*left, *(key for key in right if key not in left)]:
            inner = f"{path}.{key}" if path else str(key)
            found += differences(left.get(key), right.get(key), inner)
        return found
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        both = enumerate(zip(left, right, strict=True))
        return [found for index, (a, b) in both for found in differences(a, b, f"{path}[{index}]")]
    return [] if _equal(left, right) else [(path, left, right)]


def kept_fields(first: Any, changed: Any, anew: Any) -> set[str]:
    """Paths where what was changed has its first value still, and what was made anew has another."""
    moved = [path for path, _, _ in differences(first, changed)]
    paths = {path for path, _, _ in differences(changed, anew)}
    return {path for path in paths if not any(path.startswith(each) or each.startswith(path) for each in moved)}


def made_up_keys(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Paths of maps that have as many keys each, some of which only one of them has: they are made from what varies."""
    if isinstance(left, dict) and isinstance(right, dict):
        if path and len(left) == len(right) and left.keys() != right.keys():
            yield path
        for key in left.keys() & right.keys():
            yield from made_up_keys(left[key], right[key], f"{path}.{key}" if path else str(key))


def at_path(obj: Any, path: str) -> Any:
    """The map at a path of `made_up_keys`; an empty one, if there is none."""
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def _equal(left: Any, right: Any) -> bool:
    """As JSON has it; nothing, null, "" and what is empty are one."""
    empty: tuple[Any, ...] = (None, {}, [], "")
    if any(left is e or left == e for e in empty) and any(right is e or right == e for e in empty):
        return not isinstance(left, (bool, int)) and not isinstance(right, (bool, int))
    return bool(left == right)


def is_controlled(obj: Mapping[str, Any]) -> bool:
    """Whether it is the child of a controller, which decides about all of it."""
    return any(reference.get("controller") for reference in obj["metadata"].get("ownerReferences") or ())


def bare(obj: dict[str, Any] | None) -> dict[str, Any]:
    """An object without what each write changes."""
    if obj is None:
        return {}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("resourceVersion", "managedFields", "generation")}
    return {**obj, "metadata": metadata}


def encoded(value: Any, path: str = "", kind: object = "") -> str:
    """A value in short, for people; that of a Secret is not shown.

    Args:
        path: of the value.
        kind: of the object that it is in.
    """
    if kind == "Secret" and (not path.startswith("metadata.") or path.startswith("metadata.annotations")):
        return "<hidden>" if value else "nothing"
    text = redact(msgspec.json.encode(value).decode())
    return text if len(text) <= 80 else f"{text[:77]}..."


def plural(kind: str) -> str:
    """Of a kind, for people."""
    if kind.endswith(("s", "x", "ch")):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2:-1] not in "aeiou" else f"{kind}s"
