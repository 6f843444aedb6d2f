"""Traces: what kopf leaves in an object, and the patch that takes it out and nothing else. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
PREFIX = "kopf.zalando.org"
STATUS_FIELD = "kopf"
LAST_HANDLED = "last-handled-configuration"
# Written before kopf 1.0, and still read by it.
OLD_FINALIZERS = ("KopfFinalizerMarker",)

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Marks:
    """By what names an operator of kopf marked objects: its `settings.persistence`.

    Args:
        finalizers: `settings.persistence.finalizer`.
        prefixes: of the annotations of both storages, without the slash.
        status_fields: of the storages in the status.
    """

    finalizers: Sequence[str] = (FINALIZER, *OLD_FINALIZERS)
    prefixes: Sequence[str] = (PREFIX,)
    status_fields: Sequence[str] = (STATUS_FIELD,)


@dataclass(frozen=True, slots=True)
class Traces:
    """What was found in one object.

    Attributes:
        finalizers, annotations: their names.
        status: keys of the status.
        deleting: since when the object is being deleted; "": it is not.
        version, uid: of the object that was looked at.
        all_finalizers: of the object, in their order.
    """

    finalizers: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    deleting: str = ""
    version: str = ""
    uid: str = ""
    all_finalizers: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def guards(self) -> bool:
        """Whether a deletion waits for kopf: its finalizer may stand for something outside that is not cleaned up."""
        return bool(self.deleting and self.finalizers)

    def __bool__(self) -> bool:
        return bool(self.finalizers or self.annotations or self.status)


def traces_of(obj: Object, marks: Marks) -> Traces:
    """What is kopf's in an object, however odd the object is."""
    metadata = _map(obj.get("metadata"))
    status = _map(obj.get("status"))
    present = metadata.get("finalizers")
    finalizers = tuple(present) if isinstance(present, list) else ()
    prefixes = tuple(f"{prefix}/" for prefix in marks.prefixes)
    return Traces(
        tuple(dict.fromkeys(each for each in finalizers if isinstance(each, str) and each in marks.finalizers)),
        tuple(name for name in _map(metadata.get("annotations")) if name.startswith(prefixes)),
        tuple(name for name in marks.status_fields if _is_kopfs(status.get(name))),
        str(metadata.get("deletionTimestamp") or ""),
        str(metadata.get("resourceVersion") or ""),
        str(metadata.get("uid") or ""),
        finalizers,
    )


def object_patch(traces: Traces, *, release: bool) -> dict[str, Any]:
    """The merge patch of the object itself; {}: there is nothing to take out of it.

    It names the version that was looked at, so the server refuses it when anybody has written since; the list of
    finalizers, which a merge patch can only replace, is therefore the one that was read.

    Args:
        release: take finalizers off, too.
    """
    metadata: dict[str, Any] = {}
    if traces.annotations:
        metadata["annotations"] = dict.fromkeys(traces.annotations)
    if release and traces.finalizers:
        metadata["finalizers"] = [each for each in traces.all_finalizers if each not in traces.finalizers]
    return {"metadata": {**metadata, **_precondition(traces)}} if metadata else {}


def status_patch(traces: Traces) -> dict[str, Any]:
    """The same of its status."""
    if not traces.status:
        return {}
    return {"metadata": _precondition(traces), "status": dict.fromkeys(traces.status)}


def last_handled(obj: Object, prefix: str) -> tuple[bool, Any]:
    """Whether kopf has handled an object, and the state of it that it handled last (None: that cannot be read)."""
    annotations = _map(_map(obj.get("metadata")).get("annotations"))
    texts = [annotations.get(f"{prefix}/{LAST_HANDLED}{end}") for end in ("", "-ofDRS")]
    texts.append(_map(_map(obj.get("status")).get(STATUS_FIELD)).get(LAST_HANDLED))
    for text in texts:
        if isinstance(text, str):
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                return True, None
            return True, found if isinstance(found, dict) else None
    return False, None


def essence_of(obj: Object, prefixes: Sequence[str] = (PREFIX,)) -> dict[str, Any]:
    """What kopf takes for the state of an object: all but its status and its metadata, and of this labels and
    annotations, without those of tools."""
    found = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    metadata = _map(obj.get("metadata"))
    tools = (*(f"{prefix}/" for prefix in prefixes), "kubectl.kubernetes.io/last-applied-configuration")
    annotations = {k: v for k, v in _map(metadata.get("annotations")).items() if not k.startswith(tools)}
    kept = {"labels": dict(_map(metadata.get("labels"))), "annotations": annotations}
    kept = {key: value for key, value in kept.items() if value}
    return {**found, **({"metadata": kept} if kept else {})}


def _precondition(traces: Traces) -> dict[str, str]:
    return {"resourceVersion": traces.version, "uid": traces.uid}


def _is_kopfs(value: Any) -> bool:
    """A `status.kopf` may be somebody's own: kopf's has nothing but its three keys."""
    return isinstance(value, dict) and set(value) <= {"progress", "dummy", LAST_HANDLED}


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
