"""Differences between two states of an object, as values. Pure.

Objects are in wire form: dicts, lists, strings, numbers, booleans, None.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

import msgspec

from kopylite.client.verbs import PatchType
from kopylite.objects import to_wire
from kopylite.objects.wirevalues import wire_value


class Absent(enum.Enum):
    """The value of a field that is not there."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

Path = tuple[str | int, ...]


class Difference(NamedTuple):
    """One place where a stored object does not hold what was wished."""

    path: Path
    wished: Any
    stored: Any


class Comparison(NamedTuple):
    """What `compare` found.

    Attributes:
        differences: the places where the stored object must change; none: it holds the wish.
        replaced: the parts of the wish that were put in whole, as JSON, by path.
    """

    differences: tuple[Difference, ...]
    replaced: Mapping[Path, bytes]


def merge_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that turns `before` into `after`; {} when there is nothing to do.

    Lists are replaced whole. A None in `after` means the same as an absent field, since no merge patch can
    write a null.
    """
    patch: dict[str, Any] = {name: None for name in before if before[name] is not None and after.get(name) is None}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_diff(old, value):
                patch[name] = inner
        elif value is not None and not equal(old, value):
            # An old dict would be merged with; a new one must not carry nulls either.
            patch[name] = merge_apply({}, value) if isinstance(value, dict) else value
    return patch


def merge_apply(target: Any, patch: Any) -> Any:
    """`target` changed by a JSON merge patch; neither is modified."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_apply(result.get(name), value)
    return result


def merge_missing(stored: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a JSON merge patch that `stored` does not hold yet; {}: sending it would change nothing."""
    missing = {}
    for name, value in patch.items():
        old = stored.get(name)
        if isinstance(value, dict):
            inner = merge_missing(old if isinstance(old, dict) else {}, value)
            # An empty map where there is none is no difference: the API leaves out empty maps.
            if inner or (old is not None and not isinstance(old, dict)):
                missing[name] = inner
        elif not equal(old, value):
            missing[name] = value
    return missing


def bound(stored: Mapping[str, Any], patch: Mapping[str, Any], subresource: str | None) -> tuple[Any, PatchType]:
    """A merge patch of an object that was read, made to fail for another object that took its name meanwhile.

    The main endpoint compares a uid in the patch. The status endpoint of custom resources ignores one, so there the
    patch becomes a JSON patch that tests it. Other sub-resources, and objects without a uid: as it is.

    Args:
        stored: the object, in wire form.
        patch: the merge patch.
    """
    metadata = stored.get("metadata") or {}
    uid = metadata.get("uid")
    if uid and subresource is None:
        own = patch.get("metadata") or {}
        return {**patch, "metadata": {"uid": uid, **own}}, "merge"
    if uid and subresource == "status":
        steps = [{"op": "test", "path": "/metadata/uid", "value": uid}]
        inner, exclusive = _steps(stored, patch, "")
        if exclusive:
            steps.append({"op": "test", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")})
        return [*steps, *inner], "json"
    return patch, "merge"


def _steps(stored: Mapping[str, Any], patch: Mapping[str, Any], path: str) -> tuple[list[dict[str, Any]], bool]:
    """A merge patch as JSON patch operations on what was stored, and whether they make a map that was not there.

    Somebody else may have made that map meanwhile, and would lose what it holds.
    """
    steps: list[dict[str, Any]] = []
    exclusive = False
    for name, value in patch.items():
        pointer = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        old = stored.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            inner, makes = _steps(old, value, pointer)
            steps += inner
            exclusive |= makes
        elif value is not None:
            steps.append({"op": "add", "path": pointer, "value": merge_apply(None, value)})
            exclusive |= isinstance(value, dict)
        elif name in stored:
            steps.append({"op": "remove", "path": pointer})
    return steps, exclusive


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values. A null field is an absent one; 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(a, dict):
        return isinstance(b, dict) and all(equal(a.get(name), b.get(name)) for name in a.keys() | b.keys())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return a is b or (bool(a == b) and (a is True or a is False) == (b is True or b is False))


def plain(value: Any) -> Any:
    """A value in JSON's own terms: dates, enums, models and the like inside it written out.

    Raises:
        EncodeError: naming what has no such form.
    """
    return wire_value(value)


def add_finalizer(metadata: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The JSON patch that adds a finalizer to the object with this metadata; [] when it has it.

    It tests what it relies on: that this is the object, and the list still the one seen or still not there.
    """
    present = metadata.get("finalizers") or []
    if name in present:
        return []
    if present:
        return [
            {"op": "test", "path": "/metadata/uid", "value": metadata.get("uid")},
            {"op": "test", "path": "/metadata/finalizers", "value": present},
            {"op": "add", "path": "/metadata/finalizers/-", "value": name},
        ]
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")},
        {"op": "add", "path": "/metadata/finalizers", "value": [name]},
    ]


def remove_finalizer(metadata: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The JSON patch that removes a finalizer (each copy of it) from the object with this metadata; [] if it has none.

    It tests that it removes this name from this object, and nothing else.
    """
    present = metadata.get("finalizers") or []
    steps = []
    # From the end: removing an item moves those behind it.
    for index in range(len(present) - 1, -1, -1):
        if present[index] == name:
            path = f"/metadata/finalizers/{index}"
            steps += [{"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]
    return [{"op": "test", "path": "/metadata/uid", "value": metadata.get("uid")}, *steps] if steps else []


def containers(value: Any) -> dict[int, Any]:
    """All dicts and lists in a value, itself included, by id: what `compare` takes as `own`."""
    found: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        part = waiting.pop()
        inside = part.values() if isinstance(part, dict) else part
        found[id(part)] = part
        waiting += [inner for inner in inside if isinstance(inner, dict | list)]
    return found


def compare(wish: Mapping[str, Any], stored: Mapping[str, Any], own: Mapping[int, Any]) -> Comparison:
    """Whether a stored object holds a wish, however the server has filled it in.

    A wish is a copy of the stored object that somebody has edited. What they edited in place counts literally:
    a field taken out of a dict of the copy shall go. What they put in whole (`obj["spec"] = {...}`) names only
    the fields that matter: others, which the server has defaulted or somebody else has set, are no difference.
    Lists are compared item by item, in order.

    Args:
        own: the dicts and lists of the copy as it was handed out, by id; all others were put in whole.
    """
    walk = _Walk(own)
    walk.visit_dict((), wish, stored, put_in=False)
    return Comparison(tuple(walk.differences), walk.replaced)


class _Walk:
    __slots__ = ("differences", "own", "replaced")

    def __init__(self, own: Mapping[int, Any]) -> None:
        self.own = own
        self.differences: list[Difference] = []
        self.replaced: dict[Path, bytes] = {}

    def visit(self, path: Path, wish: Any, stored: Any, *, put_in: bool) -> None:
        if isinstance(wish, dict):
            if isinstance(stored, dict):
                self.visit_dict(path, wish, stored, put_in=put_in)
                return
        elif isinstance(wish, list):
            if isinstance(stored, list):
                self._visit_list(path, wish, stored, put_in=put_in)
                return
            if not wish and stored in (None, ABSENT):
                return  # the API leaves out empty lists
        elif wish is None or isinstance(wish, str | int | float):
            if equal(wish, stored) or (wish is None and stored is ABSENT) or _same_quantity(path, wish, stored):
                return
        else:
            self.visit(path, plain(wish), stored, put_in=True)
            return
        self.differences.append(Difference(path, wish, stored))

    def visit_dict(self, path: Path, wish: Mapping[str, Any], stored: Mapping[str, Any], *, put_in: bool) -> None:
        put_in = self._note(path, wish, put_in)
        for name, value in wish.items():
            old = stored.get(name, ABSENT)
            # Most values are equal strings; `visit` says what else is equal.
            if type(value) is not str or value != old:
                self.visit((*path, name), value, old, put_in=put_in)
        if not put_in:
            gone = [name for name in stored if name not in wish]
            self.differences += [Difference((*path, name), ABSENT, stored[name]) for name in gone]

    def _visit_list(self, path: Path, wish: list[Any], stored: list[Any], *, put_in: bool) -> None:
        put_in = self._note(path, wish, put_in)
        if put_in and len(wish) != len(stored):
            stored = [item for item in stored if not _is_injected(item)]
        if len(wish) != len(stored):
            self.differences.append(Difference(path, wish, stored))
            return
        for index, (value, old) in enumerate(zip(wish, stored, strict=True)):
            self.visit((*path, index), value, old, put_in=put_in)

    def _note(self, path: Path, wish: Any, put_in: bool) -> bool:
        """Whether this part was put in whole, by itself or with a part around it."""
        if put_in:
            return True
        if id(wish) in self.own:
            return False
        self.replaced[path] = _encode(wish)
        return True


_encode = msgspec.json.Encoder(enc_hook=to_wire, order="deterministic").encode

# Maps whose values are quantities, which the server writes in its own way: "1000m" comes back as "1".
_QUANTITIES = frozenset({"requests", "limits", "capacity", "hard"})

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}  # fmt: skip


def _same_quantity(path: Path, a: Any, b: Any) -> bool:
    if len(path) < 2 or path[-2] not in _QUANTITIES:
        return False
    try:
        return _quantity(a) == _quantity(b)
    except (InvalidOperation, KeyError):
        return False


def _quantity(value: Any) -> Decimal:
    text = str(value)
    number = text.rstrip("numkMGTPEi")
    return Decimal(number) * _SUFFIXES[text[len(number) :]]


# What the API server's own admission puts into the lists of every Pod.
_INJECTED_NAME = "kube-api-access-"
_INJECTED_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def _is_injected(item: Any) -> bool:
    return isinstance(item, dict) and (
        str(item.get("name", "")).startswith(_INJECTED_NAME) or item.get("key") in _INJECTED_TOLERATIONS
    )
