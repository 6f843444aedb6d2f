"""kopf's helpers for children and Events, for the object whose handler runs. In kopylite itself: `owner=` of create,
create_or_update and adopt, and `ctx.event`.

Children are dicts, or models of the `kubernetes` packages; lists of them, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from kopylite.errors import UsageError
from kopylite.objects import Unstructured, owner_reference
from kopylite.reconcile import Severity


@dataclass(frozen=True, slots=True)
class Current:
    """The object whose handler runs in the present task or thread, and how to publish an Event."""

    body: Any
    post: Callable[[Any, str, str, Severity], None]


CURRENT: ContextVar[Current | None] = ContextVar("kopylite_migration_current", default=None)


def adopt(objs: Any, owner: Any = None, *, forced: bool = False, strict: bool = False, nested: Any = None) -> None:
    """Make children of objects: their owner, and where they have none, a name, the namespace and the labels."""
    real = _owner(owner)
    metadata = real.get("metadata") or {}
    append_owner_reference(objs, real)
    harmonize_naming(objs, metadata.get("name"), forced=forced, strict=strict)
    adjust_namespace(objs, metadata.get("namespace"), forced=forced)
    label(objs, metadata.get("labels") or {}, forced=forced, nested=nested)


def append_owner_reference(
    objs: Any, owner: Any = None, *, controller: bool | None = True, block_owner_deletion: bool | None = True
) -> None:
    """Add an owner to objects, unless they have it."""
    ref = owner_reference(_owner(owner))
    wire: dict[str, Any] = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
    wire |= {"controller": bool(controller), "blockOwnerDeletion": bool(block_owner_deletion)}
    for obj in _each(objs):
        metadata = _metadata(obj)
        if isinstance(metadata, dict):
            references = metadata.setdefault("ownerReferences", [])
            if not any(each.get("uid") == ref.uid for each in references):
                references.append(dict(wire))
        elif not any(_uid(each) == ref.uid for each in metadata.owner_references or ()):
            metadata.owner_references = [*(metadata.owner_references or ()), _model_reference(metadata, wire)]


def remove_owner_reference(objs: Any, owner: Any = None) -> None:
    """Take an owner from objects."""
    uid = owner_reference(_owner(owner)).uid
    for obj in _each(objs):
        metadata = _metadata(obj)
        if isinstance(metadata, dict):
            metadata["ownerReferences"] = [r for r in metadata.get("ownerReferences") or () if r.get("uid") != uid]
        else:
            metadata.owner_references = [r for r in metadata.owner_references or () if _uid(r) != uid]


def label(
    objs: Any,
    labels: Mapping[str, Any] | None = None,
    *,
    forced: bool = False,
    nested: Any = None,
    force: bool | None = None,
) -> None:
    """Put labels on objects, those of the handled object if none are named, and on what lies at `nested` in them."""
    wanted = (_owner(None).get("metadata") or {}).get("labels") or {} if labels is None else labels
    for obj in _each(objs, nested):
        metadata = _metadata(obj)
        present = metadata.get("labels") if isinstance(metadata, dict) else metadata.labels
        merged = {**(present or {}), **wanted} if forced or force else {**wanted, **(present or {})}
        _set(metadata, "labels", "labels", merged)


def harmonize_naming(objs: Any, name: str | None = None, *, forced: bool = False, strict: bool = False) -> None:
    """Name objects after the handled one, unless they have a name: by `generateName`, or with `strict` by its own."""
    chosen = (_owner(None).get("metadata") or {}).get("name") if name is None else name
    for obj in _each(objs):
        metadata = _metadata(obj)
        named = _get(metadata, "name", "name") or _get(metadata, "generateName", "generate_name")
        if forced or not named:
            _set(metadata, "name", "name", chosen if strict else None)
            _set(metadata, "generateName", "generate_name", None if strict else f"{chosen}-")


def adjust_namespace(objs: Any, namespace: str | None = None, *, forced: bool = False) -> None:
    """Put objects into the namespace of the handled one, unless they are in one."""
    chosen = (_owner(None).get("metadata") or {}).get("namespace") if namespace is None else namespace
    for obj in _each(objs):
        metadata = _metadata(obj)
        if forced or _get(metadata, "namespace", "namespace") is None:
            _set(metadata, "namespace", "namespace", chosen)


def event(objs: Any, *, type: str, reason: str, message: str = "", **_: Any) -> None:  # noqa: A002
    """Publish an Event about objects. Kubernetes knows two types: all but "Normal" is a "Warning"."""
    current = _current()
    for obj in _each(objs):
        current.post(_object(obj), reason, message or reason, "Normal" if type == "Normal" else "Warning")


def info(objs: Any, *, reason: str, message: str = "", **_: Any) -> None:
    """An Event of type Normal."""
    event(objs, type="Normal", reason=reason, message=message)


def warn(objs: Any, *, reason: str, message: str = "", **_: Any) -> None:
    """An Event of type Warning."""
    event(objs, type="Warning", reason=reason, message=message)


def exception(objs: Any, *, reason: str = "", message: str = "", exc: BaseException | None = None, **_: Any) -> None:
    """An Event about an exception: the one that is handled, if none is named."""
    error = exc or sys.exc_info()[1]
    text = " ".join(part for part in (message, str(error) if error else "") if part)
    event(objs, type="Warning", reason=reason or type(error).__name__, message=text)


def _current() -> Current:
    current = CURRENT.get()
    if current is None:
        raise UsageError(
            "outside of a handler nobody knows which object is meant: name the owner; Events need a handler"
        )
    return current


def _owner(owner: Any) -> Any:
    return _current().body if owner is None else _object(owner)


def _object(obj: Any) -> Any:
    """An object that says what it is: a bare dict does not."""
    return Unstructured(obj) if isinstance(obj, dict) and not isinstance(obj, Unstructured) else obj


def _each(objs: Any, nested: Any = None) -> Iterator[Any]:
    """Each object, and what is at the paths `nested` in it: maps with metadata, or lists of them."""
    if objs is None:
        return
    if not isinstance(objs, Mapping) and isinstance(objs, Iterable) and not hasattr(objs, "metadata"):
        for obj in objs:
            yield from _each(obj, nested)
        return
    yield objs
    for path in [nested] if isinstance(nested, str) else nested or ():
        found: Any = objs
        for name in path.split(".") if isinstance(path, str) else path:
            found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
        yield from _each(found)


def _metadata(obj: Any) -> Any:
    if isinstance(obj, dict):
        return obj.setdefault("metadata", {})
    if isinstance(getattr(obj, "obj", None), dict):
        return obj.obj.setdefault("metadata", {})  # pykube
    if getattr(obj, "metadata", None) is None:
        model = sys.modules.get(type(obj).__module__.partition(".models")[0] + ".models")
        if model is None or not hasattr(model, "V1ObjectMeta"):
            raise UsageError(f"a {type(obj).__name__} cannot be made a child: give its dict")
        obj.metadata = model.V1ObjectMeta()
    return obj.metadata


def _model_reference(metadata: Any, wire: Mapping[str, Any]) -> Any:
    model = sys.modules.get(type(metadata).__module__.partition(".models")[0] + ".models")
    if model is None or not hasattr(model, "V1OwnerReference"):
        return dict(wire)
    return model.V1OwnerReference(
        api_version=wire["apiVersion"], kind=wire["kind"], name=wire["name"], uid=wire["uid"],
        controller=wire["controller"], block_owner_deletion=wire["blockOwnerDeletion"],
    )  # fmt: skip


def _uid(reference: Any) -> Any:
    return reference.get("uid") if isinstance(reference, Mapping) else getattr(reference, "uid", None)


def _get(metadata: Any, key: str, attribute: str) -> Any:
    return metadata.get(key) if isinstance(metadata, dict) else getattr(metadata, attribute, None)


def _set(metadata: Any, key: str, attribute: str, value: Any) -> None:
    if not isinstance(metadata, dict):
        setattr(metadata, attribute, value)
    elif value is None:
        metadata.pop(key, None)
    else:
        metadata[key] = value
