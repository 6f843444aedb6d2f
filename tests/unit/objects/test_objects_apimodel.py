from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pydantic import BaseModel, ValidationError

from kopylite.objects import ApiModel, Condition, CustomResource, ObjectMeta, OwnerRef, adapter_of, to_wire


class Part(ApiModel):
    part_name: str
    from_: str = ""
    price: Decimal = Decimal(0)
    took: timedelta = timedelta()


class Box(BaseModel):
    main_part: Part
    more_parts: list[Part] = []


class Shelf(CustomResource[Box, None], group="example.com", version="v1"):
    pass


def test_both_names_are_accepted_and_unknown_fields_are_kept() -> None:
    for given in ({"partName": "a", "from": "b"}, {"part_name": "a", "from_": "b"}):
        assert Part.model_validate(given) == Part(part_name="a", from_="b")
    part = Part.model_validate({"partName": "a", "colorCode": 1})
    assert to_wire(part) == {"partName": "a", "colorCode": 1}


def test_pydantics_own_methods_speak_the_wire_form() -> None:
    part = Part(part_name="a", took=timedelta(minutes=1))
    assert part.model_dump(by_alias=True, mode="json", exclude_unset=True) == {"partName": "a", "took": "1m0s"}
    assert part.model_dump(exclude_unset=True) == {"part_name": "a", "took": timedelta(minutes=1)}
    assert "partName" in Part.model_json_schema()["properties"]


def test_it_works_within_plain_models_and_kinds() -> None:
    raw = b'{"spec":{"mainPart":{"partName":"a","price":"1.50"},"moreParts":[{"partName":"b","took":"1h","x":1}]}}'
    shelf = adapter_of(Shelf).decode(raw)
    assert shelf.spec.main_part.price == Decimal("1.50")
    assert shelf.spec.more_parts[0].took == timedelta(hours=1)
    assert adapter_of(Shelf).encode(shelf)["spec"] == {
        "mainPart": {"partName": "a", "price": "1.50"},
        "moreParts": [{"partName": "b", "took": "1h0m0s", "x": 1}],
    }


def test_what_is_missing_is_named_by_its_wire_name() -> None:
    with pytest.raises(ValidationError, match="partName"):
        Part.model_validate({})


def test_metadata_reads_what_the_server_writes() -> None:
    meta = ObjectMeta.model_validate_json(
        b'{"name":"a","creationTimestamp":"2026-01-31T12:00:00Z","resourceVersion":"7","deletionGracePeriodSeconds":0,'
        b'"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}],"selfLink":"x"}'
    )
    assert meta.creation_timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert meta.owner_references == [OwnerRef(api_version="v1", kind="Pod", name="p", uid="u", controller=True)]
    assert to_wire(meta)["selfLink"] == "x"
    assert to_wire(meta)["deletionGracePeriodSeconds"] == 0


def test_a_condition_is_written_like_any_other_clients() -> None:
    condition = Condition(
        type="Ready", status="True", reason="Done", last_transition_time=datetime(2026, 1, 31, tzinfo=UTC)
    )
    assert to_wire(condition) == {
        "type": "Ready",
        "status": "True",
        "reason": "Done",
        "lastTransitionTime": "2026-01-31T00:00:00Z",
    }
    with pytest.raises(ValidationError):
        Condition(type="Ready", status="Maybe")
