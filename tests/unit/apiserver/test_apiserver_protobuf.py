from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.request.protobuf import MalformedProtobuf, decode

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

# What kubectl 1.37 sends for `kubectl create configmap a --from-literal=x=y`.
CONFIG_MAP = bytes.fromhex(
    "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a016112001a0022002a0032003800420012060a01781201791a002200"
)


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes | int | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_what_kubectl_sends_for_a_config_map() -> None:
    obj = decode(CONFIG_MAP)
    assert (obj["apiVersion"], obj["kind"], obj["data"]) == ("v1", "ConfigMap", {"x": "y"})
    assert obj["metadata"]["name"] == "a"
    assert obj["metadata"]["creationTimestamp"] is None


def test_nested_messages_inlined_structs_and_scalars() -> None:
    port = field(1, "http") + field(3, 8080)
    probe = field(1, field(2, field(1, "/ok") + field(2, field(1, 1) + field(3, "http")))) + field(4, 5)
    container = field(1, "c") + field(2, "image") + field(6, port) + field(10, probe)
    reference = field(1, field(1, "settings")) + field(2, "key")
    variable = field(1, "A") + field(3, field(3, reference))
    container += field(7, variable)
    volume = field(1, "v") + field(2, field(2, b""))
    limits = field(1, field(1, "cpu") + field(2, field(1, "500m")))
    container += field(8, limits)
    spec = field(1, volume) + field(2, container) + field(4, (1 << 64) - 1)
    obj = decode(envelope("v1", "Pod", field(2, spec)))
    assert obj["spec"]["terminationGracePeriodSeconds"] == -1
    (found,) = obj["spec"]["containers"]
    assert found["livenessProbe"] == {"httpGet": {"path": "/ok", "port": "http"}, "periodSeconds": 5}
    assert found["env"] == [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "key"}}}]
    assert found["resources"] == {"limits": {"cpu": "500m"}}
    assert obj["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_times_keep_what_their_type_keeps() -> None:
    renewed = field(1, 1_700_000_000) + field(2, 123_456_000)
    obj = decode(envelope("coordination.k8s.io/v1", "Lease", field(2, field(4, renewed))))
    assert obj["spec"]["renewTime"] == "2023-11-14T22:13:20.123456Z"


def test_bytes_become_base64() -> None:
    secret = field(2, field(1, "k") + field(2, b"\x00\x01"))
    assert decode(envelope("v1", "Secret", secret))["data"] == {"k": "AAE="}


def test_unknown_fields_are_skipped() -> None:
    raw = field(99, "later") + varint(98 << 3 | 1) + struct.pack("<d", 1.0) + varint(97 << 3 | 5) + b"abcd"
    assert decode(envelope("v1", "ConfigMap", raw)) == {"apiVersion": "v1", "kind": "ConfigMap"}


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_malformed(noise: bytes) -> None:
    for body in (noise, b"k8s\0" + noise, envelope("v1", "Pod", noise), envelope("x/v1", "Y", noise)):
        try:
            decode(body)
        except MalformedProtobuf:
            continue


@pytest.mark.parametrize("end", range(5, len(CONFIG_MAP) - 4, 3))
def test_a_cut_body_is_never_taken_for_the_whole(end: int) -> None:
    try:
        obj = decode(CONFIG_MAP[:end])
    except MalformedProtobuf:
        return
    assert obj != decode(CONFIG_MAP)


async def test_the_server_takes_built_ins_in_protobuf_and_no_custom_resources(widgets: Any) -> None:
    made = await widgets.create(CONFIG_MAPS, CONFIG_MAP, content_type="application/vnd.kubernetes.protobuf")
    assert (made["metadata"]["name"], made["data"]) == ("a", {"x": "y"})
    status, _ = await widgets.call(
        "POST",
        "/apis/example.com/v1/namespaces/default/widgets",
        CONFIG_MAP,
        content_type="application/vnd.kubernetes.protobuf",
    )
    assert status == 415
