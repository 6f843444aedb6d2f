"""No verb sends a value that would come back as another one; nothing is sent at all then."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest
from pydantic import SecretStr

from kopylite.client.cached import Client
from kopylite.errors import EncodeError
from kopylite.objects import Kind, Unstructured
from tests.unit.client.memory import MemoryServer

CM = Kind("v1", "ConfigMap")
BAD: list[Any] = [math.nan, -math.inf, iter([1]), (n for n in [1]), datetime(2026, 1, 1), SecretStr("s3cret"), object()]


def config_map(value: Any = "1") -> Unstructured:
    metadata = {"name": "a", "namespace": "shop"}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": value}})


def put(value: Any) -> Callable[[Unstructured], None]:
    def mutate(obj: Unstructured) -> None:
        obj["data"] = {"x": value}

    return mutate


VERBS: dict[str, Callable[[Any, Unstructured, Any], Awaitable[Any]]] = {
    "create": lambda client, stored, bad: client.create(config_map(bad)),
    "update": lambda client, stored, bad: client.update(Unstructured({**stored, "data": {"x": bad}})),
    "patch": lambda client, stored, bad: client.patch(stored, patch={"data": {"x": bad}}),
    "patch by name": lambda client, stored, bad: client.patch(CM, "a", {"data": {"x": bad}}, namespace="shop"),
    "apply": lambda client, stored, bad: client.apply(config_map(bad)),
}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize("verb", VERBS)
async def test_a_value_that_would_be_lost_is_not_sent(verb: str, bad: Any) -> None:
    server = MemoryServer()
    client = Client(server, field_manager="me")
    stored = await client.create(config_map())
    sent = len(server.requests)
    with pytest.raises(EncodeError, match=r"data\.x") as caught:
        await VERBS[verb](client, stored, bad)
    assert "s3cret" not in str(caught.value)
    assert len(server.writes) == 1
    assert len(server.requests) == sent


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize("verb", ["create_or_update", "create_or_patch"])
@pytest.mark.parametrize("exists", [True, False])
async def test_an_upsert_refuses_it_too(verb: str, bad: Any, exists: bool) -> None:
    server = MemoryServer()
    client = Client(server, field_manager="me")
    if exists:
        await client.create(config_map())
    with pytest.raises(EncodeError):
        await getattr(client, verb)(CM, "a", put(bad), namespace="shop")
    assert len(server.writes) == exists
