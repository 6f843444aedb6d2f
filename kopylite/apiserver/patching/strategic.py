"""Strategic merge patch: a merge patch that knows which lists are merged, and by which key. Pure.

Directives inside the patch: `$patch: delete|replace|merge`, `$retainKeys`, `$deleteFromPrimitiveList/FIELD`
and `$setElementOrder/FIELD`.
"""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.patching.copying import copied
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.errors import ApiError, BadRequest

Object = dict[str, Any]

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"

_GO_KINDS = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}",
             list: "[]interface {}", type(None): "<nil>"}  # fmt: skip


def strategic_merge(document: Object, patch: Any, schema: SchemaNode) -> Object:
    """Apply a decoded strategic merge patch; returns a new document and leaves its arguments alone.

    Raises:
        BadRequest: a directive has a wrong form.
        ApiError: with code 500 and no reason, as the real server answers a list element without its merge key
            and a list of mixed types.
    """
    if not isinstance(patch, dict):
        kind = "array" if isinstance(patch, list) else _GO_KINDS[type(patch)].removesuffix("64")
        raise BadRequest(f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
    return _merge_map(copied(document), copied(patch), schema)


def _problem(text: str) -> ApiError:
    return ApiError(text, code=500, reason="")


def _merge_map(original: Object, patch: Object, schema: SchemaNode | None) -> Object:
    if PATCH in patch:
        return _replaced_map(patch)
    _retain_keys(original, patch)
    _apply_orders(original, patch, schema)
    for key, value in patch.items():
        deleting = key.startswith(DELETE_FROM_LIST)
        name = _field_of(key, DELETE_FROM_LIST, "primitive list") if deleting else key
        if value is None:
            original.pop(name, None)
            continue
        current = original.get(name)
        field = schema.field(name) if schema is not None else None
        if isinstance(current, dict) and isinstance(value, dict):
            replace = "replace" in _strategies(field)
            original[name] = value if replace else _merge_map(current, value, field)
        elif isinstance(current, list) and isinstance(value, list):
            if deleting or "merge" in _strategies(field):
                original[name] = _merge_list(current, value, field, deleting=deleting)
            else:
                original[name] = value
        elif not deleting:
            _set_clean(original, name, value)
    return original


def _replaced_map(patch: Object) -> Object:
    directive = patch[PATCH]
    if directive == "replace":
        return {k: v for k, v in patch.items() if k != PATCH}
    if directive == "delete":
        return {}
    raise _problem(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def _strategies(field: SchemaNode | None) -> tuple[str, ...]:
    return field.patch_strategies if field is not None else ()


def _field_of(key: str, prefix: str, what: str) -> str:
    head, slash, name = key.partition("/")
    if head != prefix or not slash:
        raise BadRequest(f"invalid patch format of {what}")
    return name


def _set_clean(target: Object, name: str, value: Any) -> None:
    """Set a value that nothing is merged with: without its nulls and directives."""
    if isinstance(value, dict) and PATCH in value:
        target.pop(name, None)
    else:
        target[name] = _clean(value)


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _clean(v) for k, v in value.items() if v is not None and not _is_directive(v)}
    if isinstance(value, list):
        return [_clean(v) for v in value if not _is_directive(v)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and PATCH in value


def _retain_keys(original: Object, patch: Object) -> None:
    if RETAIN_KEYS not in patch:
        return
    keys = patch.pop(RETAIN_KEYS)
    if not isinstance(keys, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM_LIST, SET_ORDER)) and key not in keys:
            raise BadRequest("invalid patch format of retainKeys")
    for key in [k for k in original if k not in keys]:
        del original[key]


def _apply_orders(original: Object, patch: Object, schema: SchemaNode | None) -> None:
    """Merge every list whose order the patch gives, and take it out of the patch."""
    for directive in [k for k in patch if k.startswith(SET_ORDER)]:
        order = patch.pop(directive)
        if not isinstance(order, list):
            raise _problem(f"expected a []interface {{}}, but received a {_GO_KINDS[type(order)]}")
        name = _field_of(directive, SET_ORDER, "setElementOrder list")
        field = schema.field(name) if schema is not None else None
        key = field.patch_merge_key if field is not None else ""
        additions, current = patch.get(name), original.get(name)
        for side in (current, additions):
            if side is not None and not isinstance(side, list):
                raise _problem(f"expected a []interface {{}}, but received a {_GO_KINDS[type(side)]}")
        if not current and not additions:
            if name in original and name in patch:
                del patch[name]
            continue
        _check_order(additions or [], order, key)
        before = list(current or [])
        if additions is None:
            merged = before
        elif current is None:
            merged = _clean(additions)
        else:
            merged = _merge_list(current, additions, field) if "merge" in _strategies(field) else list(additions)
        original[name] = _ordered(merged, order, before, key)
        patch.pop(name, None)


def _check_order(additions: list[Any], order: list[Any], key: str) -> None:
    """The patch's elements must come in the order that the patch itself gives."""
    if not additions or not order:
        return
    wanted = iter(_identity(o, key) for o in order)
    for element in additions:
        if _is_directive(element):
            continue
        identity = _identity(element, key)
        if not any(identity == other for other in wanted):
            raise _problem(
                f"The order in patch list:\n{go_text(additions)}\n doesn't match {SET_ORDER} list:\n{go_text(order)}\n"
            )


def _identity(element: Any, key: str) -> Any:
    """What identifies a list element: the value of its merge key, or the scalar itself."""
    if not key:
        return element
    if not isinstance(element, dict):
        raise _problem(f"expected a map[string]interface {{}}, but received a {_GO_KINDS[type(element)]}")
    if key not in element:
        raise _problem(f"map: {go_text(element)} does not contain declared merge key: {key}")
    return _comparable(element[key])


def _comparable(value: Any) -> Any:
    """Raises ApiError: it is a list or a map, which identifies nothing."""
    if isinstance(value, (dict, list)):
        raise _problem(f"expected a scalar as merge key, but received a {_GO_KINDS[type(value)]}")
    return value


def _merge_list(current: list[Any], patch: list[Any], field: SchemaNode | None, *, deleting: bool = False) -> list[Any]:
    if not current and not patch:
        return current
    if _element_type(current, patch) is not dict:
        if deleting:
            gone = set(patch)
            return [v for v in current if v not in gone]
        return _ordered(list(dict.fromkeys([*current, *patch])), patch, current, "")
    key = field.patch_merge_key if field is not None else ""
    if not key:
        raise _problem("cannot merge lists without merge key for ")
    before, additions = _apply_directives(current, patch, key)
    merged = list(before)
    places = {_comparable(e.get(key)): i for i, e in reversed(list(enumerate(merged)))}
    for element in additions:
        identity = _identity(element, key)
        index = places.get(identity)
        if index is None:
            places[identity] = len(merged)
            merged.append(_clean(element))
        else:
            merged[index] = _merge_map(merged[index], element, field.items if field is not None else None)
    return _ordered(merged, additions, before, key)


def _element_type(*lists: list[Any]) -> type:
    kinds = {type(element) for elements in lists for element in elements}
    if list in kinds:
        raise ApiError("the server rejected our request due to an error in our request", code=422, reason="Invalid")
    if len(kinds) > 1:
        raise _problem(f"list element types are not identical: {go_text(list(lists))}")
    return kinds.pop()


def _apply_directives(current: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Take the `$patch` elements out of a list patch; returns what they leave of the current list, and the rest."""
    replace = False
    rest = []
    deleted: set[Any] = set()
    for element in patch:
        if PATCH not in element:
            rest.append(element)
        elif element[PATCH] == "delete":
            deleted.add(_identity(element, key))
        elif element[PATCH] == "replace":
            replace = True
        elif element[PATCH] == "merge":
            raise _problem("merging lists cannot yet be specified in the patch")
        else:
            raise _problem(f"unknown patch type: {go_text(element[PATCH])} in map: {go_text(element)}")
    # The replacing list is final: nothing is merged into it any more.
    if replace:
        return rest, []
    return [e for e in current if _comparable(e.get(key)) not in deleted] if deleted else current, rest


def _ordered(merged: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """Elements named by `order` in that order, the others in the order of `before`, interleaved as before.

    An element of the one sort comes first if `before` holds both and has it so; else the ordered one does.
    """
    wanted = {_identity(e, key): i for i, e in reversed(list(enumerate(order)))}
    previous = {_identity(e, key): i for i, e in reversed(list(enumerate(before)))}
    named = [e for e in merged if _identity(e, key) in wanted]
    others = [e for e in merged if _identity(e, key) not in wanted]
    named.sort(key=lambda e: wanted[_identity(e, key)])
    others.sort(key=lambda e: previous.get(_identity(e, key), len(previous)))
    result: list[Any] = []
    rest = iter(named)
    pending = next(rest, None)
    for element in others:
        place = previous.get(_identity(element, key), -1)
        while pending is not None and not 0 <= place < previous.get(_identity(pending, key), -1):
            result.append(pending)
            pending = next(rest, None)
        result.append(element)
    return [*result, *([] if pending is None else [pending, *rest])]


def go_text(value: Any) -> str:
    """A JSON value as Go's `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{go_text(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
