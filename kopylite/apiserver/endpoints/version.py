"""/version and the health endpoints: what kind of server this claims to be, and how it is. Pure."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.errors import MethodNotAllowed, NotFound

CHECKS = ("ping", "log", "etcd", "informer-sync", "poststarthook/start-apiextensions-controllers")
OLDEST_MINOR, NEWEST_MINOR = 32, 37
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def parse_kubernetes_version(text: str) -> int:
    """The minor of "1.37", "v1.37.2" or "37". Raises ValueError for what cannot be emulated."""
    parts = text.removeprefix("v").split(".")
    digits = parts[0] if len(parts) == 1 else parts[1] if parts[0] == "1" else ""
    if not digits.isdigit() or not OLDEST_MINOR <= int(digits) <= NEWEST_MINOR:
        raise ValueError(f"Kubernetes {text!r} cannot be emulated; choose 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}")
    return int(digits)


def version_info(minor: int) -> dict[str, Any]:
    """The body of /version for an emulated minor."""
    machine = platform.machine()
    info = {
        "major": "1",
        "minor": str(minor),
        "gitVersion": f"v1.{minor}.0",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.26.0",
        "compiler": "gc",
        "platform": f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}",
    }
    if minor >= 34:
        # Newer servers say what they emulate, which may be older than what they are.
        emulation = {"emulationMajor": "1", "emulationMinor": str(minor)}
        info |= emulation | {"minCompatibilityMajor": "1", "minCompatibilityMinor": str(minor - 1)}
    return info


def respond_version(request: HttpRequest, minor: int) -> Response:
    """Raises NotFound, MethodNotAllowed, NotAcceptable."""
    if request.path.rstrip("/") != "/version":
        raise NotFound("the server could not find the requested resource")
    if request.method != "GET":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    media = accept_media(request, views=False, binary=False)
    return Response(body=media.encode(version_info(minor)), content_type=media.type)


def respond_health(request: HttpRequest, is_ready: Callable[[], bool]) -> Response:
    """/healthz, /livez and /readyz with their checks; `verbose` lists them. /readyz fails while not ready."""
    name, _, check = request.path.strip("/").partition("/")
    text = "text/plain; charset=utf-8"
    if check and check not in CHECKS:
        return Response(404, b"404 page not found\n", text)
    healthy = name != "readyz" or is_ready()
    if check or (healthy and "verbose" not in request.query):
        return Response(200, b"ok", text)
    lines = [f"[+]{known} ok" for known in CHECKS]
    lines.append(f"[{'+' if healthy else '-'}]shutdown {'ok' if healthy else 'failed: reason withheld'}")
    lines.append(f"{name} check {'passed' if healthy else 'failed'}\n")
    return Response(200 if healthy else 500, "\n".join(lines).encode(), text)
