"""What is desired, laid over what is stored: the three-way merge behind every upsert. Pure.

Objects are in wire form. `overlay` gives the object that is to be stored, and gives back the stored object itself
when nothing has to change, so it is the decision and the write in one.

A part of the desired object is either *literal* or *put in whole*:

- Literal is what user code was handed out and has edited in place. It is taken as it is: what is no longer in it goes.
- Put in whole is what user code made (`obj["spec"] = {...}`). It names the fields that matter: others stay, unless this
  operator named them before. Lists whose elements have keys are merged by them, a union keeps only what is named
  when it changes, any other list is one value.

Names are kept in the form of managedFields (FieldsV1): {"f:spec": {"f:containers": {'k:{"name":"a"}': {...}}}}.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec

from kopylite.client.codec import encode, encode_sorted
from kopylite.client.fields import SERVERS_OWN, Field
from kopylite.objects.wirevalues import wire_value


class Absent(enum.Enum):
    """The value of a field that is not there."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

Names = Mapping[str, Any]
NONE: Final[Names] = {}

_JSON = frozenset({dict, list, str, int, bool, type(None)})
_PLAIN = frozenset({str, int, bool})

_decode = msgspec.json.Decoder().decode

# What the API server's own admission puts into every Pod (plugin/pkg/admission/defaulttolerationseconds/admission.go):
# a Pod's tolerations are one value, so without this each comparison would find two elements too many.
_INJECTED_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class Overlay:
    """One overlay.

    Args:
        literal: the literal dicts and lists of the desired object, by id.
        others: the fields that other managers own: they stay when this operator drops a part around them.
        partial: of a map, what is not desired stays in any case; only list elements are dropped.
        explain: say what is `unexplained`: to look for defaults takes as long as all the rest.

    Attributes:
        dropped: fields were taken out because this operator named them before.
        unexplained: the stored object has fields beside those that are desired, and they are no plain defaults.
    """

    def __init__(
        self, literal: Mapping[int, Any], others: Names = NONE, *, partial: bool = False, explain: bool = False
    ) -> None:
        self._literal = literal
        self._others = others
        self._partial = partial
        self._explain = explain
        self.dropped = False
        self.unexplained = False

    def merge(self, stored: Any, desired: Any, field: Field, named: Names = NONE) -> Any:
        """The object to store; `stored` itself when it holds all that is desired.

        Args:
            named: the fields that this operator named the last time.
        """
        return self._value(stored, desired, field, named, self._others)

    def _value(self, stored: Any, desired: Any, field: Field, named: Names, others: Names) -> Any:
        if desired is stored:
            return stored
        if type(desired) not in _JSON:
            desired = wire_value(desired)
        if desired is None:
            # To Go a null in a document is a field that is not set; a stored null is left, since it says the same.
            return stored if stored is None else ABSENT
        if isinstance(desired, dict):
            if isinstance(stored, dict):
                return self._dict(stored, desired, field, named, others)
            return stored if _empty(stored) and field.zero and not desired else desired
        if isinstance(desired, list):
            if isinstance(stored, list):
                return self._list(stored, desired, field, named, others)
            return stored if _empty(stored) and field.zero and not desired else desired
        return stored if field.same(None if stored is ABSENT else stored, desired) else desired

    def _dict(self, stored: Any, desired: Any, field: Field, named: Names, others: Names) -> Any:
        merged = stored  # until something differs
        bare = not named and not others
        for name, value in desired.items():
            old, kind = stored.get(name, ABSENT), type(value)
            if type(old) is kind and value == old and (kind in _PLAIN or _same_text(value, old)):
                continue  # as most are
            mine = theirs = NONE
            if not bare:
                step = f"f:{name}"
                mine, theirs = named.get(step) or NONE, others.get(step) or NONE
                if not mine and self._others is not NONE and isinstance(old, dict) and step not in others:
                    # managedFields name an atomic map (a nodeSelector) alone, and that is all in it.
                    mine = {f"f:{inner}": NONE for inner in old} if step in named else NONE
            if kind is dict and type(old) is dict:
                new = self._dict(old, value, field.child(name), mine, theirs)
            else:
                new = self._value(old, value, field.child(name), mine, theirs)
            if new is not old:
                merged = _with(merged, stored, name, new)
        if not stored.keys() <= desired.keys():
            merged = self._beside(stored, desired, merged, field, named, others)
        # Of a union nothing may be left that belongs to what it was before: upstream marks such fields with
        # patchStrategy=retainKeys (a Deployment's strategy, a volume's source), and validation refuses two members.
        if field.retain and merged is not stored:
            return {name: merged[name] for name in merged if name in desired}
        return merged

    def _beside(self, stored: Any, desired: Any, merged: Any, field: Field, named: Names, others: Names) -> Any:
        """`merged` after the stored fields that are not desired (any more): what was not this operator's stays."""
        literal = id(desired) in self._literal
        for name, old in stored.items():
            if name in desired:
                continue
            new = old
            if literal:
                new = ABSENT if old is not None else old
            elif f"f:{name}" in named:
                new = self._leave_out(name, old, merged, field.child(name), named, others)
            elif self._explain and not self.unexplained:
                child = field.child(name)
                self.unexplained = not (child.assigned or self._stays(name, old, merged, child))
            if new is not old:
                merged = _with(merged, stored, name, new)
        return merged

    def _stays(self, name: str, value: Any, beside: dict[str, Any], field: Field) -> bool:
        """Whether a stored field that is not desired is nobody's wish that could have been this operator's."""
        return self._partial or value is None or name in SERVERS_OWN or field.is_default(value, beside)

    def _leave_out(
        self, name: str, value: Any, beside: dict[str, Any], field: Field, named: Names, others: Names
    ) -> Any:
        """What stays of a field that this operator named before and does not desire any more."""
        if self._stays(name, value, beside, field):
            return value
        step = f"f:{name}"
        rest = _rest(value, named[step] or NONE, others.get(step), field)
        self.dropped |= rest is not value
        return rest

    def _list(self, stored: Any, desired: Any, field: Field, named: Names, others: Names) -> Any:
        old, new = elements_by_key(stored, field), elements_by_key(desired, field)
        literal = id(desired) in self._literal
        if old is None or new is None:
            return self._whole_list(stored, desired, field, literal)
        merged = {}
        mine, theirs = _elements(named, field), _elements(others, field)
        for key, element in new.items():
            own, other = mine.get(key) or NONE, theirs.get(key) or NONE
            merged[key] = self._value(old.get(key, ABSENT), element, field.each, own, other)
        if literal:
            result = list(merged.values())
        else:
            gone = {key for key in old if key not in new and key in mine and key not in theirs}
            self.dropped |= bool(gone)
            self.unexplained |= any(key not in new and key not in gone for key in old)
            result = _in_place(old, merged, gone)
        same = len(result) == len(stored) and all(a is b for a, b in zip(result, stored, strict=True))
        return stored if same else result

    def _whole_list(self, stored: Any, desired: Any, field: Field, literal: bool) -> Any:
        extra = [] if literal else [element for element in stored if _injected(element) and element not in desired]
        current = [element for element in stored if element not in extra] if extra else stored
        if len(current) != len(desired):
            return [*desired, *extra]
        result = [
            None if new is None else self._value(old, new, field.each, NONE, NONE)
            for old, new in zip(current, desired, strict=True)
        ]
        if all(new is old for new, old in zip(result, current, strict=True)):
            return stored
        # Not element by element: fields of one element would end up in another. In place, they were edited there.
        return result if literal else [*desired, *extra]


def holds(stored: Any, desired: Any, literal: Mapping[int, Any]) -> bool:
    """Whether all that is desired is stored, value by value and in the same places, and in a literal part nothing else.

    An overlay gives back the stored object then, unless a field is dropped. Most comparisons end here.
    """
    if isinstance(desired, dict):
        if not isinstance(stored, dict) or (id(desired) in literal and len(stored) != len(desired)):
            return False
        for name, value in desired.items():
            old, kind = stored.get(name, ABSENT), type(value)
            if kind in _PLAIN:
                if type(old) is not kind or old != value:
                    return False
            elif not holds(old, value, literal):
                return False
        return True
    if isinstance(desired, list):
        return (
            isinstance(stored, list)
            and len(stored) == len(desired)
            and all(map(holds, stored, desired, repeat(literal)))
        )
    return type(stored) is type(desired) and bool(stored == desired)


def _same_text(value: Any, other: Any) -> bool:
    """Of equal values, whether they are written alike: to Python 1 is 1.0, and true."""
    return value is other or encode_sorted(value) == encode_sorted(other)


def _with(merged: dict[str, Any], stored: dict[str, Any], name: str, new: Any) -> dict[str, Any]:
    """`merged` with another value; a new map, if it is the stored one yet."""
    if merged is stored:
        merged = dict(stored)
    if new is ABSENT:
        merged.pop(name, None)
    else:
        merged[name] = new
    return merged


def names_of(desired: Any, field: Field, literal: Mapping[int, Any], before: Names = NONE) -> Names:
    """The fields that a desired object names in the parts that were put in whole.

    Args:
        before: the names of the last time; they remain where a part was not put in whole this time.
    """
    if isinstance(desired, dict):
        whole = id(desired) not in literal
        found = {} if whole else dict(before)
        for name, value in desired.items():
            step = f"f:{name}"
            if type(value) in _PLAIN:
                if whole:
                    found[step] = NONE
                continue
            inner = names_of(value, field.child(name), literal, before.get(step) or NONE)
            if value is None:
                found.pop(step, None)
            elif inner or whole or (isinstance(value, (dict, list)) and id(value) not in literal):
                found[step] = inner
        return found
    if isinstance(desired, list) and (elements := elements_by_key(desired, field)) is not None:
        whole, named = id(desired) not in literal, {}
        for key, element in elements.items():
            inner = names_of(element, field.each, literal)
            if inner or whole or id(element) not in literal:
                named[_step(key, field)] = inner
        return named
    return NONE


def _rest(value: Any, named: Names, others: Names | None, field: Field) -> Any:
    """What stays of a part that this operator no longer names: what others own, and in a map what it never named."""
    if others is not None and not others:
        return value  # {} in managedFields is the field as a whole: somebody else wants the same
    others = others or NONE
    if isinstance(value, list) and (elements := elements_by_key(value, field)) is not None:
        mine, theirs = _elements(named, field), _elements(others, field)
        left = [element for key, element in elements.items() if key in theirs or (mine and key not in mine)]
        return left or ABSENT
    if not isinstance(value, dict) or (field.is_struct and not others):
        return ABSENT
    kept = {}
    for name, inner in value.items():
        step = f"f:{name}"
        rest = inner
        if step in named or not named or field.is_struct:
            rest = _rest(inner, named.get(step) or NONE, others.get(step), field.child(name))
        if rest is not ABSENT:
            kept[name] = rest
    return kept or ABSENT


def _empty(value: Any) -> bool:
    return value is None or value is ABSENT


def _injected(element: Any) -> bool:
    return isinstance(element, dict) and element.get("key") in _INJECTED_TOLERATIONS


def elements_by_key(elements: Sequence[Any], field: Field) -> dict[Any, Any] | None:
    """The elements of a keyed list by key; None when it is not keyed, or a key is missing or there twice."""
    if field.keys is None:
        return None
    found = {field.key_of(element): element for element in elements}
    return None if None in found or len(found) != len(elements) else found


def _step(key: Any, field: Field) -> str:
    """How managedFields name the element of a keyed list that has this key."""
    return (
        f"k:{encode(dict(zip(field.keys, key, strict=True))).decode()}" if field.keys else f"v:{encode(key).decode()}"
    )


def _elements(names: Names, field: Field) -> dict[Any, Names]:
    """What names say of the elements of a keyed list, by key."""
    found = {}
    for step, inner in names.items():
        kind, _, text = step.partition(":")
        if kind in ("k", "v"):
            found[field.key_of(_decode(text))] = inner or NONE
    return found


def _in_place(old: Mapping[Any, Any], merged: Mapping[Any, Any], gone: set[Any]) -> list[Any]:
    """Stored elements where they were; in the places of the desired ones, these in their own order; new ones behind."""
    waiting = iter(merged.values())
    result = [next(waiting) if key in merged else element for key, element in old.items() if key not in gone]
    return [*result, *waiting]


def managed_by(manager: str, entries: Sequence[Any]) -> tuple[Names, Names]:
    """From managedFields: the fields of one manager, and those of all others."""
    mine: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for entry in entries:
        _add(mine if entry.get("manager") == manager else others, entry.get("fieldsV1") or {})
    return mine, others


def _add(names: dict[str, Any], more: Mapping[str, Any]) -> None:
    for step, inner in more.items():
        _add(names.setdefault(step, {}), inner)
