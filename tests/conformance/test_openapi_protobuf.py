"""OpenAPI in protobuf: what is made of a real server's documents in JSON is its own protobuf, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from kopylite.apiserver.openapi import v2_protobuf, v3_protobuf
from kopylite.apiserver.openapi.sharing import NodeSteps
from kopylite.testing import EnvTest
from tests.conformance.likeness.run import player
from tests.unit.apiserver.conftest import finished

# One of gnostic's two writers of YAML has quotes of another kind.
STAR = (b"\x04'*'", b'\x04"*"')


@pytest.mark.realserver
@pytest.mark.parametrize(
    ("path", "accept", "encode"),
    [
        ("/openapi/v2", v2_protobuf.PROTOBUF, v2_protobuf.to_protobuf),
        ("/openapi/v3/api/v1", v3_protobuf.PROTOBUF, v3_protobuf.to_protobuf),
        ("/openapi/v3/apis/apiextensions.k8s.io/v1", v3_protobuf.PROTOBUF, v3_protobuf.to_protobuf),
        ("/openapi/v3/version", v3_protobuf.PROTOBUF, v3_protobuf.to_protobuf),
    ],
)
async def test_protobuf_of_openapi_is_the_real_servers(
    real_cluster: EnvTest, path: str, accept: str, encode: Callable[[dict[str, Any]], NodeSteps[bytes]]
) -> None:
    ours, theirs = b"", b"-"
    async with player(real_cluster) as real:
        # Definitions of earlier tests may be on their way out of the documents, and out of one before the other.
        with anyio.move_on_after(60):
            while ours != theirs:
                text = await real.read(path, "application/json")
                theirs = (await real.read(path, accept)).replace(*STAR)
                ours = finished(encode(json.loads(text)))
    assert ours == theirs
