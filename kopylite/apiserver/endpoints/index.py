"""/ and /index.html: the paths that there are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kopylite.apiserver.endpoints.discovery import page_not_found
from kopylite.apiserver.endpoints.version import CHECKS
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.resources.registry import Registry

PATHS = ("/", "/index.html")
_HEALTH = ("/healthz", "/livez", "/readyz")


def respond_index(request: HttpRequest, registry: Registry, documents: Iterable[str]) -> Response:
    """Answered in JSON whatever the method and the Accept header are, as upstream."""
    paths = {path for path in documents if path not in ("/openapi", *PATHS)}
    paths |= {"/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/"}
    paths |= {f"{health}/{check}" for health in _HEALTH for check in CHECKS}
    for group in registry.groups():
        root = f"/apis/{group}" if group else "/api"
        paths |= {root, *(f"{root}/{version}" for version in registry.versions(group))}
    body = msgspec.json.format(msgspec.json.encode({"paths": sorted(paths)}), indent=2)
    return Response(body=body)


def exactly(path: str, handler: Callable[[HttpRequest], Response]) -> Callable[[HttpRequest], Response]:
    """The handler for this path alone: what is below it is not there."""

    def answer(request: HttpRequest) -> Response:
        if request.path.rstrip("/") != path.rstrip("/"):
            return page_not_found()
        return handler(request)

    return answer
