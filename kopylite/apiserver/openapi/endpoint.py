"""/openapi/v3 and /openapi/v2 as HTTP answers."""

from __future__ import annotations

from typing import Any

import msgspec

from kopylite.apiserver.openapi import v2_protobuf, v3_protobuf
from kopylite.apiserver.openapi.documents import OpenApi
from kopylite.apiserver.openapi.sharing import NodeSteps, joined
from kopylite.apiserver.request.negotiation import JSON, Media, preferred
from kopylite.apiserver.request.request import HttpRequest, Response

_V3, _V2 = "/openapi/v3", "/openapi/v2"
# An address that holds the document's hash may be kept for ever.
_CACHE_CONTROL = "public, immutable"
_PLAIN = "text/plain; charset=utf-8"


class OpenApiEndpoint:
    """Answers below /openapi, in steps: documents are large."""

    def __init__(self, documents: OpenApi) -> None:
        self._documents = documents

    def __call__(self, request: HttpRequest) -> Response | NodeSteps[Response]:
        path = request.path.rstrip("/")
        if path == _V2:
            return self._document(request, "")
        if path == _V3:
            # Upstream says nothing of JSON here, and takes any Accept header.
            return Response(body=Media().encode(self._documents.index()), content_type=_PLAIN)
        key = path.removeprefix(f"{_V3}/")
        if key == path or not self._documents.served(key):
            return Response(404, content_type=_PLAIN)
        return self._document(request, key)

    def _document(self, request: HttpRequest, key: str) -> NodeSteps[Response]:
        protobuf, encode = (
            (v3_protobuf.PROTOBUF, v3_protobuf.to_protobuf) if key else (v2_protobuf.PROTOBUF, v2_protobuf.to_protobuf)
        )
        # Upstream cannot say its own name: an @ has no place in a media type. It takes both.
        shown = protobuf.replace("@", ".")
        found = preferred(request, (JSON, protobuf, shown))
        if found is None:  # and no Status either
            return Response(406, content_type="", headers={"Vary": "Accept"})
        etag = f'"{self._documents.hash(key)}"'
        # Only the document of all groups goes through upstream's compressing handler.
        headers = {"ETag": etag, "Vary": "Accept" if key else "Accept-Encoding, Accept"}
        if "hash" in request.query:
            headers["Cache-Control"] = _CACHE_CONTROL
        if request.headers.get("if-none-match") == etag:
            return Response(304, headers=headers)
        if found == JSON:
            body = yield from self._documents.encoded(key, JSON, _json)
            return Response(body=body, headers=headers)
        body = yield from self._documents.encoded(key, protobuf, encode)
        return Response(body=body, content_type=shown, headers=headers)


def _json(document: dict[str, Any]) -> NodeSteps[bytes]:
    """Compact JSON; the large parts in steps."""
    parts = []
    for name, value in document.items():
        if not isinstance(value, dict):
            parts.append(_pair(name, value))
        elif name == "components":
            parts.append(msgspec.json.encode(name) + b":" + (yield from _json(value)))
        else:
            inner = yield from joined(value, _pair, b",")
            parts.append(msgspec.json.encode(name) + b":{" + inner + b"}")
    return b"{" + b",".join(parts) + b"}"


def _pair(name: str, value: Any) -> bytes:
    return msgspec.json.encode(name) + b":" + msgspec.json.encode(value)
