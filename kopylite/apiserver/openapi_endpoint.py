"""/openapi/v3 and /openapi/v2 as HTTP answers."""

from __future__ import annotations

from kopylite.apiserver.negotiation import accept_media
from kopylite.apiserver.openapi_documents import OpenApi
from kopylite.apiserver.requests import Request, Response
from kopylite.errors import NotAcceptable

_V3, _V2 = "/openapi/v3", "/openapi/v2"
# A document's address holds its hash, so that it may be kept for ever.
_CACHE_CONTROL = "public, immutable"


class OpenApiEndpoint:
    """Answers below /openapi."""

    def __init__(self, documents: OpenApi) -> None:
        self._documents = documents

    def __call__(self, request: Request) -> Response:
        """Raises NotAcceptable: v2 is served by newer servers mostly as protobuf, which is not spoken here."""
        path = request.path.rstrip("/")
        if path == _V2:
            raise NotAcceptable("406: Not Acceptable\n\nOpenAPI v2 is not served; use /openapi/v3")
        if path == _V3:
            media = accept_media(request, views=False)
            return Response(body=media.encode(self._documents.index()), content_type=media.type)
        key = path.removeprefix(f"{_V3}/")
        document = self._documents.document(key) if key != path else None
        if document is None:
            return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        etag = f'"{self._documents.hash(key)}"'
        headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": _CACHE_CONTROL}
        if request.headers.get("if-none-match") == etag:
            return Response(304, headers=headers)
        media = accept_media(request, views=False)
        return Response(body=media.encode(document), content_type=media.type, headers=headers)
