"""Texts of kubectl explain, from the installed models."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kopylite.apiserver.builtin.descriptions import describe, field_descriptions


@pytest.mark.parametrize(
    ("schema", "field", "start"),
    [
        ("io.k8s.api.apps.v1.DeploymentSpec", "replicas", "Number of desired pods."),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "labels", "Map of string keys and values"),
        ("io.k8s.api.events.v1.Event", "note", "note is a human-readable description"),
        ("io.k8s.api.core.v1.Event", "message", "A human-readable description"),
        ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", "maxReplicas", "maxReplicas is the upper limit"),
    ],
)
def test_fields_have_their_texts(schema: str, field: str, start: str) -> None:
    assert field_descriptions(schema)[field].startswith(start)


def test_an_unknown_type_has_none() -> None:
    assert field_descriptions("io.example.v1.Nothing") == {}


def test_a_schema_gets_texts_and_is_left_alone() -> None:
    schema = {"type": "object", "properties": {"replicas": {"type": "integer"}, "template": {}}}
    described = describe("io.k8s.api.apps.v1.DeploymentSpec", schema)
    assert described["properties"]["replicas"]["description"].startswith("Number of desired pods.")
    assert schema["properties"] == {"replicas": {"type": "integer"}, "template": {}}
    # A custom kind may be called like a built-in one.
    assert describe("com.example.v1.DeploymentSpec", schema) == schema


def test_a_custom_kind_gets_the_texts_that_all_kinds_share() -> None:
    schema = {"type": "object", "properties": {"kind": {"type": "string"}, "metadata": {}, "spec": {}}}
    properties = describe("com.example.v1.Widget", schema)["properties"]
    assert properties["kind"]["description"].startswith("Kind is a string value")
    assert properties["metadata"]["description"].startswith("Standard object")
    assert properties["spec"] == {}


def test_the_models_are_not_imported() -> None:
    script = (
        "from kopylite.apiserver.builtin.descriptions import field_descriptions;"
        "field_descriptions('io.k8s.api.core.v1.PodSpec');"
        "import sys; sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_quotes_are_not_escaped_as_in_the_docstrings_of_the_models() -> None:
    text = field_descriptions("io.k8s.api.core.v1.LocalVolumeSource")["fsType"]
    assert '"ext4"' in text
    assert "\\" not in text
