"""Play the whole corpus against both servers."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import yaml

from kopylite.testing import Cluster, EmbeddedCluster, EnvTest
from tests.conformance.likeness.player import Answer, Player
from tests.conformance.likeness.report import Comparison, Report, compare, known_differences
from tests.conformance.likeness.script import CORPUS, Script, corpus

# A script's namespace differs between runs on nothing but its number, and is the same on both servers.
NAMESPACE = "likeness-{}"


async def run(only: str = "") -> Report:
    """Start both servers, play the scripts, compare."""
    scripts = [script for script in corpus() if only in str(script)]
    real: list[list[Answer]] = []
    embedded: list[list[Answer]] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_play, EnvTest(controllers=True), scripts, real)
        group.start_soon(_play, EmbeddedCluster(), scripts, embedded)
    comparisons: list[Comparison] = []
    for script, one, other in zip(scripts, real, embedded, strict=True):
        comparisons.extend(compare(script, one, other))
    return Report(tuple(comparisons), known_differences())


async def _play(cluster: Cluster, scripts: list[Script], answers: list[list[Answer]]) -> None:
    crds = sorted((CORPUS / "crds").glob("*.yaml"))
    async with cluster, _player(cluster) as player:
        await cluster.install_crds(*crds)
        await anyio.sleep(2)  # a real server holds creates of new kinds back for two seconds
        for number, script in enumerate(scripts):
            answers.append(await player.play(script, NAMESPACE.format(number)))


@asynccontextmanager
async def _player(cluster: Cluster) -> AsyncIterator[Player]:
    config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    headers = {"User-Agent": "likeness/1.0"}
    if "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    context = None
    if server["server"].startswith("https"):
        context = ssl.create_default_context(cadata=_decoded(server["certificate-authority-data"]))
        if "client-certificate-data" in user:
            _load_client_certificate(context, user)
    async with Player(server["server"], headers, context) as player:
        yield player


def _load_client_certificate(context: ssl.SSLContext, user: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads client certificates only from files
        file = Path(folder) / "client.pem"
        file.write_text(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
        context.load_cert_chain(file)


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()
