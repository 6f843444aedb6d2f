"""Whatever reads foreign texts takes linear time: a tenant's long text must not stop an operator.

Each parser reads an input and one of double its size; the second may take at most triple the time, or hardly any.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from kubernetes_asyncio.client import V1ConfigMap
from pydantic import BaseModel

from kopylite.codegen.models import models_of
from kopylite.codegen.names import class_name, python_name, singular
from kopylite.codegen.text import docstring, long_text
from kopylite.crds.patterns import perl_classes, re2_problem
from kopylite.errors import DecodeError, UsageError
from kopylite.objects import CustomResource, Duration, Kind, LabelSelector, Quantity, Time, adapter_of, compare_versions
from kopylite.objects.models import ClientModelAdapter
from kopylite.objects.wireformats import parse_duration, read_bytes, read_decimal
from kopylite.objects.wirevalues import wire_value
from kopylite.objects.yamlread import read_document, read_documents
from kopylite.objects.yamlwrite import to_yaml
from tests.unit.codegen.test_codegen_models import crd

SIZE = 20_000
# Below this the clock, not the parser, is measured.
NOTHING = 0.05


class Spec(BaseModel):
    size: Quantity | None = None
    timeout: Duration | None = None
    wait: timedelta | None = None
    at: Time | None = None
    data: bytes | None = None
    selector: LabelSelector | None = None


class Thing(CustomResource[Spec, None], group="linear.example.com", version="v1"):
    pass


def seconds(parse: Callable[[Any], Any], data: Any) -> float:
    best = float("inf")
    for _ in range(3):
        begun = time.thread_time()
        with suppress(ValueError, DecodeError, UsageError):
            parse(data)
        best = min(best, time.thread_time() - begun)
    return best


def typed(**spec: Any) -> bytes:
    return json.dumps({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}).encode()


def field(name: str) -> Callable[[str], Any]:
    return lambda text: adapter_of(Thing).decode(typed(**{name: text}))


def labels(text: str) -> Any:
    wire = {
        "metadata": {"name": "a", "labels": {"x": text, text: "y"}},
        "spec": {"selector": {"matchLabels": {"x": text}}},
    }
    thing = adapter_of(Thing).decode(json.dumps(wire).encode())
    assert thing.spec.selector is not None
    return thing.spec.selector.matches(thing.labels), str(thing.spec.selector)


def owners(text: str) -> Any:
    entries = [{"uid": str(n), "name": "a", "kind": "b", "apiVersion": "v1"} for n in range(len(text) // 10)]
    wire = json.dumps({"metadata": {"name": "a", "ownerReferences": entries}, "spec": {}}).encode()
    return adapter_of(Kind("a.b/v1", "Thing")).decode(wire).owner_references, adapter_of(Thing).decode(wire)


PARSERS: dict[str, Callable[[str], Any]] = {
    "duration": parse_duration,
    "quantity": Quantity,
    "decimal": read_decimal,
    "bytes": read_bytes,
    "pattern": re2_problem,
    "perl classes": perl_classes,
    "versions": lambda text: compare_versions(text, text + "1"),
    "field name": python_name,
    "class name": lambda text: class_name((text, text)),
    "singular": singular,
    "docstring": docstring,
    "long text": long_text,
    "wire value": lambda text: wire_value({"a": [text] * 10, text: text}),
    "yaml scalar": lambda text: read_document(f"a: {text}"),
    "yaml key": lambda text: read_document(f"? {text}\n: 1"),
    "yaml text": read_documents,
    "yaml written": lambda text: to_yaml([{"a": text, text: "b"}]),
    "typed quantity": field("size"),
    "typed duration": field("timeout"),
    "typed timedelta": field("wait"),
    "typed time": field("at"),
    "typed bytes": field("data"),
    "labels": labels,
    "owners": owners,
    "crd text": lambda text: models_of(crd({"type": "object", "description": text, "properties": {
        "a": {"type": "string", "pattern": text, "default": text}, text: {"type": "string"},
    }})),
}  # fmt: skip
SLOW = {"yaml written", "owners"}  # in proportion to the text, and still seconds
UNITS = ["1", "1h", "1.", "0", "a", "A", "Aa", "a-", "[", "]", "[]", "(", "((", "{1,", "\\", "\\\\", "-", ".", "a.",
         " ", "é", "1_", "a: ", "- ", "'", '"', "\n", "\n\n", "a\n", "&a ", "|\n", "# ", "a=b,", "=",
         "\u2028"]  # fmt: skip


@pytest.mark.slow  # all of them together
@pytest.mark.parametrize("parser", PARSERS)
def test_double_the_text_takes_at_most_triple_the_time(parser: str) -> None:
    parse = PARSERS[parser]
    size = SIZE // 2 if parser in SLOW else SIZE
    for unit in UNITS:
        text = unit * (size // len(unit))
        for ending in ("", "!"):
            for attempt in range(4):  # more than once where the machine is busy
                double = seconds(parse, text * 2 + ending)
                if double <= NOTHING:
                    break
                single = seconds(parse, text + ending)
                if double <= 3 * single:
                    break
                assert attempt < 3, f"{parser} of {unit!r}: {single:.3f} s, {double:.3f} s"


@pytest.mark.slow  # and a matter of time, as the one above
def test_yaml_of_many_documents_keys_and_anchors_is_linear() -> None:
    makes: list[Callable[[int], str]] = [
        lambda n: "a: 1\n---\n" * n,
        lambda n: '{"a": 1}' * n,
        lambda n: "".join(f"k{i}: {i}\n" for i in range(n)),
        lambda n: "".join(f"- &a{i} [{i}]\n- *a{i}\n" for i in range(n)),
        lambda n: "".join(f"- {{<<: {{a: {i}}}}}\n" for i in range(n)),
        lambda n: "a:\n" + "  - b\n" * n,
    ]
    for make in makes:
        single, double = seconds(read_documents, make(1500)), seconds(read_documents, make(3000))
        assert double <= max(3 * single, 0.1)


@pytest.mark.parametrize(
    "text", ["9" * 30_000, "9" * 30_000 + "h", "1h" * 30_000, "0." + "9" * 30_000 + "s", "٣h", "9999999h"]
)
def test_no_duration_is_more_than_a_documented_error(text: str) -> None:
    with suppress(ValueError):
        parse_duration(text)
    with pytest.raises(DecodeError, match=r"Thing b/a does not fit its model: spec\.timeout") as caught:
        adapter_of(Thing).decode(typed(timeout=f"{text}!"))
    assert len(str(caught.value)) < 500


def test_a_duration_has_gos_limits() -> None:
    assert parse_duration("2562047h47m16.854775807s") == timedelta(microseconds=9223372036854775)
    for text in ("2562048h", "9223372037s", "1" * 25 + "ns", "٣h", "h", ".h", "1"):
        with pytest.raises(ValueError, match=r"no duration|longer than 292 years"):
            parse_duration(text)
    assert parse_duration("1.5h.5m0000000000000000000000001s") == timedelta(minutes=90, seconds=31)


# How deep Python's C code goes differs: to a thousand on 3.11, to the end of the stack on 3.14.
EDGE = pytest.mark.skipif(sys.version_info >= (3, 12), reason="this is not too deep for newer Pythons")
DEEP = [
    pytest.param('{"a":' * 100_000 + "1" + "}" * 100_000, id="maps"),
    pytest.param("[" * 100_000 + "]" * 100_000, id="lists"),
    pytest.param('{"a":' * 1_500 + "1" + "}" * 1_500, id="1500", marks=EDGE),
]


@pytest.mark.parametrize("deep", DEEP)
def test_an_object_that_is_nested_too_deep_is_a_named_error(deep: str) -> None:
    class Free(CustomResource[dict[str, Any], None], group="deep.example.com", version="v1"):
        pass

    for adapter, field in (
        (adapter_of(Kind("a.b/v1", "Thing")), f'"spec":{{"x":{deep}}}'),
        (adapter_of(Free), f'"spec":{{"x":{deep}}}'),
        (ClientModelAdapter(V1ConfigMap), f'"data":{deep}'),
    ):
        raw = f'{{"metadata":{{"name":"a","namespace":"b"}},{field}}}'.encode()
        with pytest.raises(DecodeError, match=r"b/a is nested too deep to be read"):
            adapter.decode(raw)


def test_an_exception_of_a_users_validator_is_a_named_error() -> None:
    from pydantic import field_validator

    class Odd(BaseModel):
        size: int = 0

        @field_validator("size")
        @classmethod
        def look(cls, value: int) -> int:
            known: dict[int, int] = {}
            return known[value]

    class OddThing(CustomResource[Odd, None], group="odd.example.com", version="v1"):
        pass

    with pytest.raises(DecodeError, match=r"b/a cannot be read: its model raised KeyError"):
        adapter_of(OddThing).decode(typed(size=1))
