"""Warnings about objects that the server accepts, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.builtin import warnings

Object = dict[str, Any]


def container(name: str = "a", **fields: Any) -> Object:
    return {"name": name, "image": "x", "resources": {}, **fields}


def warned(spec: Object, name: str = "p") -> list[str]:
    return warnings.pod({"metadata": {"name": name}, "spec": {"containers": [container()], **spec}}, None)


def test_an_ordinary_pod_gives_no_warning_and_an_update_never_does() -> None:
    assert warned({}) == []
    assert warnings.pod({"metadata": {"name": "a.b"}, "spec": {}}, {}) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"topologySpreadConstraints": [{}]},
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
        (
            {"volumes": [{"name": "v", "glusterfs": {}}]},
            "spec.volumes[0].glusterfs: deprecated in v1.25, non-functional in v1.26+",
        ),
        ({"imagePullSecrets": [{}]}, 'spec.imagePullSecrets[0].name: invalid empty name ""'),
        ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, 'spec.imagePullSecrets[1].name: duplicate name "a"'),
        (
            {"containers": [container(resources={"requests": {"memory": "100m"}})]},
            (
                "spec.containers[0].resources.requests[memory]: "
                'fractional byte value "100m" is invalid, must be an integer'
            ),
        ),
        (
            {"containers": [container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])]},
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        ),
        (
            {"terminationGracePeriodSeconds": -4},
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ),
    ],
)
def test_a_pod_is_warned_of(spec: Object, text: str) -> None:
    assert warned(spec) == [text]


def test_a_variable_may_extend_its_earlier_definition() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A):2"}]
    assert warned({"containers": [container(env=variables)]}) == []


def test_ports_that_meet_are_named_with_each_other() -> None:
    port = {"containerPort": 80, "protocol": "TCP"}
    same = [container("a", ports=[port, port])]
    assert warned({"containers": same}) == [
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"
    ]
    overlapping = [container("a", ports=[port]), container("b", ports=[{**port, "hostPort": 8080}])]
    assert warned({"containers": overlapping}) == [
        "spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]"
    ]


def test_a_name_that_makes_bad_host_names() -> None:
    (text,) = warned({}, "a.b")
    assert text == (
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    )
    deployment = {"metadata": {"name": "a.b"}, "spec": {"template": {"spec": {}}}}
    warn = warnings.workload("spec", "template")
    assert "this is used in Pod names and hostnames" in warn(deployment, None)[0]
    assert warn(deployment, deployment) == []


def test_services_are_warned_of_what_their_type_ignores() -> None:
    assert warnings.service({"spec": {"type": "ClusterIP", "externalName": "a.b"}}, None) == [
        'spec.externalName is ignored when spec.type is not "ExternalName"'
    ]
    headless = {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP"}
    assert warnings.service({"spec": headless}, None) == ["spec.SessionAffinity is ignored for headless services"]
