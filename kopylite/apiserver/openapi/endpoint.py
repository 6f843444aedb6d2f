"""/openapi/v3 and /openapi/v2 as HTTP answers."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.openapi.documents import OpenApi
from kopylite.apiserver.openapi.v2 import PROTOBUF, to_protobuf
from kopylite.apiserver.request.negotiation import Media, accept_media, wants
from kopylite.apiserver.request.request import Request, Response
from kopylite.errors import NotAcceptable

_V3, _V2 = "/openapi/v3", "/openapi/v2"
# An address that holds the document's hash may be kept for ever.
_CACHE_CONTROL = "public, immutable"


class OpenApiEndpoint:
    """Answers below /openapi."""

    def __init__(self, documents: OpenApi) -> None:
        self._documents = documents
        # A document of v2 and its protobuf form.
        self._encoded: tuple[dict[str, Any] | None, bytes] = (None, b"")

    def __call__(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path == _V2:
            return self._swagger(request)
        if path == _V3:
            # Upstream says nothing of JSON here, and takes any Accept header.
            return Response(body=Media().encode(self._documents.index()), content_type="text/plain; charset=utf-8")
        key = path.removeprefix(f"{_V3}/")
        document = self._documents.document(key) if key != path else None
        if document is None:
            return Response(404, content_type="text/plain; charset=utf-8")
        etag = f'"{self._documents.hash(key)}"'
        headers = {"ETag": etag, "Vary": "Accept"}
        if "hash" in request.query:
            headers["Cache-Control"] = _CACHE_CONTROL
        if request.headers.get("if-none-match") == etag:
            return Response(304, headers=headers)
        return _accepted(request, document, headers)

    def _swagger(self, request: Request) -> Response:
        document = self._documents.swagger()
        if not wants(request, PROTOBUF):
            return _accepted(request, document, {"Vary": "Accept-Encoding, Accept"})
        if self._encoded[0] is not document:
            self._encoded = document, to_protobuf(document)
        # Upstream cannot say its own name: an @ has no place in a media type.
        return Response(body=self._encoded[1], content_type=PROTOBUF.replace("@", "."))


def _accepted(request: Request, document: dict[str, Any], headers: dict[str, str]) -> Response:
    """The document in JSON or YAML; a client that wants neither gets no Status either."""
    try:
        media = accept_media(request, views=False, binary=False)
    except NotAcceptable:
        return Response(406, content_type="text/plain; charset=utf-8", headers={"Vary": "Accept"})
    return Response(body=media.encode(document), content_type=media.type, headers=headers)
