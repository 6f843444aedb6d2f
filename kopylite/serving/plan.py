"""Which servers there are to be, from the addresses that the user sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kopylite.serving.address import Address, parse_address
from kopylite.serving.routes import RouteHandler

if TYPE_CHECKING:
    from kopylite.serving.server import HttpServer


def servers_of(*wanted: tuple[str, str, Mapping[str, RouteHandler]]) -> list[HttpServer]:
    """One server for each address; an address that is named twice has the routes of both.

    Args:
        wanted: what the user sets an address with, the address as text, and its routes; none for "off".

    Raises:
        UsageError: an address is none.
    """
    routes: dict[Address, dict[str, RouteHandler]] = {}
    settings: dict[Address, list[str]] = {}
    for setting, text, more in wanted:
        if (address := parse_address(text)) is not None:
            routes.setdefault(address, {}).update(more)
            settings.setdefault(address, []).append(setting)
    if not routes:
        return []
    from kopylite.serving.server import HttpServer  # 2 MiB of HTTP that a process without addresses has no use for

    return [HttpServer(address, routes[address], " and ".join(settings[address])) for address in routes]
