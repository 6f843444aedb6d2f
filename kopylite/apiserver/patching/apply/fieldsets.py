"""Sets of fields in the form of FieldsV1: nested dicts keyed by path elements. Pure.

A path element is `f:NAME` (field), `k:{"name":"x"}` (list element by keys) or `v:"x"` (element of a set). The
node under an element says three things: `{}`: the field is in the set; `{".": {}, ...}`: it is, and so are
fields below it; `{...}`: only fields below it are. The root never is a member. Sets share nodes: none of
these functions changes its arguments, and no caller may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from typing import Any

from kopylite.apiserver.schema.field_errors import go_json, go_value

Fields = dict[str, Any]

SELF = "."
LEAF: Fields = {}


class BadFields(ValueError):
    """A FieldsV1 document that is none."""


def is_member(node: Fields) -> bool:
    """Is the element that this node stands under in the set itself?"""
    return not node or SELF in node


def with_self(children: Fields, member: bool) -> Fields | None:
    """The node for an element, from its children and its own membership; None if neither."""
    if not member:
        return children or None
    return {SELF: LEAF, **children} if children else LEAF


def union(one: Fields, other: Fields) -> Fields:
    """Everything that is in either set."""
    if not one or not other:
        return one or other
    result = dict(one)
    for element, node in other.items():
        mine = result.get(element)
        result[element] = node if mine is None else _union(mine, node)
    return result


def _union(one: Fields, other: Fields) -> Fields:
    if one is other:
        return one
    if not one or not other:
        # A leaf on one side makes the element a member.
        rest = one or other
        return rest if not rest or SELF in rest else {SELF: LEAF, **rest}
    return union(one, other)


def intersection(one: Fields, other: Fields) -> Fields:
    """Everything that is in both sets."""
    result: Fields = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None or element == SELF:
            continue
        both = with_self(intersection(node, theirs), is_member(node) and is_member(theirs))
        if both is not None:
            result[element] = both
    return result


def difference(one: Fields, other: Fields) -> Fields:
    """What is in the first set only. A parent taken away leaves its children, and the other way round."""
    if not other:
        return one
    result: Fields = {}
    for element, node in one.items():
        if element == SELF:
            continue
        theirs = other.get(element)
        rest: Fields | None = node
        if theirs is not None:
            rest = with_self(difference(_children(node), theirs), is_member(node) and not is_member(theirs))
        if rest is not None:
            result[element] = rest
    return result


def without_subtrees(one: Fields, roots: Fields) -> Fields:
    """What is left when the members of `roots` go with everything below them."""
    if not roots:
        return one
    result: Fields = {}
    for element, node in one.items():
        theirs = roots.get(element)
        if theirs is None or element == SELF:
            result[element] = node
        elif not is_member(theirs):
            rest = with_self(without_subtrees(_children(node), theirs), is_member(node))
            if rest is not None:
                result[element] = rest
    return result


def _children(node: Fields) -> Fields:
    return {k: v for k, v in node.items() if k != SELF} if SELF in node else node


def has(fields: Fields, path: Iterable[str]) -> bool:
    """Is the field at this path (of elements) a member?"""
    node: Fields | None = fields
    found = False
    for element in path:
        node = None if node is None or element == SELF else node.get(element)
        if node is None:
            return False
        found = is_member(node)
    return found


def paths(fields: Fields, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member, the members of a level before those below it, in the server's order."""
    elements = [e for e in sorted_elements(fields) if e != SELF]
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        yield from paths(fields[element], (*prefix, element))


def path_text(path: Iterable[str]) -> str:
    """A path as the server shows it: `.spec.containers[name="web"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "k:":
        return f"[{','.join(f'{k}={go_value(v)}' for k, v in json.loads(text).items())}]"
    return f"[={go_value(json.loads(text))}]"


def of_paths(*dotted: str) -> Fields:
    """The set of plain fields that are named like `metadata.labels`."""
    fields: Fields = {}
    for path in dotted:
        node: Fields = LEAF
        for name in reversed(path.split(".")):
            node = {f"f:{name}": node}
        fields = union(fields, node)
    return fields


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """The path element of a list element with these keys, given sorted by name."""
    return f"k:{{{','.join(f'{_scalar(k)}:{_scalar(v)}' for k, v in keys)}}}"


def value_element(value: Any) -> str:
    """The path element of a value in a set."""
    return f"v:{_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum():
        return f'"{value}"'
    return go_json(value)


def sorted_elements(fields: Fields) -> list[str]:
    """The elements of one level in the server's order: keys and values compare as values, not as texts."""
    elements = sorted(fields)
    # A level holds either fields (and "."), or keys, or values; only the latter two need more than text order.
    if len(elements) > 1 and elements[-1][:2] in ("k:", "v:"):
        elements.sort(key=_element_order)
    return elements


def _compare_elements(one: str, other: str) -> int:
    if one[:2] != other[:2] or one[:2] not in ("k:", "v:"):
        return (one > other) - (one < other)
    left, right = json.loads(one[2:]), json.loads(other[2:])
    if one[:2] == "v:":
        return _compare_values(left, right)
    for (name, value), (other_name, other_value) in zip(left.items(), right.items(), strict=False):
        result = (name > other_name) - (name < other_name) or _compare_values(value, other_value)
        if result:
            return result
    return (len(left) > len(right)) - (len(left) < len(right))


_element_order = cmp_to_key(_compare_elements)


def _compare_values(one: Any, other: Any) -> int:
    ranks = (_rank(one), _rank(other))
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    return (one > other) - (one < other) if one is not None and not isinstance(one, (dict, list)) else 0


def _rank(value: Any) -> int:
    if isinstance(value, bool):
        return 2
    return 0 if isinstance(value, (int, float)) else 1 if isinstance(value, str) else 3


def ordered(fields: Fields) -> Fields:
    """The same set with its elements in the order in which the server writes them."""
    return {e: ordered(fields[e]) if fields[e] else LEAF for e in sorted_elements(fields)}


def parse(document: Any) -> Fields:
    """A FieldsV1 document of a client as a set in normal form; elements of unknown sorts are dropped.

    Raises:
        BadFields: it is no FieldsV1 document.
    """
    if not isinstance(document, dict):
        raise BadFields("not an object")
    return _parse(document)


def _parse(document: dict[str, Any]) -> Fields:
    fields: Fields = {}
    for element, node in document.items():
        if not isinstance(node, dict):
            raise BadFields(f"{element} is not an object")
        if element == SELF:
            continue
        canonical = _canonical(element)
        if canonical is not None:
            children = _parse(node)
            merged = with_self(children, SELF in node or not children)
            fields[canonical] = LEAF if merged is None else merged
    return fields


def _canonical(element: str) -> str | None:
    if element[1:2] != ":":
        raise BadFields(f"missing colon: {element}")
    kind, text = element[0], element[2:]
    if kind == "f" or kind == "i":
        return element
    if kind not in "kv":
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadFields(f"{element}: {error}") from error
    if kind == "v":
        return value_element(value)
    if not isinstance(value, dict):
        raise BadFields(f"{element}: not an object")
    return key_element(sorted(value.items()))
