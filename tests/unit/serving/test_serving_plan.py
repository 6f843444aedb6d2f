from __future__ import annotations

from kopylite.serving import Answer, Query
from kopylite.serving.plan import servers_of


def echo(query: Query) -> Answer:
    return Answer(200, query.tail.encode())


async def test_an_address_that_is_named_twice_has_the_routes_of_both() -> None:
    a, b = ("--metrics-address", ":8080", {"/metrics": echo}), ("--health-address", ":8080", {"/healthz": echo})
    assert [server.paths for server in servers_of(a, b)] == [("/metrics", "/healthz")]


def test_off_is_no_server() -> None:
    assert servers_of(("--metrics-address", "off", {"/metrics": echo})) == []
