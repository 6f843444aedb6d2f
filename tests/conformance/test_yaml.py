"""kubectl reads what we write as the same object, and we read YAML as kubectl does; hundreds of scalars a call."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopylite.crds import crd_of
from kopylite.objects.yamlread import YamlError, read_documents
from kopylite.objects.yamlwrite import to_go_yaml, to_yaml
from tests.unit.objects.test_objects_yaml import HARD
from tests.zoo import Full

pytestmark = [pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(300)]

BATCHES = settings(max_examples=6, database=None, suppress_health_check=list(HealthCheck))
NUMERALS = st.text("0123456789._+-eExXoObBaAfF:TZ~ ", min_size=1, max_size=8)
WORDS = st.sampled_from(
    ["y", "n", "Y", "No", "on", "OFF", "true", "False", "null", "~", "=", "<<", ".inf", "1e3", "08"]
)
PUNCTUATION = st.text(" \n\t#:-'\"ab\\|>&*!%@`?,[]{}\x85\u2028\ufeff\x7f\r", max_size=12)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | NUMERALS | WORDS | PUNCTUATION


def by_kubectl(kubectl: str, data: bytes) -> list[Any]:
    """The objects that kubectl finds in a file. It asks no server, and sets a label that is taken off here."""
    command = [kubectl, "label", "--local", "-f", "-", "read=by-kubectl", "-o", "json"]
    said = subprocess.run(command, input=data, capture_output=True, timeout=60, env={"KUBECONFIG": "/dev/null"})
    assert said.returncode == 0, said.stderr.decode()
    decoder, text, found = json.JSONDecoder(), said.stdout.decode().strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        del value["metadata"]["labels"]
        found.append(value)
        text = text[end:].lstrip()
    return found


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


def test_kubectl_reads_what_we_write(kubectl: str) -> None:
    @BATCHES
    @given(st.lists(TEXTS, min_size=200, max_size=400))
    def check(texts: list[str]) -> None:
        texts = [*texts, *HARD]
        document = thing({"items": texts, "keys": dict.fromkeys(texts, "v"), "nested": [{"a": [t]} for t in texts]})
        assert by_kubectl(kubectl, to_yaml([document, document]).encode()) == [document, document]
        assert by_kubectl(kubectl, to_go_yaml(document)) == [document]

    check()


def test_kubectl_reads_a_crd_as_it_is(kubectl: str) -> None:
    crd = crd_of(Full)
    assert by_kubectl(kubectl, to_yaml([crd]).encode()) == [crd]


def test_we_read_scalars_as_kubectl_does(kubectl: str) -> None:
    head = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n"

    @BATCHES
    @given(st.lists(NUMERALS | WORDS, min_size=300, max_size=500))
    def check(scalars: list[str]) -> None:
        items = [scalar for scalar in scalars if readable(f"- {scalar}")]
        keys = {scalar: None for scalar in scalars if readable(f"{scalar}: 1")}
        text = head + "  items:\n" + "".join(f"  - {item}\n" for item in items)
        text += "  keys:\n" + "".join(f"    - {key}: 1\n" for key in keys)
        assert read_documents(text) == by_kubectl(kubectl, text.encode())

    check()


def readable(text: str) -> bool:
    """Whether it can stand among others: kubectl would refuse all for one."""
    try:
        return bool(read_documents(text))
    except YamlError:
        return False


@pytest.mark.parametrize(
    "data",
    [
        to_yaml([thing({"a": 1})]).encode("utf-16"),
        b'{"apiVersion": "e/v1",\t"kind": "A", "metadata": {"name": "a"}, "n": 1.0}{"kind": "B", "metadata": {}}',
        b"apiVersion: e/v1\nkind: A\nmetadata: {name: a}\nspec:\n  b: 2\n  <<: {b: 1}\n  c: 1\n  c: 2\n",
        b"kind: A\nmetadata: {}\na: |\n  x\n---\nkind: A\nmetadata: {}\na: |+\n  x\n\n---\n",
        b"# only a comment\n---\nkind: A\nmetadata: &m {name: a}\nother: *m\n--- # next\n---\nnull\n",
    ],
    ids=["utf-16", "json", "merges", "blocks", "documents"],
)
def test_we_read_files_as_kubectl_does(kubectl: str, data: bytes) -> None:
    assert read_documents(data) == by_kubectl(kubectl, data)
