"""No web page acts on the embedded server: not by a name of its own, not by a write across origins."""

from __future__ import annotations

from contextlib import suppress

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.apiserver.access.origins import check_no_web_page
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.errors import Forbidden

OWN = ["127.0.0.1:6443", "localhost:6443", "LOCALHOST", "[::1]:6443", "127.1.2.3", "app.localhost:1", "localhost.:1"]
FOREIGN = [
    "evil.example:6443",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "10.0.0.1",
    "[::2]",
    "a b",
    "[",
    "@",
]


@pytest.mark.parametrize("host", OWN)
def test_names_of_loopback_are_served(host: str) -> None:
    check_no_web_page("POST", {"host": host}, listening="127.0.0.1")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("host", FOREIGN)
def test_other_names_are_refused_on_loopback(host: str, method: str) -> None:
    with pytest.raises(Forbidden, match="listens on loopback only"):
        check_no_web_page(method, {"host": host}, listening="127.0.0.1")
    check_no_web_page(method, {"host": host}, listening="0.0.0.0")
    check_no_web_page(method, {"host": host, "authorization": "Bearer t"}, listening="127.0.0.1")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:8080"},
        {"origin": "null"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "Same-Site"},
        {"origin": "http://127.0.0.1:6443", "sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "WHATEVER"])
def test_a_page_of_another_origin_writes_nothing(headers: dict[str, str], method: str) -> None:
    sent = {"host": "127.0.0.1:6443", **headers}
    with pytest.raises(Forbidden, match="bearer token"):
        check_no_web_page(method, sent, listening="127.0.0.1")
    with pytest.raises(Forbidden):
        check_no_web_page(method, sent | {"authorization": "Basic YTpi"}, listening="127.0.0.1")
    check_no_web_page("GET", sent, listening="127.0.0.1")
    check_no_web_page(method, sent | {"authorization": "Bearer t"}, listening="127.0.0.1")


def test_a_page_of_its_own_origin_may_write() -> None:
    own = {"host": "127.0.0.1:6443", "origin": "http://127.0.0.1:6443", "sec-fetch-site": "same-origin"}
    check_no_web_page("POST", own, listening="127.0.0.1")


@given(st.text(), st.text(), st.text())
def test_any_headers_are_let_in_or_refused(host: str, origin: str, site: str) -> None:
    headers = {"host": host, "origin": origin, "sec-fetch-site": site}
    with suppress(Forbidden):
        check_no_web_page("POST", headers, listening="127.0.0.1")


async def test_the_server_asks_before_anything_else() -> None:
    async with ApiServer(ApiServerOptions(anonymous=True)) as server, aiohttp.ClientSession() as session:
        path = f"{server.url}/api/v1/namespaces/default/configmaps"
        body = {"metadata": {"name": "a"}}
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            async with session.post(path, json=body, headers=headers) as response:
                assert (response.status, (await response.json())["reason"]) == (403, "Forbidden")
        async with session.post(path, json=body) as response:
            assert response.status == 201
