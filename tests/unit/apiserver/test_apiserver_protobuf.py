from __future__ import annotations

import base64
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.builtin.strategies import builtin_resources
from kopylite.apiserver.request.protobuf import PROTOBUF, MalformedProtobuf, decode, encode
from kopylite.apiserver.request.protobuf.layouts import layout_of, message_name
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.clock import SYSTEM_CLOCK
from tests.conformance.likeness.frames import decode_event, without_zeros

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


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "labels": {"x": "", "a": "b"},
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "generation": 3,
    },
    "spec": {
        "terminationGracePeriodSeconds": -1,
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "m", "defaultMode": 420}}],
        "containers": [
            {
                "name": "c",
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"path": "/ok", "port": "http"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 8080}},
                "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "key"}}}],
            }
        ],
    },
}
CRD_SCHEMA = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "a"},
    "spec": {
        "group": "g",
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "a": {
                                "type": "array",
                                "items": {"type": "number", "multipleOf": 0.5},
                                "default": [1, None],
                            },
                            "b": {"additionalProperties": True, "dependencies": {"x": ["y"], "z": {"type": "string"}}},
                            "c": {"additionalProperties": {"not": {"enum": [None, "a", {"b": 1}]}}},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.mark.parametrize("obj", [POD, CRD_SCHEMA], ids=lambda obj: obj["kind"])
def test_what_is_written_reads_the_same(obj: dict[str, Any]) -> None:
    assert decode(encode(obj)) == obj


def test_times_are_written_with_what_their_type_keeps() -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "spec": {"renewTime": "1969-12-31T23:59:59.250000Z"},
    }
    assert decode(encode(lease)) == lease


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.binary()), st.integers(-(2**63), 2**63 - 1))
def test_any_text_bytes_and_number_is_written(texts: dict[str, str], blobs: dict[str, bytes], number: int) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in blobs.items()}
    metadata = {"name": "a", "generation": number, "annotations": texts}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts, "binaryData": encoded}
    wanted = {key: value for key, value in obj.items() if value != {}}
    wanted["metadata"] = {key: value for key, value in metadata.items() if value != {}}
    assert decode(encode(obj)) == wanted


def test_named_lists_of_texts_and_alpha_types_in_stable_kinds() -> None:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"attestations": {"a": ["b"]}}}
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"scheduling": policy}}
    for obj in (request, job):
        assert decode(encode(obj)) == obj


def upstream_objects() -> list[Path]:
    """Upstream's filled objects of all kinds, in the Go module cache; none where it is absent."""
    try:
        cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        cache = os.environ.get("GOMODCACHE", "")
    found = Path(cache or "/nowhere").glob("k8s.io/api@v0.37.2/testdata/HEAD/*.v[12].*.json")
    return sorted(path for path in found if not path.name.startswith("core.v1.WatchEvent"))


def test_upstreams_filled_objects_of_every_kind_read_and_write_alike() -> None:
    files = [path for path in upstream_objects() if "metrics" not in path.name and "imagepolicy" not in path.name]
    if not files:
        pytest.skip("the Go module cache does not hold k8s.io/api v0.37.2 (go mod download k8s.io/api@v0.37.2)")
    for file in files:
        wanted = without_zeros(msgspec.json.decode(file.read_bytes()))
        assert without_zeros(decode(file.with_suffix(".pb").read_bytes())) == wanted, file.name
        assert without_zeros(decode(encode(wanted))) == wanted, file.name


async def test_answers_lists_errors_and_watches_in_protobuf(api: Any) -> None:
    made = await api.config_map("a", data={"x": "y"})
    response = await api.respond("GET", f"{CONFIG_MAPS}/a", accept=PROTOBUF)
    assert (response.content_type, decode(response.body)["data"]) == (PROTOBUF, {"x": "y"})
    listed = decode((await api.respond("GET", CONFIG_MAPS, accept=PROTOBUF)).body)
    assert (listed["kind"], listed["items"][0]["metadata"]["name"]) == ("ConfigMapList", "a")
    missing = await api.respond("GET", f"{CONFIG_MAPS}/nope", accept=PROTOBUF)
    assert (missing.status, decode(missing.body)["reason"]) == (404, "NotFound")
    version = int(made["metadata"]["resourceVersion"]) - 1
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=1"
    watch = await api.respond("GET", path, accept=PROTOBUF)
    assert watch.content_type == f"{PROTOBUF};stream=watch"
    assert watch.stream is not None
    frame = await anext(watch.stream)
    await watch.stream.aclose()
    event = decode_event(frame[4:])
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert (event["type"], event["object"]["metadata"]["uid"]) == ("ADDED", made["metadata"]["uid"])


async def test_a_watch_in_json_beside_one_in_protobuf_gets_its_own_frames(api: Any) -> None:
    made = await api.config_map("a")
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={int(made['metadata']['resourceVersion']) - 1}"
    frames = []
    for accept in (PROTOBUF, "application/json", PROTOBUF):
        response = await api.respond("GET", path, accept=accept)
        frames.append(await anext(response.stream))
        await response.stream.aclose()
    assert frames[0] == frames[2] != frames[1]
    assert msgspec.json.decode(frames[1])["object"] == made


async def test_custom_resources_have_their_metadata_in_protobuf_only(widgets: Any) -> None:
    path = "/apis/example.com/v1/namespaces/default/widgets"
    await widgets.create(
        path, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    )
    for target in (path, f"{path}/w", f"{path}/w/scale", f"{path}?watch=1"):
        refused = await widgets.respond("GET", target, accept=PROTOBUF)
        assert (refused.status, decode(refused.body)["reason"]) == (406, "NotAcceptable"), target
    partial = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    found = decode((await widgets.respond("GET", f"{path}/w", accept=partial)).body)
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (
        "meta.k8s.io/v1",
        "PartialObjectMetadata",
        "w",
    )
    table = await widgets.respond("GET", path, accept=f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1")
    assert (table.status, table.content_type) == (406, "application/json")


def test_every_built_in_kind_its_list_and_its_sub_resources_have_a_message() -> None:
    environment = StrategyContext(SYSTEM_CLOCK, lambda storage: iter(()))
    connections = ("attach", "exec", "portforward", "proxy")
    for resource in builtin_resources(environment):
        names = {(resource.api_version, resource.kind)}
        if "list" in resource.verbs:
            names.add((resource.api_version, resource.list_kind))
        for sub in resource.subresources.values():
            if sub.name not in connections:
                own = f"{sub.group}/{sub.version}" if sub.group else sub.version or resource.api_version
                names.add((own, sub.kind))
        for api_version, kind in names:
            assert layout_of(message_name(api_version, kind)) is not None, (api_version, kind)
