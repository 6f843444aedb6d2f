"""Conversion of objects between the versions of a kind, by way of the storage version; ConversionReview v1. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kopylite.boundary import place_of, printable, read
from kopylite.errors import BadRequest, DecodeError, EncodeError, KopyliteError
from kopylite.objects import Kind, adapter_of, kind_of, wire_of
from kopylite.objects.kinds import GroupKind
from kopylite.objects.wirevalues import wire_value
from kopylite.webhooks.specs import ConverterSpec

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "ConversionReview"


class ConversionFailed(KopyliteError):
    """An object was not converted; the message has its name, and no values of it."""


class ConversionRequest(msgspec.Struct, frozen=True):
    """The `request` of a review: objects are the bytes that came."""

    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: tuple[msgspec.Raw, ...] | None = ()


class _ConversionReview(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ConversionRequest | None = None


class _Named(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: dict[str, Any]


_decoder = msgspec.json.Decoder(_ConversionReview)
_names = msgspec.json.Decoder(_Named)


class Conversions:
    """What an App's converters can convert.

    Args:
        specs: of one App or several.
    """

    def __init__(self, specs: Sequence[ConverterSpec]) -> None:
        self._storage: dict[GroupKind, Kind | type[Any]] = {}
        # By group and kind, then by the other version: how it is declared, and what converts it.
        self._others: dict[GroupKind, dict[str, tuple[Kind | type[Any], ConverterSpec]]] = {}
        for spec in specs:
            own = kind_of(spec.kind)
            self._storage[own.group_kind] = spec.kind
            for version in spec.versions:
                self._others.setdefault(own.group_kind, {})[kind_of(version).api_version] = version, spec

    @property
    def kinds(self) -> dict[GroupKind, tuple[Kind | type[Any], ...]]:
        """The versions of each kind, the storage version first."""
        return {
            kind: (storage, *(version for version, _ in self._others[kind].values()))
            for kind, storage in self._storage.items()
        }

    def convert(self, raw: bytes, desired: str) -> dict[str, Any]:
        """An object in another version, in wire form, with its metadata as it came.

        Raises:
            ConversionFailed: with its name.
        """
        named = read(_names.decode, raw, lambda _, error: ConversionFailed(f"an object cannot be read: {_why(error)}"))
        name = "/".join(str(named.metadata[part]) for part in ("namespace", "name") if named.metadata.get(part))
        title = printable(f"{named.kind} {name or '(no name)'}", 600)
        try:
            if named.api_version == desired:
                return msgspec.json.decode(raw)  # type: ignore[no-any-return]
            wire = self._by_storage(raw, GroupKind(named.api_version.rpartition("/")[0], named.kind), named, desired)
        except ConversionFailed as error:
            raise ConversionFailed(f"{title}: {error}") from None
        except Exception as error:
            text = f"{title} cannot be converted from {named.api_version} to {desired}: {_why(error)}"
            raise ConversionFailed(printable(text)) from error
        return {**wire, "metadata": named.metadata}

    def _by_storage(self, raw: bytes, kind: GroupKind, named: _Named, desired: str) -> dict[str, Any]:
        storage = self._storage.get(kind)
        if storage is None:
            raise ConversionFailed(f"there is no converter for {kind}")
        own = kind_of(storage).api_version
        declared, _ = self._declared(kind, named.api_version, own)
        obj = adapter_of(declared).decode(raw)
        if named.api_version != own:
            _, spec = self._declared(kind, named.api_version, own)
            assert spec is not None, "only the storage version has none"
            obj = spec.function(obj, storage)
            _check_version(obj, own)
        if desired != own:
            target, spec = self._declared(kind, desired, own)
            assert spec is not None, "only the storage version has none"
            obj = spec.function(obj, target)
            _check_version(obj, desired)
        return wire_value(wire_of(obj))  # type: ignore[no-any-return]  # a NaN would be a null in the stored object

    def _declared(self, kind: GroupKind, version: str, own: str) -> tuple[Kind | type[Any], ConverterSpec | None]:
        if version == own:
            return self._storage[kind], None
        found = self._others[kind].get(version)
        if found is None:
            raise ConversionFailed(f"there is no converter for {version}")
        return found


def _check_version(obj: Any, version: str) -> None:
    found = kind_of(obj).api_version
    if found != version:
        raise ConversionFailed(f"the converter was asked for {version} and returned {found}")


def _why(error: Exception) -> str:
    """Values may be secrets, so an exception of the user's code is named by its type and place."""
    if isinstance(error, DecodeError | EncodeError):
        return str(error)
    if isinstance(error, msgspec.ValidationError):
        return str(error)
    place = place_of(error)
    return f"{type(error).__name__}{place and ' at '}{place}"


def conversion_request_of(body: bytes) -> ConversionRequest:
    """The request in the body of a call.

    Raises:
        BadRequest: it is no ConversionReview v1 with a request and a uid; the text quotes none of it.
    """
    review = read(_decoder.decode, body, _unreadable)
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise BadRequest(f"the body is not {API_VERSION} {KIND}")
    if review.request is None or not review.request.uid:
        raise BadRequest(f"the {KIND} has no request with a uid")
    return review.request


def _unreadable(body: bytes, error: Exception) -> BadRequest:
    why = str(error) if isinstance(error, msgspec.ValidationError) else "it is no JSON that can be read"
    return BadRequest(f"the body is no {KIND}: {printable(why, 500)}")


def steps_of(conversions: Conversions, request: ConversionRequest) -> Iterator[dict[str, Any]]:
    """Convert the objects of a request one by one, in their order.

    Raises:
        ConversionFailed: at the first that cannot be converted.
    """
    for raw in request.objects or ():
        yield conversions.convert(bytes(raw), request.desired)


def conversion_answer(uid: str, converted: Sequence[dict[str, Any]], problem: str = "") -> bytes:
    """The body of the answer: all objects, or why there are none."""
    response: dict[str, Any] = {"uid": uid, "convertedObjects": [] if problem else converted}
    response["result"] = {"status": "Failure", "message": problem} if problem else {"status": "Success"}
    return msgspec.json.encode({"kind": KIND, "apiVersion": API_VERSION, "response": response})
