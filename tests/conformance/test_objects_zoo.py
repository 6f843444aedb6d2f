"""The model zoo before each API server: it takes the CRDs, and it judges objects as pydantic does."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopylite.client import Client
from kopylite.crds import SchemaWarning
from kopylite.crds.crd import crd_of, crds_of
from kopylite.errors import DecodeError, Invalid
from kopylite.objects import Kind, Unstructured, adapter_of
from kopylite.testing import Cluster as ControlPlane
from tests.instances import odd, valid
from tests.sizes import examples
from tests.zoo import GROUP, LOOSE, ZOO, Cluster, Full, FullV2, spec_schemas

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
KINDS = {kind.__name__: kind for kind in ZOO}
SCHEMAS = spec_schemas()
# The server checks what Python does not: CEL rules, and that an embedded object has apiVersion and kind.
STRICTER_ON_THE_SERVER = {"Ruled", "Embedded"}
EXAMPLES = settings(max_examples=examples(25), derandomize=True, suppress_health_check=list(HealthCheck))


class Zoo:
    """The zoo on a server, to be called from synchronous tests."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def create(self, obj: Any, *, dry_run: bool = False) -> Any:
        return self._portal.call(lambda: self._client.live.create(obj, dry_run=dry_run))

    def update(self, obj: Any) -> Any:
        return self._portal.call(lambda: self._client.live.update(obj))

    def get(self, kind: Any, name: str, *, namespace: str = "default") -> Any:
        return self._portal.call(lambda: self._client.live.get(kind, name, namespace=namespace))

    def delete(self, obj: Any) -> None:
        self._portal.call(lambda: self._client.live.delete(obj))

    def accepts(self, obj: Unstructured) -> bool:
        try:
            self.create(obj, dry_run=True)
        except Invalid:
            return False
        return True


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.realserver)])
def zoo(request: pytest.FixtureRequest) -> Iterator[Zoo]:
    cluster: ControlPlane = request.getfixturevalue(f"{request.param}_cluster")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        crds = crds_of([*ZOO, Full, FullV2, Cluster])
    with start_blocking_portal() as portal:
        portal.call(lambda: cluster.install_crds(*crds, timeout=120))
        with portal.wrap_async_context_manager(cluster.client()) as client:
            yield Zoo(portal, client)


def animal(kind: str, spec: Any) -> Unstructured:
    return Unstructured(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": kind,
            "metadata": {"generateName": "animal-", "namespace": "default"},
            "spec": spec,
        }
    )


def fits_python(obj: Unstructured) -> bool:
    try:
        adapter_of(KINDS[obj.kind]).decode(json.dumps(obj).encode())
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize("kind", [*ZOO, Cluster], ids=lambda kind: str(kind.__name__))
def test_the_server_keeps_the_crd_as_it_was_sent(zoo: Zoo, kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        crd = crd_of(kind)
    stored = zoo.get(CRD, crd["metadata"]["name"], namespace="")
    assert stored["spec"].pop("conversion") == {"strategy": "None"}
    assert stored["spec"] == crd["spec"]
    assert [c for c in stored["status"]["conditions"] if c["type"] == "NonStructuralSchema"] == []


def test_the_server_keeps_a_crd_with_two_versions_and_all_options(zoo: Zoo) -> None:
    stored = zoo.get(CRD, "fulls.zoo.example.com", namespace="")
    stored["spec"].pop("conversion")
    assert stored["spec"] == crd_of(Full, FullV2)["spec"]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - STRICTER_ON_THE_SERVER))
def test_what_the_schema_allows_both_accept(zoo: Zoo, kind: str) -> None:
    @EXAMPLES
    @given(spec=valid(SCHEMAS[kind]))
    def check(spec: Any) -> None:
        obj = animal(kind, spec)
        assert zoo.accepts(obj)
        assert kind in LOOSE or fits_python(obj)

    check()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - STRICTER_ON_THE_SERVER))
def test_the_server_and_python_agree_on_right_and_wrong(zoo: Zoo, kind: str) -> None:
    @EXAMPLES
    @given(spec=odd(SCHEMAS[kind]))
    def check(spec: Any) -> None:
        obj = animal(kind, spec)
        in_python = fits_python(obj)
        on_server = zoo.accepts(obj)
        if kind in LOOSE:
            assert on_server or not in_python
        else:
            assert on_server == in_python

    check()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - STRICTER_ON_THE_SERVER - LOOSE))
def test_reading_and_writing_back_changes_nothing(zoo: Zoo, kind: str) -> None:
    @settings(EXAMPLES, max_examples=5)
    @given(spec=valid(SCHEMAS[kind]), data=st.data())
    def check(spec: Any, data: st.DataObject) -> None:
        sent = adapter_of(KINDS[kind]).decode(json.dumps(animal(kind, spec)).encode())
        created = zoo.create(sent)
        try:
            assert zoo.update(created).resource_version == created.resource_version
        finally:
            zoo.delete(created)

    check()


def test_a_typed_update_keeps_what_the_model_does_not_know(zoo: Zoo) -> None:
    stored = zoo.create(animal("OpenFields", {"known": "a", "unknown": {"deep": [1, None, 2**53 + 1]}}))
    typed = zoo.get(KINDS["OpenFields"], stored.name)
    typed.spec.known = "b"
    zoo.update(typed)
    assert zoo.get(Kind(stored.api_version, stored.kind), stored.name).spec == {
        "known": "b",
        "unknown": {"deep": [1, None, 2**53 + 1]},
    }


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_integers_of_64_bits_stay_exact(zoo: Zoo, number: int) -> None:
    created = zoo.create(animal("Integers", {"plain": number}))
    typed = zoo.get(KINDS["Integers"], created.name)
    assert typed.spec.plain == number
    typed.spec.even = 4
    assert zoo.update(typed).spec.plain == number
