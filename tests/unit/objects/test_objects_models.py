from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from kubernetes_asyncio import client

from kopylite.errors import DecodeError, RegistrationError
from kopylite.objects import Kind, ObjectKey, adapter_of, builtin_kinds, key_of, kind_of, meta_of
from kopylite.objects.models import is_client_model
from kopylite.objects.reading import bytes_of

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "ns", "creationTimestamp": "2026-01-31T12:00:00Z", "labels": {"a": "b"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "x",
                        "ports": [{"containerPort": 80}],
                        "livenessProbe": {"httpGet": {"port": "http"}},
                        "resources": {"limits": {"cpu": "1"}},
                    }
                ]
            }
        },
    },
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("V1Pod", Kind("v1", "Pod", "pods", True)),
        ("V1Deployment", Kind("apps/v1", "Deployment", "deployments", True)),
        (
            "V2HorizontalPodAutoscaler",
            Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True),
        ),
        ("CoreV1Event", Kind("v1", "Event", "events", True)),
        ("EventsV1Event", Kind("events.k8s.io/v1", "Event", "events", True)),
        ("V1ClusterRole", Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False)),
    ],
)
def test_a_class_is_the_kind_that_it_is_named_after(name: str, kind: Kind) -> None:
    assert kind_of(getattr(client, name)) == kind


@pytest.mark.parametrize("name", ["V1PodSpec", "V1PodList", "V1ObjectMeta", "VersionInfo"])
def test_a_class_of_a_part_is_no_kind(name: str) -> None:
    with pytest.raises(RegistrationError, match="no kind of the Kubernetes API"):
        adapter_of(getattr(client, name))


def test_every_stored_kind_of_the_library_is_found() -> None:
    missing = []
    for kind in builtin_kinds():
        version, group = kind.version.capitalize(), kind.group.partition(".")[0].capitalize() or "Core"
        names = [f"{version}{kind.kind}", f"{group}{version}{kind.kind}"]
        classes = [getattr(client, name) for name in names if hasattr(client, name)]
        if classes and kind not in [kind_of(cls) for cls in classes]:
            missing.append(kind)
    assert missing == []


def test_objects_are_read_into_the_librarys_classes() -> None:
    deployment = adapter_of(client.V1Deployment).decode(json.dumps(DEPLOYMENT).encode())
    container = deployment.spec.template.spec.containers[0]
    assert isinstance(container, client.V1Container)
    assert container.liveness_probe.http_get.port == "http"
    assert deployment.metadata.creation_timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert key_of(deployment) == ObjectKey("ns", "web")
    assert meta_of(deployment) == DEPLOYMENT["metadata"]


def test_what_was_read_is_written_back_with_what_the_class_does_not_know() -> None:
    document = json.loads(json.dumps(DEPLOYMENT))
    document["spec"]["template"]["spec"]["containers"][0]["fieldOfTheFuture"] = {"a_b": [1, None]}
    document["metadata"]["managed"] = 2**53 + 1
    adapter = adapter_of(client.V1Deployment)
    deployment = adapter.decode(json.dumps(document).encode())
    assert adapter.encode(deployment) == document
    deployment.spec.replicas = 5
    document["spec"]["replicas"] = 5
    assert adapter.encode(deployment) == document


def test_a_hand_made_object_is_written_in_wire_form() -> None:
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=client.V1PodSpec(containers=[]))
    assert adapter_of(client.V1Pod).encode(pod) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": []},
    }


def test_nulls_count_as_absent() -> None:
    pod = adapter_of(client.V1Pod).decode(b'{"metadata":null,"spec":{"containers":null}}')
    found: list[object] = [pod.metadata, pod.spec.containers]  # the client's own types say that they are there
    assert found == [None, None]
    assert key_of(pod) == ObjectKey("", "")


def test_micro_times_have_six_digits_and_times_have_none() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    lease = client.V1Lease(
        metadata=client.V1ObjectMeta(name="l", creation_timestamp=noon.replace(microsecond=5)),
        spec=client.V1LeaseSpec(renew_time=noon),
    )
    wire = adapter_of(client.V1Lease).encode(lease)
    assert wire["spec"]["renewTime"] == "2026-01-31T12:00:00.000000Z"
    assert wire["metadata"]["creationTimestamp"] == "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"spec": {"containers": [{"name": 5}]}}, r"spec\.containers\[0\]\.name: expected a string"),
        ({"spec": {"containers": "x"}}, r"spec\.containers: expected a list"),
        ({"spec": {"nodeSelector": []}}, r"spec\.nodeSelector: expected a map"),
        ({"spec": []}, r"spec: expected an object"),
        ({"spec": {"priority": "high"}}, r"spec\.priority: expected an integer"),
        ({"spec": {"hostNetwork": 1}}, r"spec\.hostNetwork: expected a boolean"),
        ({"status": {"startTime": "noon"}}, r"status\.startTime: expected an RFC 3339 time"),
        ({"spec": {"priority": True}}, r"spec\.priority: expected an integer"),
    ],
)
def test_an_object_that_does_not_fit_is_named_with_the_field(document: Any, field: str) -> None:
    raw = json.dumps({"metadata": {"name": "p", "namespace": "ns"}, **document}).encode()
    with pytest.raises(DecodeError, match=f"Pod ns/p does not fit its model: {field}"):
        adapter_of(client.V1Pod).decode(raw)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{"])
def test_broken_text_is_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        adapter_of(client.V1Pod).decode(raw)


def test_a_class_whose_name_begins_with_its_group_is_read_as_one() -> None:
    raw = json.dumps({"webhooks": [{"name": "w", "clientConfig": {"service": {"name": "s", "new": 1}}}]}).encode()
    adapter = adapter_of(client.V1ValidatingWebhookConfiguration)
    found = adapter.decode(raw)
    assert isinstance(found.webhooks[0].client_config.service, client.AdmissionregistrationV1ServiceReference)
    assert adapter.encode(found)["webhooks"] == json.loads(raw)["webhooks"]


def test_only_models_of_the_libraries_are_models() -> None:
    class Alike:
        openapi_types: dict[str, str] = {}  # noqa: RUF012

    assert is_client_model(client.V1Pod)
    assert not is_client_model(client.ApiClient)
    assert not is_client_model(Alike)


def test_an_object_knows_the_bytes_that_it_was_read_from() -> None:
    raw = b'{"metadata":{"name":"p"}}'
    assert bytes_of(adapter_of(client.V1Pod).decode(raw)) == raw


def test_what_is_nested_too_deep_is_a_decode_error() -> None:
    part = '{"not":' * 900 + '{"type":"object"}' + "}" * 900
    raw = json.dumps({"spec": {"versions": [{"schema": {"openAPIV3Schema": 0}}]}}).replace("0", part).encode()
    with pytest.raises(DecodeError, match="nested too deep"):
        adapter_of(client.V1CustomResourceDefinition).decode(raw)


def test_a_date_is_written_as_one() -> None:
    annotations: Any = {"day": date(2026, 1, 31)}
    pod = client.V1Pod(metadata=client.V1ObjectMeta(annotations=annotations))
    assert adapter_of(client.V1Pod).encode(pod)["metadata"] == {"annotations": {"day": "2026-01-31"}}
