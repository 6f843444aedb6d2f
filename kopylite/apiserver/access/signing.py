"""SigningKey: what service account tokens are signed with, and how others verify them (JSON Web Keys)."""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kopylite.apiserver.storage.store import ObjectStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

ALGORITHM: Final = "ES256"
# No kind of the API has this name: nobody reads it over HTTP. It lives and dies with the objects that tokens are about,
# so a token outlives a restart exactly if its account does.
_STORAGE: Final = "signing-keys.kopylite"
_NAME: Final = "service-accounts"
# Of each of the two numbers that an ES256 signature is made of.
_NUMBER_BYTES: Final = 32


class SigningKey:
    """An ECDSA P-256 key, made when the first token is asked for and kept with the objects of the store.

    Needs the package `cryptography` (extra `dev`).
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def sign(self, data: bytes) -> bytes:
        """An ES256 signature. Raises UsageError: `cryptography` is not installed."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        r, s = utils.decode_dss_signature(_load(self._made()).sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_NUMBER_BYTES, "big") + s.to_bytes(_NUMBER_BYTES, "big")

    def verifies(self, data: bytes, signature: bytes) -> bool:
        pem = self._stored()
        if pem is None or len(signature) != 2 * _NUMBER_BYTES:
            return False
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        r, s = (int.from_bytes(half, "big") for half in (signature[:_NUMBER_BYTES], signature[_NUMBER_BYTES:]))
        try:
            _load(pem).public_key().verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    @property
    def id(self) -> str:
        """The key's name in tokens and in `jwk`."""
        return _id(self._made())

    def jwk(self) -> dict[str, Any]:
        """The public key, for whoever wants to verify tokens."""
        pem = self._made()
        numbers = _load(pem).public_key().public_numbers()
        x, y = (encode(number.to_bytes(_NUMBER_BYTES, "big")) for number in (numbers.x, numbers.y))
        return {"use": "sig", "kty": "EC", "kid": _id(pem), "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y}

    def _stored(self) -> bytes | None:
        record = self._store.get(_STORAGE, _NAME)
        return None if record is None else msgspec.json.decode(record.body)["pem"].encode()

    def _made(self) -> bytes:
        pem = self._stored()
        if pem is None:
            from kopylite.serving.authority import signing_key

            pem = signing_key()
            self._store.create(_STORAGE, _NAME, {"metadata": {"name": _NAME}, "pem": pem.decode()}, encoding_version="")
        return pem


@functools.lru_cache(maxsize=16)
def _load(pem: bytes) -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "made by signing_key"
    return key


@functools.lru_cache(maxsize=16)
def _id(pem: bytes) -> str:
    """Upstream's: the hash of the public key."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = _load(pem).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encode(hashlib.sha256(public).digest())


def encode(data: bytes) -> str:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
