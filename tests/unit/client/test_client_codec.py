from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from kopylite.client.codec import (
    LineSplitter,
    check_kind,
    decode_event,
    decode_identity,
    decode_list,
    decode_object,
    encode,
)
from kopylite.errors import Conflict, StreamBroken
from kopylite.objects import Kind

POD = Kind("v1", "Pod")


def test_a_line_may_come_in_pieces_and_several_in_one_chunk() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a"') == []
    assert splitter.pending == 4
    assert splitter.feed(b':1}\n{"b":2}\n\n{"c') == [b'{"a":1}', b'{"b":2}']
    assert splitter.feed(b'":3}\n') == [b'{"c":3}']
    assert splitter.feed(b'{"d":4}\n') == [b'{"d":4}']
    assert splitter.feed(b'{"e":5}\n{"f":6}\n') == [b'{"e":5}', b'{"f":6}']
    assert splitter.feed(b"\n") == []
    assert splitter.pending == 0


def test_a_character_cut_by_the_end_of_a_chunk_is_whole_in_its_line() -> None:
    line = '{"x":"Ü–🚀"}'.encode()
    splitter = LineSplitter()
    lines = [found for position in range(len(line)) for found in splitter.feed(line[position : position + 1])]
    assert lines == []
    assert splitter.feed(b"\n") == [line]


def test_a_line_of_many_megabytes_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        splitter, chunk = LineSplitter(), b"x" * 1024
        started = time.process_time()
        for _ in range(size):
            splitter.feed(chunk)
        assert len(splitter.feed(b"\n")[0]) == size * 1024
        return time.process_time() - started

    # 64 MB in 1 KB chunks: joining at each chunk would copy 2 TB.
    assert seconds(64 * 1024) < 5


def test_an_event_gives_its_type_and_the_bytes_of_its_object() -> None:
    assert decode_event(b'{"object":{"a": [1, 2]},"type":"ADDED"}') == ("ADDED", b'{"a": [1, 2]}')


@pytest.mark.parametrize("line", [b"<html>", b'{"type":"ADDED"}', b'{"type":"ADDED","object":{"a', b'{"type":"\xff"}'])
def test_a_frame_that_is_no_event_breaks_the_stream(line: bytes) -> None:
    with pytest.raises(StreamBroken, match="no watch event"):
        decode_event(line)


def test_a_list_is_cut_into_undecoded_items() -> None:
    page = decode_list(
        b'{"kind":"L","metadata":{"resourceVersion":"9","continue":"t"},"items":[{"a":1},{"b": 2}]}', POD
    )
    assert (page.resource_version, page.continue_token) == ("9", "t")
    assert [bytes(item) for item in page.items] == [b'{"a":1}', b'{"b": 2}']


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"resourceVersion":"9","continue":""},"items":null}',
        b'{"metadata":{"resourceVersion":"9","continue":null},"items":[]}',
        b'{"metadata":{"resourceVersion":"9"},"items":[]}',
    ],
)
def test_an_empty_list_may_be_null_and_the_last_page_has_no_token(body: bytes) -> None:
    page = decode_list(body, POD)
    assert (page.items, page.continue_token, page.resource_version) == ([], "", "9")


def test_a_page_of_a_proxy_is_no_list_and_is_shown_in_part() -> None:
    with pytest.raises(StreamBroken, match="<html>"):
        decode_list(b"<html>" + b"x" * 5000, POD)


@pytest.mark.parametrize(
    "body",
    [b'{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}',
     b'{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[]}'],
)  # fmt: skip
def test_a_list_of_something_else_is_no_empty_list(body: bytes) -> None:
    with pytest.raises(StreamBroken, match=r"as a list of Pod\.v1"):
        decode_list(body, POD)


@pytest.mark.parametrize(
    "head",
    [b"", b'"kind":"List","apiVersion":"v1",', b'"kind":"Odd","apiVersion":"example.com/v2",',
     b'"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",'],
)  # fmt: skip
def test_a_list_may_have_any_name_in_its_group(head: bytes) -> None:
    body = b'{%b"metadata":{"resourceVersion":"9"},"items":[]}' % head
    assert decode_list(body, Kind("example.com/v1", "Thing")).resource_version == "9"


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"<html>", b'{"kind":"Status","status":"Success"}', b'{"kind":7}',
     b'{"kind":"Secret","metadata":{"name":"a"}}', b"\xef\xbb\xbf{}"],
)  # fmt: skip
def test_what_is_no_object_of_the_kind_is_none_that_lacks_everything(body: bytes) -> None:
    with pytest.raises(StreamBroken):
        check_kind(body, "Pod")


def test_a_refusal_with_a_code_that_says_yes_is_a_refusal() -> None:
    with pytest.raises(Conflict, match="changed"):
        check_kind(b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"changed"}', "Pod")
    check_kind(b'{"kind":"Pod","x":' + b"[" * 5000 + b"]" * 5000 + b"}", "Pod")
    check_kind(b"{}", "Pod")


def test_a_broken_answer_that_may_hold_a_secret_is_not_shown() -> None:
    with pytest.raises(StreamBroken) as caught:
        decode_list(b'{"items":[{"kind":"Secret","data":{"password":"aHVzaA=="}', POD)
    assert "aHVzaA" not in str(caught.value)
    with pytest.raises(StreamBroken):
        decode_object(b"[1]")


def test_an_identity_is_read_without_the_rest() -> None:
    body = b'{"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"7"},"spec":{}}'
    kind, found = decode_identity(body)
    assert (kind, found.name, found.namespace, found.uid, found.resource_version) == ("Pod", "a", "b", "c", "7")
    with pytest.raises(StreamBroken):
        decode_identity(b"nope")


def test_dates_and_models_inside_an_object_are_encoded() -> None:
    class Part(BaseModel):
        ready_replicas: int

    assert encode({"at": datetime(2026, 1, 2, tzinfo=UTC), "part": Part(ready_replicas=1)}) == (
        b'{"at":"2026-01-02T00:00:00Z","part":{"readyReplicas":1}}'
    )
