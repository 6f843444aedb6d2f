from __future__ import annotations

import subprocess
import sys

from kopylite.serving import Answer, Query
from kopylite.serving.plan import servers_of


def echo(query: Query) -> Answer:
    return Answer(200, query.tail.encode())


async def test_an_address_that_is_named_twice_has_the_routes_of_both() -> None:
    a, b = ("--metrics-address", ":8080", {"/metrics": echo}), ("--health-address", ":8080", {"/healthz": echo})
    assert [server.paths for server in servers_of(a, b)] == [("/metrics", "/healthz")]


def test_off_is_no_server_and_loads_none() -> None:
    assert servers_of(("--metrics-address", "off", {"/metrics": echo})) == []
    program = (
        "import sys; from kopylite.manager import Manager; from kopylite.metrics import Metrics; Metrics();"
        "print({'aiohttp.web', 'prometheus_client', 'yaml'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
