"""LISTEN: small HTTP servers for metrics and probes, bound to loopback unless told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.serving.address import OFF, Address, parse_address
    from kopylite.serving.plan import servers_of
    from kopylite.serving.postserver import PostHandler, PostServer
    from kopylite.serving.probes import Check, guarded, probe, wants
    from kopylite.serving.routes import Answer, Query, RouteHandler
    from kopylite.serving.server import HttpServer
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.serving.address": "OFF Address parse_address",
            "kopylite.serving.plan": "servers_of",
            "kopylite.serving.postserver": "PostHandler PostServer",
            "kopylite.serving.probes": "Check guarded probe wants",
            "kopylite.serving.routes": "Answer Query RouteHandler",
            "kopylite.serving.server": "HttpServer",
        },
    )

__all__ = [
    "OFF",
    "Address",
    "Answer",
    "Check",
    "HttpServer",
    "PostHandler",
    "PostServer",
    "Query",
    "RouteHandler",
    "guarded",
    "parse_address",
    "probe",
    "servers_of",
    "wants",
]
