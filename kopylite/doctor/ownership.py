"""Owner references that can never do anything: the collector ignores them or takes the owner for gone, and no
controller hears of the object. Pure: who the owners are was looked up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kopylite.doctor.findings import Finding, error, kubectl, warning
from kopylite.doctor.wire import Object, maps, name, namespace, text, title

CHECK = "owners"


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """What a reference names, and what there is.

    Attributes:
        served: whether the kind is served in the version that it names.
        other_version: one in which it is; "" if there is none.
        namespaced: the scope of the kind.
        uid: of the object of that name; "" if there is none; None: that was not looked at.
        elsewhere: the namespace in which an object of that uid was seen.
    """

    served: bool = True
    other_version: str = ""
    namespaced: bool = True
    uid: str | None = None
    elsewhere: str | None = None


Reference = tuple[str, str, str, str]
"""apiVersion, kind, name and uid."""


def references(obj: Object) -> list[Reference]:
    """The owner references of an object, in their order."""
    return [
        (text(each, "apiVersion"), text(each, "kind"), text(each, "name"), text(each, "uid"))
        for each in maps(obj, "metadata", "ownerReferences")
    ]


def judge(obj: Object, kind: str, resource: str, owners: Mapping[Reference, OwnerFacts]) -> Iterator[Finding]:
    """What is wrong with the references of one object."""
    where, found = title(obj, kind), references(obj)
    for index, reference in enumerate(found):
        owner = owners.get(reference)
        if owner is None:
            continue
        version, owner_kind, owner_name, uid = reference
        named = f"{owner_kind} {owner_name}"
        remove = _patch(
            obj, resource, [_test(index, uid), {"op": "remove", "path": f"/metadata/ownerReferences/{index}"}]
        )
        if not owner.served:
            what = (
                f"its owner {named} is of {version}, which the server does not serve: the collector cannot look it up"
            )
            fix = remove
            if owner.other_version:
                path = f"/metadata/ownerReferences/{index}/apiVersion"
                change = {"op": "replace", "path": path, "value": owner.other_version}
                fix = _patch(obj, resource, [_test(index, uid), change])
            yield error(CHECK, where, what, fix)
        elif owner.namespaced and not namespace(obj):
            what = f"it is in no namespace, and its owner {named} is in one: that can own nothing outside of it"
            yield error(CHECK, where, what, remove)
        elif owner.elsewhere is not None and owner.elsewhere != namespace(obj) and owner.namespaced:
            what = f"its owner {named} is in namespace {owner.elsewhere}: an owner has to be in the same one, so the "
            what += "collector takes it for gone and deletes this object, and no change of it runs a reconcile"
            yield error(CHECK, where, what, remove)
        elif owner.uid == "":
            what = f"its owner {named} is gone: the collector should have deleted it"
            yield warning(CHECK, where, what, f"{remove}    # or, if it is not needed: {_delete(obj, resource)}")
        elif owner.uid is not None and owner.uid != uid:
            what = f"its owner {named} is another object than the one that was meant: that of uid {uid} is gone"
            yield error(CHECK, where, what, remove)


def _test(index: int, uid: str) -> dict[str, str]:
    return {"op": "test", "path": f"/metadata/ownerReferences/{index}/uid", "value": uid}


def _patch(obj: Object, resource: str, steps: Sequence[Mapping[str, str]]) -> str:
    return kubectl("patch", resource, name(obj), namespace(obj), "--type=json", "-p", json.dumps(steps))


def _delete(obj: Object, resource: str) -> str:
    return kubectl("delete", resource, name(obj), namespace(obj))
