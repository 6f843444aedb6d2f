"""How others verify service account tokens: the OpenID Connect discovery documents."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kopylite.apiserver.access.authentication import API_AUDIENCE
from kopylite.apiserver.access.signing import ALGORITHM, SigningKey
from kopylite.apiserver.request.negotiation import JSON, preferred
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.errors import MethodNotAllowed, NotAcceptable

CONFIGURATION, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_KEY_SET = "application/jwk-set+json"
_HEADERS: Final = {"Cache-Control": "public, max-age=3600"}


class OpenId:
    """Answers the two documents.

    Attributes:
        url: where this server is reached, for the address of the keys.
    """

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self.url = ""

    def __call__(self, request: HttpRequest) -> Response:
        """Raises MethodNotAllowed, NotAcceptable."""
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        if request.path.rstrip("/") == KEYS:
            return _answer(request, _KEY_SET, {"keys": [self._key.jwk()]})
        document = {
            "issuer": API_AUDIENCE,
            "jwks_uri": f"{self.url}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        return _answer(request, JSON, document)


def _answer(request: HttpRequest, content_type: str, document: Any) -> Response:
    if preferred(request, (content_type,)) is None:
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {content_type}")
    return Response(body=msgspec.json.encode(document), content_type=content_type, headers=dict(_HEADERS))
