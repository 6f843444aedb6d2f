"""Play the whole corpus against both servers."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import yaml

from kopylite.testing import Cluster, EmbeddedCluster, EnvTest
from tests.conformance.likeness.kinds import scripts as kind_scripts
from tests.conformance.likeness.kinds import thinned
from tests.conformance.likeness.player import Answer, Player
from tests.conformance.likeness.report import KNOWN_KINDS, Comparison, Report, compare, identifier, known_differences
from tests.conformance.likeness.script import CORPUS, Script, corpus
from tests.webhookserver import webhook_server

# The controllers that both servers have, by the real ones' names. Others would write to the scripts' objects
# whenever they get round to it.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "resourcequota-controller",
    "validatingadmissionpolicy-status-controller",
)
CRDS = CORPUS / "crds"
# Scripts wait a lot (for watches, for new kinds to be served), so many fit beside each other.
AT_ONCE = 12


async def run(only: str = "") -> Report:
    """Start both servers, play the corpus, compare.

    Args:
        only: play just the scripts whose section or name contains it.
    """
    return await compared([script for script in corpus() if only in str(script)], known_differences())


async def run_kinds(only: str = "", share: int = 1) -> Report:
    """Likewise for the scripts that are made from the schemas of the built-in kinds.

    Args:
        share: of the requests about single fields, play one in so many.
    """
    scripts = [script for script in kind_scripts() if only in str(script)]
    fewer = [thinned(script, share) for script in scripts]
    report = await compared(fewer, known_differences(KNOWN_KINDS))
    every = {identifier(script, number) for script in kind_scripts() for number in range(1, len(script.steps) + 1)}
    return replace(report, left_out=frozenset(every - {comparison.id for comparison in report.comparisons}))


async def compared(scripts: Sequence[Script], known: Mapping[str, str]) -> Report:
    """Play scripts on both servers."""
    real: dict[str, list[Answer]] = {}
    embedded: dict[str, list[Answer]] = {}
    async with webhook_server() as hooks, anyio.create_task_group() as group:
        variables = {"hooks": hooks.url, "bundle": hooks.bundle}
        group.start_soon(_start_and_play, EnvTest(controllers=CONTROLLERS, crds=[CRDS]), scripts, real, variables)
        group.start_soon(
            _start_and_play, EmbeddedCluster(crds=[CRDS], own_warnings=False), scripts, embedded, variables
        )
    comparisons: list[Comparison] = []
    for number, script in enumerate(scripts):
        namespace = namespace_of(number)
        comparisons.extend(compare(script, namespace, real[script.name], embedded[script.name]))
    return Report(tuple(comparisons), known)


def namespace_of(number: int) -> str:
    """The namespace of the script of that number: the same on both servers."""
    return f"likeness-{number:03}"


async def _start_and_play(
    cluster: Cluster, scripts: Sequence[Script], answers: dict[str, list[Answer]], variables: Mapping[str, str]
) -> None:
    async with cluster, player(cluster) as found:
        found.variables.update(variables)
        await play(found, scripts, answers)


async def play(player: Player, scripts: Sequence[Script], answers: dict[str, list[Answer]]) -> None:
    """Play the scripts, those that are alone first, and fill `answers` by their names."""
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(number: int, script: Script) -> None:
        async with limit:
            answers[script.name] = await player.play(script, namespace_of(number))

    numbered = list(enumerate(scripts))
    for number, script in numbered:
        if script.alone:
            await one(number, script)
    async with anyio.create_task_group() as group:
        for number, script in numbered:
            if not script.alone:
                group.start_soon(one, number, script)


@asynccontextmanager
async def player(cluster: Cluster) -> AsyncIterator[Player]:
    """A player for a running cluster, as its administrator."""
    config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    authority = _decoded(server["certificate-authority-data"])
    context, stranger = (ssl.create_default_context(cadata=authority) for _ in range(2))
    if "client-certificate-data" in user:
        _load_client_certificate(context, user)
    async with Player(server["server"], headers, context, stranger) as found:
        yield found


def _load_client_certificate(context: ssl.SSLContext, user: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads client certificates only from files
        file = Path(folder) / "client.pem"
        file.write_text(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
        context.load_cert_chain(file)


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()
