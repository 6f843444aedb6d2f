"""What calls cost, in units of cel-go: measured while they happen, and estimated from the sizes that a schema allows.

Pure. The tables are those of cel-go's checker/cost.go and interpreter/runtimecost.go, and of k8s.io/apiserver's
cel/library/cost.go. One table serves both: what an actual size costs, a greatest size costs at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kopylite.apiserver.schema.cel.budget import share

# Nobody knows, or too many to matter (math.MaxUint64 upstream).
UNBOUNDED = 2**64 - 1
LIST, MAP, STRUCT, CHECK = 10, 30, 40, 350_000
_REGEX = 0.25
_MAX_NAME_REGEX = 128


def bounded(cost: int) -> int:
    return min(cost, UNBOUNDED)


def size_of(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, dict)) else 1


def traversal(value: Any) -> int:
    """Of going through a value with all that it has in it."""
    if isinstance(value, (str, bytes)):
        return len(value) // 10
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(key) + traversal(inner) for key, inner in value.items())
    return 1


def _regex(sizes: Sequence[int]) -> int:
    return share(1 + sizes[0]) * share(sizes[1], _REGEX)


def _selector(sizes: Sequence[int]) -> int:
    return LIST + share(sizes[1]) + share(sizes[1], 0.5) * (LIST + STRUCT)


def _once(sizes: Sequence[int]) -> int:
    return share(sizes[0])


def _twice(sizes: Sequence[int]) -> int:
    return share(sizes[0], 0.2)


def _product(sizes: Sequence[int]) -> int:
    """Of those that compare each element with each: stricter than upstream's 1, which says nothing of the work."""
    return 1 + sizes[0] * sizes[-1] // 10


# By function: from the sizes of the operands, the receiver first. What is not here costs 1.
CALLS: dict[str, Callable[[Sequence[int]], int]] = {
    "matches": _regex, "find": _regex, "findAll": _regex,
    "contains": lambda sizes: share(sizes[0]) * share(sizes[1]),
    "startsWith": lambda sizes: share(sizes[1]), "endsWith": lambda sizes: share(sizes[1]),
    "isSorted": _once, "sum": _once, "max": _once, "min": _once, "indexOf": _once, "lastIndexOf": _once,
    "url": _once, "isURL": _once, "lowerAscii": _once, "upperAscii": _once, "substring": _once, "trim": _once,
    "replace": _twice, "split": _twice, "format": _once, "strings.quote": _once, "bytes": _once,
    "cidr": _once, "ip": _once, "isIP": _once, "isCIDR": _once, "ip.isCanonical": _twice,
    "containsIP": lambda sizes: 4 + share(sizes[1]), "containsCIDR": lambda sizes: 7 + share(sizes[1]),
    "quantity": _once, "isQuantity": _once, "semver": _once, "isSemver": _once, "jsonpatch.escapeKey": _once,
    "validate": lambda sizes: share(1 + sizes[1]) * share(_MAX_NAME_REGEX, _REGEX),
    "check": lambda sizes: CHECK, "fieldSelector": _selector, "labelSelector": _selector,
    "distinct": _product, "sets.contains": _product, "sets.equivalent": _product, "sets.intersects": _product,
    "sort": lambda sizes: 1 + sizes[0], "flatten": lambda sizes: 1 + sizes[0], "reverse": lambda sizes: 1 + sizes[0],
    "slice": lambda sizes: 1 + sizes[0],
}  # fmt: skip
# Those that go through all elements, whatever is in them.
TRAVERSING = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
# The result of these is as long as what they are given.
_KEEPS_SIZE = frozenset(
    {
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "split",
        "find",
        "findAll",
        "sort",
        "reverse",
        "slice",
        "distinct",
    }
)


def operator_cost(operator: str, a: int, b: int, *, text: bool) -> int:
    """Of a binary operator; `text`: on strings or bytes."""
    if operator == "in":
        return b
    if operator in ("==", "!="):
        return share(min(a, b))
    if not text:
        return 1
    return share(a + b) if operator == "+" else share(min(a, b))


def call_cost(function: str, sizes: Sequence[int]) -> int:
    cost = CALLS.get(function)
    return bounded(cost(sizes)) if cost is not None and sizes else 1


def result_size(function: str, sizes: Sequence[int]) -> int:
    """The greatest size of what a call gives; UNBOUNDED if it may be anything."""
    if function in _KEEPS_SIZE:
        return sizes[0]
    if function == "replace" and len(sizes) >= 3:
        return bounded((sizes[0] + 1) * max(1, sizes[2]))
    return UNBOUNDED
