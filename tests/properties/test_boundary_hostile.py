"""For any bytes at all, whatever parses them gives a value or the error that it promises, in linear time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from kopylite.boundary import depth, elements, members
from kopylite.cache.record import Record, RecordDecoder
from kopylite.client import Client, Resources
from kopylite.client.codec import check_kind, decode_change, decode_event, decode_identity, decode_list, decode_object
from kopylite.client.retries import retry_after
from kopylite.client.transport import ApiResponse, ApiStream
from kopylite.client.verbs import ApiRequest
from kopylite.errors import ApiError, DecodeError, KopyliteError, StreamBroken, api_error
from kopylite.objects import CustomResource, Kind, adapter_of
from tests.hostile import every, hostile
from tests.sizes import examples

pytestmark = pytest.mark.slow  # all of them together

OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 1,
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "finalizers": ["f"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}],
        "managedFields": [{"manager": "m"}],
    },
    "spec": {"size": 1, "items": ["x"]},
}
LIST = {"kind": "ThingList", "metadata": {"resourceVersion": "9", "continue": "c"}, "items": [OBJECT]}
EVENT = {"type": "ADDED", "object": OBJECT}
STATUS = {
    "kind": "Status",
    "status": "Failure",
    "code": 422,
    "reason": "Invalid",
    "message": "no",
    "details": {"name": "a", "uid": "u", "retryAfterSeconds": 3, "causes": [{"reason": "R", "field": "f"}]},
}
ERROR = {"type": "ERROR", "object": STATUS}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8", "annotations": {"a": "b"}}}}
DISCOVERY = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "things", "kind": "Thing", "namespaced": True},
        {"name": "things/status", "kind": "Thing", "namespaced": True},
    ],
}
THING = Kind("example.com/v1", "Thing", "things", namespaced=True)


class Spec(BaseModel):
    size: int = 0
    items: list[str] = Field(default_factory=list)

    @field_validator("size")
    @classmethod
    def fails_on_zero(cls, size: int) -> int:
        return 1 // size and size


class Thing(CustomResource[Spec, None], group="example.com", version="v1"):
    pass


Parser = Callable[[bytes], object]
PARSERS: dict[str, tuple[Parser, Any, type[Exception]]] = {
    "event": (decode_event, EVENT, StreamBroken),
    "list": (lambda body: decode_list(body, THING), LIST, StreamBroken),
    "identity": (decode_identity, OBJECT, StreamBroken),
    "kind": (lambda body: check_kind(body, "Thing"), OBJECT, KopyliteError),
    "object": (decode_object, OBJECT, StreamBroken),
    "answer to a write": (lambda body: decode_change(body, of_delete=False), OBJECT, StreamBroken),
    "answer to a delete": (lambda body: decode_change(body, of_delete=True), STATUS, StreamBroken),
    "frame": (RecordDecoder(THING).frame, EVENT, StreamBroken),
    "error frame": (RecordDecoder(THING).frame, ERROR, StreamBroken),
    "bookmark": (RecordDecoder(THING).frame, BOOKMARK, StreamBroken),
    "page": (RecordDecoder(THING).page, LIST, StreamBroken),
    "metadata page": (RecordDecoder(THING, metadata_only=True).page, LIST, StreamBroken),
    "unstructured": (adapter_of(THING).decode, OBJECT, DecodeError),
    "model": (adapter_of(Thing).decode, OBJECT, DecodeError),
    "Status": (lambda body: api_error(422, body), STATUS, AssertionError),
    "members": (members, OBJECT, ValueError),
    "elements": (elements, [OBJECT], ValueError),
}


def check(name: str, body: bytes) -> None:
    parse, _, documented = PARSERS[name]
    failure: Exception | None = None
    value: object = None
    try:
        value = parse(body)
    except documented as error:
        failure = error
    if isinstance(failure, KopyliteError):
        assert len(str(failure)) < 5000
        str(failure).encode()
        assert failure.__cause__ is None
    if isinstance(value, ApiError):
        str(value).encode()
        assert value.retry_after is None or 0 < value.retry_after <= 3600


@pytest.mark.parametrize("name", PARSERS)
def test_each_odd_value_in_each_place_is_a_value_or_the_documented_error(name: str) -> None:
    for body in every(PARSERS[name][1]):
        check(name, body)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_any_bytes_are_a_value_or_the_documented_error(name: str, data: st.DataObject) -> None:
    check(name, data.draw(hostile(PARSERS[name][1])))


@given(hostile(STATUS), st.text(max_size=30))
def test_the_wait_that_a_server_asks_for_is_bounded(body: bytes, header: str) -> None:
    for headers in ({}, {"Retry-After": header}, {"Retry-After": "9" * 400}):
        wait = retry_after(headers, body)
        assert wait is None or 0 <= wait <= 3600


class Answers:
    """A transport that gives one answer to everything but discovery."""

    def __init__(self, status: int, body: bytes) -> None:
        self.response = ApiResponse(status, {}, body)

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        return self.response

    def stream(self, request: ApiRequest) -> AbstractAsyncContextManager[ApiStream]:
        raise NotImplementedError


async def calls(status: int, body: bytes) -> None:
    """Each verb of a client ends with a value or with an error of kopylite, whatever the answer is."""
    client = Client(Answers(status, body))
    desired: Mapping[str, Any] = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    for kind in (THING, Thing):
        for call in (
            lambda kind=kind: client.get(kind, "a", namespace="ns"),
            lambda kind=kind: client.find(kind, "a", namespace="ns"),
            lambda kind=kind: client.list(kind),
            lambda kind=kind: client.delete(kind, "a", namespace="ns"),
            lambda kind=kind: client.patch(kind, "a", {"spec": {}}, namespace="ns"),
        ):
            try:
                await call()
            except KopyliteError as error:
                str(error).encode()
    with suppress(KopyliteError):
        await client.create(adapter_of(THING).decode(json.dumps(desired).encode()))


@pytest.mark.parametrize("status", [200, 422, 503])
async def test_every_verb_of_a_client_survives_each_odd_answer(status: int) -> None:
    # LIST stops a paging client by a continue token that is never "": its answers are without one.
    last = {**LIST, "metadata": {"resourceVersion": "9"}}
    for valid in (STATUS, {**OBJECT, "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}, last):
        for body in [*every(valid)][::7]:
            if b'"continue"' not in body:
                await calls(status, body)


async def test_discovery_gives_the_kind_or_a_documented_error_and_never_takes_unreadable_for_absent() -> None:
    for body in every(DISCOVERY):
        try:
            found = await Resources(Answers(200, body)).find(Kind("example.com/v1", "Thing"))
        except KopyliteError:
            continue
        assert found.plural in ("things", "text")
    odd = {**DISCOVERY, "resources": [{"name": 7, "kind": "Thing"}, *DISCOVERY["resources"]]}
    found = await Resources(Answers(200, json.dumps(odd).encode())).find(Kind("example.com/v1", "Thing"))
    assert (found.plural, found.namespaced) == ("things", True)
    unclear = {**DISCOVERY, "resources": [{"name": 7, "kind": "Thing", "namespaced": True}]}
    for body in (json.dumps(unclear).encode(), b"{}", b'{"ok":true}', b"[]"):
        with pytest.raises(StreamBroken, match=r"APIResourceList|not clear"):
            await Resources(Answers(200, body)).find(Kind("example.com/v1", "Thing"))


def test_what_a_status_says_in_an_odd_way_counts_as_not_said() -> None:
    error = api_error(409, json.dumps({**STATUS, "details": "text", "code": True, "message": ["m"]}).encode())
    assert (error.code, error.details, error.causes, error.message) == (409, {}, (), "Invalid")
    error = api_error(500, json.dumps({**STATUS, "details": {"causes": "x", "retryAfterSeconds": 1e300}}).encode())
    assert (error.causes, error.retry_after) == ((), 3600.0)


# Newer Pythons' C code goes deeper than a thousand, and then there is nothing wrong with it.
@pytest.mark.parametrize("levels", [1_100 if sys.version_info < (3, 12) else 200_000, 100_000])
def test_an_object_that_is_too_deep_is_named_in_the_error_of_its_reading(levels: int) -> None:
    body = json.dumps({**OBJECT, "spec": "@"}).encode().replace(b'"@"', b"[" * levels + b"]" * levels)
    for kind in (THING, Thing):
        with pytest.raises(DecodeError, match=r"^Thing\S* ns/a is nested too deep") as caught:
            adapter_of(kind).decode(body)
        assert caught.value.object is not None
        assert (caught.value.object.name, caught.value.object.resource_version) == ("a", "7")
    assert decode_identity(body)[1].name == "a"
    assert decode_change(body, of_delete=False).identity.resource_version == "7"
    assert depth(body) == levels + 1


def test_a_validator_that_fails_in_its_own_way_is_named_with_its_line() -> None:
    body = json.dumps({**OBJECT, "metadata": {"name": "a"}, "spec": {"size": 0}}).encode()
    with pytest.raises(
        DecodeError,
        match=r"Thing a cannot be read: its model raised ZeroDivisionError at .*test_boundary_hostile\.py:\d+",
    ):
        adapter_of(Thing).decode(body)


@pytest.mark.parametrize("name", ["frame", "page", "unstructured", "members"])
def test_the_time_to_refuse_a_text_grows_as_its_length(name: str) -> None:
    """Counted in brackets looked at, by their number: a text of twice the length may not take four times as long."""
    import time

    def seconds(levels: int) -> float:
        deep = json.dumps({**PARSERS[name][1], "more": "@"}).encode().replace(b'"@"', b'[{"a":' * levels)
        began = time.process_time()
        check(name, deep)
        return time.process_time() - began

    seconds(1000)
    assert min(seconds(200_000) for _ in range(2)) < 6 * max(min(seconds(100_000) for _ in range(2)), 0.01)


def test_a_record_of_odd_metadata_can_still_be_asked_for_its_annotations() -> None:
    record = RecordDecoder(THING).frame(
        json.dumps({"type": "ADDED", "object": {**OBJECT, "metadata": {"name": "a", "annotations": [1]}}}).encode()
    )[1]
    assert isinstance(record, Record)
    assert record.annotations() == {}
