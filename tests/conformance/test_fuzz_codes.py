"""Odd requests, the same ones to a real server and to the embedded one: the codes of the answers are the same.

Differences that stay are in fuzz_known.yaml, each with its reason. KOPYLITE_FUZZ_SEEDS=20 tries more.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from kopylite.testing import EmbeddedCluster, EnvTest
from tests.conformance.likeness.player import Player
from tests.conformance.likeness.run import player
from tests.machine import require_real_server
from tests.operators import eventually
from tests.unit.apiserver.conftest import CRDS, WIDGETS, widget_crd
from tests.unit.apiserver.fuzz import Asked, Fuzz

SEEDS = int(os.environ.get("KOPYLITE_FUZZ_SEEDS", "1"))
REQUESTS = 500
KNOWN = yaml.safe_load(Path(__file__).with_name("fuzz_known.yaml").read_text())


async def ask(server: Player, asked: Asked) -> tuple[int, str]:
    code, body = await server.ask(asked.method, asked.path, asked.headers, asked.body)
    return code, body.decode(errors="replace")


def can_be_sent(asked: Asked) -> bool:
    """Whether the client lets path and headers pass; the others are for test_apiserver_http_fuzz.py."""
    return all(text.isprintable() for text in (asked.path, *asked.headers.values()))


async def define(server: Player) -> None:
    await server.ask("POST", CRDS, {}, json.dumps(widget_crd()).encode())

    async def served() -> bool:
        return (await server.ask("GET", WIDGETS, {}, b""))[0] == 200

    await eventually(served, "widgets are served")


def is_known(codes: tuple[int, int], text: str) -> bool:
    return any(
        all(wanted in ("*", code) for wanted, code in zip(entry["codes"], codes, strict=True))
        and re.search(entry["match"], text)
        for entry in KNOWN
    )


@pytest.mark.realserver
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_odd_requests_get_the_codes_of_a_real_server(seed: int) -> None:
    require_real_server()
    fuzz, different = Fuzz(seed), []
    # Accounts are made by a controller, and there is none here.
    real = EnvTest(flags={"disable-admission-plugins": "ServiceAccount"}, start_timeout=120)
    embedded = EmbeddedCluster(controllers=False)
    async with real, embedded, player(real) as theirs, player(embedded) as ours:
        await define(theirs)
        await define(ours)
        for asked in [*fuzz.seeds(), *filter(can_be_sent, fuzz.requests(REQUESTS))]:
            answers: list[Any] = []
            with anyio.fail_after(120):
                answers = [await ask(theirs, asked), await ask(ours, asked)]
            (code, text), (found, said) = answers
            if code != found and not is_known((code, found), f"{asked} | {text} | {said}"):
                different.append(f"{code} there, {found} here: {asked}\n    {text[:300]}\n    {said[:300]}")
    assert not different, "\n".join(different)
