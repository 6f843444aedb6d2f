"""Owner references: which object made which, so that the garbage collector can follow.

Deleting an owner collects its dependents. Of an object's owners at most one is its *controller*; a dependent's
events wake the reconcile of that one. These functions change the object in memory; the caller writes it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kopylite.errors import AlreadyOwned, ObjectError
from kopylite.objects.adapters import identity_of, key_of, kind_of, meta_of
from kopylite.objects.apimodel import OwnerRef
from kopylite.objects.foreign import is_foreign, set_foreign_owner_references, set_owners_of_foreign
from kopylite.objects.meta import OwnerReference
from kopylite.objects.models import is_client_model, set_client_owner_references
from kopylite.objects.resource import CustomResource
from kopylite.objects.unstructured import read_owner_references


def set_owner(owner: Any, obj: Any, *, controller: bool = True) -> None:
    """Make `owner` the controller of `obj`, or (`controller=False`) one of its owners; in place.

    Raises: see `set_controller_reference`.
    """
    if controller:
        set_controller_reference(owner, obj)
    else:
        set_owner_reference(owner, obj)


def owner_reference(owner: Any, *, controller: bool = False, block_deletion: bool = False) -> OwnerReference:
    """The reference that makes `owner` an owner.

    Raises:
        ObjectError: the owner has no uid, because it was never created.
    """
    kind, key = kind_of(owner), key_of(owner)
    uid = identity_of(owner)["uid"]
    if not uid or not key.name:
        raise ObjectError(
            f"{kind.kind} {key.name or '(no name)'} cannot own anything before it is created: it has no uid"
        )
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=key.name,
        uid=uid,
        controller=True if controller else None,
        block_owner_deletion=True if block_deletion else None,
    )


def set_controller_reference(owner: Any, obj: Any, *, block_deletion: bool = True, adopt: bool = False) -> None:
    """Make `owner` the controller of `obj`, in place. Calling it again changes nothing.

    Args:
        block_deletion: a foreground deletion of the owner waits for `obj`; the owner's `finalizers` sub-resource
            must be writable where the server checks that.
        adopt: replace a controller reference that names the same group, kind and name with another uid: its
            owner was deleted and recreated (restored from a backup, say).

    Raises:
        AlreadyOwned: another object is the controller; so is an earlier owner of the same name, unless `adopt`.
        ObjectError: the owner has no uid, or may not own across this scope.
    """
    reference = owner_reference(owner, controller=True, block_deletion=block_deletion)
    _set(owner, obj, reference, adopt=adopt)


def set_owner_reference(owner: Any, obj: Any, *, block_deletion: bool = False, adopt: bool = False) -> None:
    """Make `owner` one of the owners of `obj`, in place, and not its controller.

    Where it is one already, the reference is brought up to date. Arguments and errors as for
    `set_controller_reference`, except that other owners are no hindrance.
    """
    _set(owner, obj, owner_reference(owner, block_deletion=block_deletion), adopt=adopt)


def remove_owner_reference(owner: Any, obj: Any) -> bool:
    """Take `owner` out of the owners of `obj`, in place; False when it was none. Compares the uid."""
    uid = identity_of(owner)["uid"]
    kept = [entry for entry in _entries(obj) if not (isinstance(entry, dict) and uid and entry.get("uid") == uid)]
    if len(kept) == len(_entries(obj)):
        return False
    _write(obj, kept)
    return True


def has_owner_reference(owner: Any, obj: Any) -> bool:
    """Whether `owner` (this uid, not only this name) is one of the owners of `obj`."""
    uid = identity_of(owner)["uid"]
    return any(uid and reference.uid == uid for reference in read_owner_references(meta_of(obj)))


def has_controller_reference(obj: Any) -> bool:
    """Whether `obj` has a controller, whichever it is."""
    return controller_of(obj) is not None


def controller_of(obj: Any) -> OwnerReference | None:
    """The reference to the controller of `obj`."""
    return next((ref for ref in read_owner_references(meta_of(obj)) if ref.controller), None)


def _set(owner: Any, obj: Any, reference: OwnerReference, *, adopt: bool) -> None:
    _check_scope(owner, obj, reference)
    entries, wanted = _entries(obj), reference.to_dict()
    if entries == [wanted]:
        return  # as nearly all are
    place: int | None = None
    for index, entry in enumerate(entries):
        try:
            existing = msgspec.convert(entry, OwnerReference)
        except msgspec.ValidationError:
            continue
        if existing.uid == reference.uid or (adopt and _same_name(existing, reference)):
            place = index
        elif existing.controller and reference.controller:
            error = AlreadyOwned(
                f"{_text(obj)} is controlled by {existing.kind} {existing.name} (uid {existing.uid}), "
                f"so {reference.kind} {reference.name} (uid {reference.uid}) cannot control it"
            )
            if _same_name(existing, reference):
                error = AlreadyOwned(
                    f"{error}: the owner was made anew, and what the old one had is yet to be collected"
                )
                error.earlier = True
            raise error
    if place is None:
        _write(obj, [*entries, wanted])
    elif entries[place] != wanted:
        _write(obj, [*entries[:place], wanted, *entries[place + 1 :]])


def _same_name(a: OwnerReference, b: OwnerReference) -> bool:
    return (a.group, a.kind, a.name) == (b.group, b.kind, b.name)


def _check_scope(owner: Any, obj: Any, reference: OwnerReference) -> None:
    owner_namespace, namespace = key_of(owner).namespace, key_of(obj).namespace
    if not owner_namespace or owner_namespace == namespace:
        return
    if namespace:
        raise ObjectError(
            f"{reference.kind} {owner_namespace}/{reference.name} cannot own {_text(obj)}: "
            "an owner must be in the namespace of what it owns, or cluster-scoped"
        )
    raise ObjectError(
        f"{reference.kind} {owner_namespace}/{reference.name} cannot own {_text(obj)}: "
        "a namespaced owner cannot own a cluster-scoped object (or the object's namespace is not set yet)"
    )


def _text(obj: Any) -> str:
    return f"{kind_of(obj).kind} {key_of(obj)}"


def _entries(obj: Any) -> list[Any]:
    return list(meta_of(obj).get("ownerReferences") or ())


def _write(obj: Any, entries: list[Any]) -> None:
    if is_foreign(obj):
        set_owners_of_foreign(obj, entries)
        return
    if isinstance(obj, dict):
        if not obj.get("metadata"):
            obj["metadata"] = {}
        obj["metadata"]["ownerReferences"] = entries
        return
    if isinstance(obj, CustomResource):
        obj.metadata.owner_references = [OwnerRef.model_validate(entry) for entry in entries]
    elif is_client_model(type(obj)):
        set_client_owner_references(obj, entries)
    else:
        set_foreign_owner_references(obj, entries)
