"""LISTEN: small HTTP servers for metrics and probes, bound to loopback unless told otherwise."""

from __future__ import annotations

from kopylite.serving.address import OFF, Address, parse_address
from kopylite.serving.probes import Check, guarded, probe
from kopylite.serving.routes import Answer, Handler, Query
from kopylite.serving.server import HttpServer

__all__ = ["OFF", "Address", "Answer", "Check", "Handler", "HttpServer", "Query", "guarded", "parse_address", "probe"]
