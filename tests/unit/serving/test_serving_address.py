from __future__ import annotations

import pytest

from kopylite.errors import UsageError
from kopylite.serving import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0.0.0.0:8080", Address("0.0.0.0", 8080)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:8081", Address("::1", 8081)),
        ("off", None),
    ],
)
def test_an_address_is_host_and_port_or_off(text: str, address: Address | None) -> None:
    assert parse_address(text) == address


def test_a_missing_host_means_loopback_and_not_every_interface() -> None:
    assert parse_address(":8080") == Address("127.0.0.1", 8080)


@pytest.mark.parametrize(
    "text", ["", "8080", "0", "host", "host:", "host:http", ":65536", ":-1", "::1:80", "OFF", ":²"]
)
def test_anything_else_is_refused_with_the_forms_that_are_understood(text: str) -> None:
    with pytest.raises(UsageError, match="host:port"):
        parse_address(text)


def test_an_ipv6_address_is_written_with_brackets() -> None:
    assert str(parse_address("[::1]:8081")) == "[::1]:8081"
