"""What a write through an object changes: the object as it was read, and as it is wanted. Pure.

What was read is kept apart from what user code makes of the object (see `objects/reading`): a change is told from
that, so a value that was edited in place, and is then handed back, is a change too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self

from pydantic import BaseModel

from kopylite.client.codec import decode_object, encode
from kopylite.client.draft import as_stored
from kopylite.client.fields import Field, fields_of
from kopylite.client.overlay import Overlay
from kopylite.client.patches import bound_diff, bound_steps, rebased, replaces_list, with_identity
from kopylite.client.verbs import PatchType
from kopylite.errors import EncodeError, UsageError
from kopylite.objects import adapter_like, key_of, kind_of, to_wire, wire_of
from kopylite.objects.reading import bytes_of, paired, parts_of, read_from
from kopylite.objects.wirevalues import wire_value


class LibraryModel(Protocol):
    """A model of another library, as V1DeploymentStatus: only an object's own status may be one."""

    def to_dict(self) -> Mapping[str, Any]: ...


StatusLike = Mapping[str, Any] | BaseModel | LibraryModel


class Edit(NamedTuple):
    """One change of one object.

    Attributes:
        field: what is known of the kind's fields.
        stored: the object as it was read, in wire form.
        merged: as it is wanted; `stored` itself when it is so already.
        again: makes the change from another state of the object; None: it is none to any state.
    """

    field: Field
    stored: dict[str, Any]
    merged: dict[str, Any]
    again: Callable[[Any], Edit] | None


def as_read(obj: Any) -> dict[str, Any]:
    """An object in wire form as it was read, whatever user code has made of it; as it is, if it was not read."""
    raw = bytes_of(obj)
    return wire_of(obj) if raw is None else decode_object(raw)


def field_of(obj: Any) -> Field:
    """What is known of the fields of an object."""
    return fields_of(type(obj), kind_of(obj))


def merge_change(obj: Any, patch: Mapping[str, Any]) -> Edit:
    """The change that a JSON merge patch is. A list in it is the whole list, as merge patches have it."""
    stored, field, desired = as_read(obj), field_of(obj), _written(obj, patch)
    literal: dict[int, Any] = {}
    for found in _lists(desired):
        literal |= parts_of(found)
    merged = Overlay(literal, partial=True).merge(stored, desired, field)
    return Edit(field, stored, merged, lambda newer: merge_change(newer, patch))


def status_change(obj: Any, status: Any, *, exact: bool = False) -> Edit:
    """The change that a status is.

    A map or a model says what is to be set; what it leaves out stays. The object's own status says it all: what user
    code has taken out of it goes. In a list with keys (conditions), each element is taken as it is, and others stay:
    they may be another controller's, in this process too.

    Args:
        exact: what the status leaves out goes.
    """
    if isinstance(status, Mapping):
        _written(obj, {"status": status})  # refused with its path, before it is cut
    stored, field = as_read(obj), field_of(obj)
    own = obj.get("status") if isinstance(obj, dict) else getattr(obj, "status", None)
    whole = exact or (status is own and own is not None)
    if status is own and bytes_of(obj) is None:
        stored = {name: part for name, part in stored.items() if name != "status"}
    desired, literal = _desired(obj, status, own, stored.get("status") or {}, whole=whole)
    for found in _lists(desired):
        for element in found:
            literal |= parts_of(element)
    before = stored.get("status") or {}
    merged = Overlay(literal, partial=True).merge(before, desired, field.child("status"))
    # The object's own status, as it was read, asks for nothing.
    asks_nothing = status is own and bytes_of(obj) is not None and not exact
    again = None if asks_nothing else lambda newer: status_change(newer, status, exact=exact)
    return Edit(field, stored, stored if merged is before else {**stored, "status": merged}, again)


def _desired(
    obj: Any, status: Any, own: Any, stored: Mapping[str, Any], *, whole: bool
) -> tuple[dict[str, Any], dict[int, Any]]:
    """A status in wire form, and its literal parts."""
    if isinstance(status, dict):
        parts = parts_of(status)
        if whole:
            return status, parts
        # Parts of the object's own status may have been put into it.
        return status, parts_of(own) if len(parts) > 1 else {}
    if isinstance(status, Mapping):
        copy = dict(status)
        return copy, parts_of(copy) if whole else {}
    if status is own:
        desired = wire_of(obj).get("status") or {}
        literal = parts_of(desired)
        raw = bytes_of(obj)
        if raw is not None:
            seen = wire_of(adapter_like(obj).decode(raw)).get("status") or {}
            desired = as_stored(desired, seen, stored, literal)
        return desired, literal
    if not isinstance(status, BaseModel):
        raise UsageError(
            f"status of {kind_of(obj)} {key_of(obj)}: give a map in wire form, a model, or the object's own status, "
            f"and not a {type(status).__name__}"
        )
    desired = to_wire(status, nulls=not whole)
    # A map in a model is all of it: what is not in it (any more) goes.
    return desired, {id(wire): wire for part, wire in paired(status, desired) if whole or isinstance(part, dict)}


def _written(obj: Any, value: Mapping[str, Any]) -> Any:
    """What `value` is on the wire; it is refused with the name of the object."""
    try:
        return wire_value(value)
    except EncodeError as error:
        raise EncodeError(error.problem, error.field, f"{kind_of(obj)} {key_of(obj)}") from None


def _lists(value: Any) -> list[list[Any]]:
    return [part for part in parts_of(value).values() if isinstance(part, list)]


def bound(obj: Any, patch: Any, patch_type: PatchType, subresource: str | None) -> tuple[Any, PatchType]:
    """A patch that somebody wrote for an object, made to fail for another one, and for another list than was read."""
    stored = as_read(obj)
    metadata = stored.get("metadata") or {}
    uid = metadata.get("uid")
    if not uid:
        return patch, patch_type
    if patch_type == "json":
        return bound_steps(stored, patch), "json"
    of_status = subresource == "status"
    if patch_type == "merge" and of_status:  # one that changes nothing
        return bound_diff(stored, stored, field_of(obj), subresource)
    # The status of a custom resource is not compared by uid; by version each is.
    by_version = (patch_type == "apply" and of_status) or (
        patch_type == "strategic" and replaces_list(patch, field_of(obj))
    )
    version = {"resourceVersion": metadata.get("resourceVersion") or ""} if by_version else {}
    return with_identity(patch, {"uid": uid, **version}), patch_type


def carried_out(obj: Any, change: Edit, answer: bytes) -> None:
    """Note on an object that a change of it was carried out: the next one begins where this has led."""
    read_from(obj, _CarriedOut(change.field, change.stored, change.merged, answer))


class _CarriedOut(NamedTuple):
    """A change that was carried out, and the server's answer; called, it gives what this has led to."""

    field: Field
    stored: dict[str, Any]
    merged: dict[str, Any]
    answer: bytes

    def __call__(self) -> bytes:
        return encode(rebased(self.stored, self.merged, decode_object(self.answer), self.field))

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nobody edits it
