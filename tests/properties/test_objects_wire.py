"""Round trips: what was read is written back the same, whatever it is."""

from __future__ import annotations

import functools
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopylite.objects import Kind, Quantity, adapter_of
from kopylite.objects.quantity import PATTERN
from kopylite.objects.wireformats import format_duration, format_time, parse_duration
from kopylite.objects.wireschema import camel
from tests.instances import valid
from tests.sizes import examples
from tests.zoo import GROUP, LOOSE, ZOO, spec_schemas

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@functools.cache
def schemas() -> dict[str, Any]:
    """Made when they are asked for: of parallel processes each reads this file, and one runs it."""
    return spec_schemas()


@given(st.dictionaries(st.text(), JSON))
def test_unstructured_objects_survive_exactly(document: dict[str, Any]) -> None:
    adapter = adapter_of(Kind("example.com/v1", "Thing"))
    wire = document | {"apiVersion": "example.com/v1", "kind": "Thing"}
    assert adapter.encode(adapter.decode(json.dumps(wire).encode())) == wire


@pytest.mark.parametrize("kind", [k for k in ZOO if k.__name__ not in LOOSE], ids=lambda kind: str(kind.__name__))
def test_reading_what_was_written_gives_an_equal_object_and_the_same_text(kind: Any) -> None:
    adapter = adapter_of(kind)

    @settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
    @given(spec=valid(schemas()[kind.__name__]), extra=JSON)
    def check(spec: Any, extra: Any) -> None:
        wire = {
            "apiVersion": f"{GROUP}/v1",
            "kind": kind.__name__,
            "metadata": {"name": "a", "extra": extra},
            "spec": spec,
        }
        first = adapter.decode(json.dumps(wire).encode())
        written = adapter.encode(first)
        second = adapter.decode(json.dumps(written).encode())
        # A Time is cut to whole seconds when it is written.
        assert second == first or kind.__name__ == "Moments"
        assert json.dumps(adapter.encode(second)) == json.dumps(written)
        assert written["metadata"] == wire["metadata"]

    check()


@given(st.timedeltas(timedelta(days=-1000), timedelta(days=1000)))
def test_durations_survive(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.timezones()))
def test_times_survive(moment: datetime) -> None:
    assert datetime.fromisoformat(format_time(moment)) == moment.astimezone(UTC)


quantities = st.from_regex(PATTERN.removesuffix("$") + r"\Z", alphabet="0123456789.+-eEKMGTPikmnu").map(Quantity)


@given(quantities)
def test_the_canonical_text_is_the_same_amount_and_stays_the_same(quantity: Quantity) -> None:
    canonical = Quantity(quantity.canonical())
    assert canonical == quantity
    assert canonical.canonical() == quantity.canonical()
    assert "." not in quantity.canonical()


@given(quantities, quantities)
def test_amounts_add_up_in_any_order_and_sort_as_numbers(a: Quantity, b: Quantity) -> None:
    assert a + b == b + a
    assert (a < b) == (a.value < b.value)
    if abs(a.value) < 2**60 and abs(b.value) < 2**60:
        assert (a + b).value == a.value + b.value
        assert (a + b) - b == a
    assert (a + Quantity(Decimal(0))) == a


@given(st.from_regex(r"\A[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*\Z"))
def test_a_wire_name_keeps_every_letter_of_its_field_name(name: str) -> None:
    assert camel(name).lower() == name.replace("_", "")
    assert camel(f"{name}_") == camel(name)
    assert camel(camel(name)) == camel(name)
