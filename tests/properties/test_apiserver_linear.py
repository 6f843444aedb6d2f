"""A text twice as long costs about twice as much, whatever reads it: parsers of strangers' texts are linear."""

# ruff: noqa: E501 - a table

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable

import pytest

from kopylite.apiserver.builtin.cron import schedule_problem
from kopylite.apiserver.builtin.data import DEFINITIONS, SCHEMAS
from kopylite.apiserver.builtin.defaults_core import pull_policy
from kopylite.apiserver.patching.strategic import strategic_merge
from kopylite.apiserver.request.bodies import from_json
from kopylite.apiserver.request.protobuf import decode
from kopylite.apiserver.request.selectors import parse_field_selector, parse_label_selector
from kopylite.apiserver.schema.cel.quantities import is_quantity, is_semver
from kopylite.apiserver.schema.cel.shapes import parse_duration, parse_time
from kopylite.apiserver.schema.formats import _FORMATS, conforms
from kopylite.apiserver.schema.jsonpath import compile_path
from kopylite.apiserver.schema.names import label_key_errors, label_value_errors, subdomain_errors
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.regex import compile_go
from kopylite.apiserver.writes.metadata import drop_duplicate_owners
from kopylite.objects.amounts import canonical

# A unit of text that is repeated, with what stands before and after it.
SHAPES = [
    ("", "9", ""), ("", "9", "x"), ("0.", "1", "x"), ("", "1h", ""), ("", "1h", "!"), ("", "a", "!"), ("", "a.", "!"), ("", "a-", ""),
    ("", "a/", "!"), ("<", "a", ""), ("", "<", "@"), ("", "-", "!"), ("", " ", "x"), ("", "a,", ""), ("", "a=b,", "!"), ("", "\\", ""),
    ("", ":", "x"), ("1.", "1.", "x"), ("@every ", "1h", "!"), ("a in (", "b,", ""), ("", "(", ""), ("", "[", ""), ("a@", "a.", "@"),
    (".", "a.", "["), ("", "['a']", "["), ("", '"', ""), ("", "1 ", "x"), ("1", "\t", "x"), ("", "µ", ""), ("", "a__", "/A"),
]  # fmt: skip
READERS: dict[str, Callable[[str], object]] = {
    "quantity": canonical, "image": pull_policy, "cron": schedule_problem, "CEL duration": parse_duration, "CEL time": parse_time,
    "CEL quantity": is_quantity, "CEL semver": is_semver, "label selector": parse_label_selector, "jsonpath": compile_path,
    "field selector": parse_field_selector, "label key": label_key_errors, "label value": label_value_errors,
    "name": subdomain_errors, "pattern": compile_go.__wrapped__, "JSON": lambda text: from_json(text.encode()),
    "nested pattern": lambda text: compile_go("^(a+)+$").matches(text),
    "protobuf": lambda text: decode(b"k8s\x00" + text.encode()),
} | {f"format {name}": lambda text, name=name: conforms(name, text) for name in _FORMATS}  # fmt: skip
LENGTH = 10_000


def cost(read: Callable[[str], object], text: str) -> float:
    """CPU seconds of the best of three, without Python's garbage collector."""
    spent = []
    gc.disable()
    try:
        for _ in range(3):
            start = time.thread_time()
            with contextlib.suppress(Exception):
                read(text)
            spent.append(time.thread_time() - start)
            if spent[-1] > 2:
                break
    finally:
        gc.enable()
    return min(spent)


@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_costs_at_most_three_times(name: str) -> None:
    for before, unit, after in SHAPES:
        # Doubled twice, so at most nine times: what is quadratic costs sixteen times.
        small, large = (before + unit * (size // len(unit)) + after for size in (LENGTH, 4 * LENGTH))
        first, second = cost(READERS[name], small), cost(READERS[name], large)
        # What takes less than 20 ms is measured too badly, and is harmless.
        assert second < max(9 * first, 0.02), f"{name} of {before}{unit}...{after}: {first:.4f} s, then {second:.4f} s"


def test_thousands_of_owners_are_compared_in_linear_time() -> None:
    def owners(count: int) -> list[dict[str, str]]:
        return [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"a{i}", "uid": f"u{i}"} for i in range(count)]

    def spent(count: int) -> float:
        given = {"ownerReferences": [*owners(count), *owners(count)]}
        start = time.thread_time()
        assert drop_duplicate_owners(given)
        assert len(given["ownerReferences"]) == count
        return time.thread_time() - start

    assert min(spent(20_000) for _ in range(3)) < 9 * min(spent(5_000) for _ in range(3)) + 0.02


def test_thousands_of_list_items_are_merged_in_linear_time() -> None:
    schema = SchemaNode(SCHEMAS["io.k8s.api.core.v1.Container"], DEFINITIONS)

    def spent(count: int) -> float:
        given = [{"name": f"a{i}", "value": "v"} for i in range(count)]
        deleted = [{"name": f"a{i}", "$patch": "delete"} for i in range(count // 2)]
        start = time.thread_time()
        assert strategic_merge({"env": given}, {"env": given}, schema) == {"env": given}
        assert len(strategic_merge({"env": given}, {"env": deleted}, schema)["env"]) == count - count // 2
        return time.thread_time() - start

    assert min(spent(8_000) for _ in range(3)) < 9 * min(spent(2_000) for _ in range(3)) + 0.02
