"""Reading and writing built-in objects as Go's typed codec does."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.builtin.scalars import Reading, Undecodable
from kopylite.apiserver.builtin.strategies import CODECS

DEPLOYMENT = CODECS["io.k8s.api.apps.v1.Deployment"]


def decode(spec: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    reading = Reading()
    obj = DEPLOYMENT.decode({"metadata": {"name": "d"}, "spec": spec}, "", reading)
    return obj["spec"], reading.unknown


def container(**fields: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [fields]}}}


def test_unknown_fields_go_and_are_named_with_their_index() -> None:
    spec, unknown = decode(container(name="a", foo=1))
    assert "foo" not in spec["template"]["spec"]["containers"][0]
    assert unknown == ["spec.template.spec.containers[0].foo"]


def test_structs_that_go_always_writes_are_there() -> None:
    obj = DEPLOYMENT.decode({}, "", Reading())
    assert obj == {
        "metadata": {},
        "spec": {"selector": None, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": None}}},
        "status": {},
    }


def test_empty_values_go_where_go_omits_them_and_stay_where_it_does_not() -> None:
    spec, _ = decode({"replicas": 0, "paused": False, "minReadySeconds": 0, **container(name="", args=[], stdin=False)})
    assert spec["replicas"] == 0
    assert "paused" not in spec
    assert "minReadySeconds" not in spec
    assert spec["template"]["spec"]["containers"] == [{"name": "", "resources": {}}]


def test_pointers_keep_what_was_given() -> None:
    spec, _ = decode(container(name="a", securityContext={"runAsNonRoot": False}))
    assert spec["template"]["spec"]["containers"][0]["securityContext"] == {"runAsNonRoot": False}


def test_nulls_are_as_if_not_given() -> None:
    spec, unknown = decode({"replicas": None, "template": None})
    assert "replicas" not in spec
    assert spec["template"] == {"metadata": {}, "spec": {"containers": None}}
    assert unknown == []


def test_quantities_and_times_are_canonical() -> None:
    spec, _ = decode(container(name="a", resources={"limits": {"cpu": "1000m", "memory": 1024}}))
    assert spec["template"]["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1024"}
    lease = CODECS["io.k8s.api.coordination.v1.Lease"]
    obj = lease.decode({"spec": {"renewTime": "2026-01-01T01:00:00.500000+01:00"}}, "", Reading())
    assert obj["spec"]["renewTime"] == "2026-01-01T00:00:00.500000Z"
    obj = lease.decode({"metadata": {"creationTimestamp": "2026-01-01T01:00:00.7+01:00"}}, "", Reading())
    assert obj["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"replicas": "x"}, "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),  # noqa: E501
        ({"replicas": 1.5}, "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),  # noqa: E501
        (container(image=1), "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string"),  # noqa: E501
        (container(imagePullPolicy=1), "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.imagePullPolicy of type v1.PullPolicy"),  # noqa: E501
        ({"template": {"spec": {"containers": {}}}}, "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container"),  # noqa: E501
        (container(resources={"limits": {"cpu": "abc"}}), "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),  # noqa: E501
        (container(ports=[{"containerPort": "x"}]), "json: cannot unmarshal string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32"),  # noqa: E501
    ],
)  # fmt: skip
def test_wrong_types_give_gos_errors(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(Undecodable) as caught:
        decode(spec)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "obj", "message"),
    [
        ("core.v1.Secret", {"data": {"a": "!!"}}, "illegal base64 data at input byte 0"),
        ("core.v1.ConfigMap", {"data": {"a": 1}}, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),  # noqa: E501
        ("core.v1.ConfigMap", {"metadata": {"creationTimestamp": "xx"}}, 'parsing time "xx" as "2006-01-02T15:04:05Z07:00": cannot parse "xx" as "2006"'),  # noqa: E501
        ("coordination.v1.Lease", {"spec": {"renewTime": "2020-01-01T00:00:00.5Z"}}, 'parsing time "2020-01-01T00:00:00.5Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".5Z" as ".000000"'),  # noqa: E501
        ("core.v1.Service", {"spec": {"ports": [{"targetPort": True}]}}, "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32"),  # noqa: E501
    ],
)  # fmt: skip
def test_values_with_a_form_of_their_own_are_checked(name: str, obj: dict[str, Any], message: str) -> None:
    with pytest.raises(Undecodable) as caught:
        CODECS[f"io.k8s.api.{name}"].decode(obj, "", Reading())
    assert str(caught.value) == message


def test_decoding_twice_changes_nothing() -> None:
    once, _ = decode(container(name="a", ports=[{"containerPort": 80}], resources={"limits": {"cpu": "0.5"}}))
    again, unknown = decode(once)
    assert (again, unknown) == (once, [])
