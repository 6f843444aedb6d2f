"""What a Secret holds is remembered as it is read and written, so that no log, Event or error can show it."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from kopylite.objects.kinds import Kind
from kopylite.redaction import remember_secret

T = TypeVar("T")


class _Adapter(Protocol[T]):
    @property
    def kind(self) -> Kind: ...
    def decode(self, raw: bytes) -> T: ...
    def encode(self, obj: T) -> dict[str, Any]: ...


class SecretAdapter(Generic[T]):
    """An adapter of Secrets, in whatever Python type, that tells the redaction of their values."""

    __slots__ = ("_adapter", "kind")

    def __init__(self, adapter: _Adapter[T]) -> None:
        self._adapter = adapter
        self.kind = adapter.kind

    def decode(self, raw: bytes) -> T:
        remember_secret(raw)
        return self._adapter.decode(raw)

    def encode(self, obj: T) -> dict[str, Any]:
        wire = self._adapter.encode(obj)
        remember_secret(wire)
        return wire


def is_secret(kind: Kind) -> bool:
    return kind.kind == "Secret" and kind.api_version == "v1"
