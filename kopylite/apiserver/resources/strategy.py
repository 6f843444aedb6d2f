"""Strategy: what one kind knows about its own objects. The write pipeline asks; the strategy never writes.

Objects are decoded JSON (plain dicts) and belong to the pipeline: a strategy may change the `obj` it is given
in place, and must never change `old`. All methods are synchronous, do no IO and raise only `errors.ApiError`.
Order of the calls on a write: decode, default, prepare_*, validate_*, warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.clock import Clock


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """What a strategy may know about the rest of the world, for the few that need it (IP allocation, say).

    Args:
        clock: time and randomness.
        objects: all stored objects of a storage name, decoded; e.g. `objects("services")`.
        unfinished: those that are being written and not stored yet; what they were assigned is taken.
    """

    clock: Clock
    objects: Callable[[str], Iterable[dict[str, Any]]]
    unfinished: Callable[[str], Iterable[dict[str, Any]]] = lambda storage: ()


class Strategy(Protocol):
    """The rules of one kind in one version.

    Attributes:
        schema: the topology for server-side apply, strategic merge and validation.
        has_status: `/status` exists, so the main endpoint leaves status alone.
        generation: the server keeps metadata.generation.
        strategic: strategic merge patches are accepted.
        unconditional_update: a PUT without a resourceVersion overwrites.
        create_on_update: a PUT on a missing name creates (Lease, for one).
        grace: deletion of this kind is graceful (Pod).
    """

    @property
    def schema(self) -> SchemaNode: ...
    @property
    def has_status(self) -> bool: ...
    @property
    def generation(self) -> bool: ...
    @property
    def unconditional_update(self) -> bool: ...
    @property
    def create_on_update(self) -> bool: ...
    @property
    def grace(self) -> bool: ...

    def reset_fields(self, subresource: str) -> tuple[str, ...]:
        """The dotted paths of what an endpoint does not take from clients: nobody comes to own them through it."""
        ...

    def decode(self, obj: dict[str, Any]) -> list[str]:
        """Drop unknown fields and bring values into the form of the kind.

        Returns:
            The dotted paths of the unknown fields ("spec.sizze"), sorted.

        Raises:
            BadRequest: a value cannot be read as its type (built-ins; custom resources say so in validation).
        """
        ...

    def from_stored(self, obj: dict[str, Any], encoding_version: str) -> dict[str, Any]:
        """A stored object, written in another encoding version (see Resource), as this version shows it."""
        ...

    def default(self, obj: dict[str, Any]) -> None:
        """Fill in what the user left out."""
        ...

    def prepare_create(self, obj: dict[str, Any]) -> None:
        """Reset what a creator may not set (status), allocate what the server assigns."""
        ...

    def prepare_update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str) -> None:
        """Keep from `old` what this endpoint may not change; `subresource` is "" for the main one."""
        ...

    def validate_create(self, obj: dict[str, Any]) -> list[FieldError]:
        """Everything wrong with a new object except its metadata, which the pipeline checks."""
        ...

    def validate_update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str) -> list[FieldError]:
        """Everything wrong with the change except metadata."""
        ...

    def warnings(self, obj: dict[str, Any], old: dict[str, Any] | None) -> list[str]:
        """Texts for Warning headers; `old` is None on create."""
        ...

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        """Why `name` (or, with `prefix`, a generateName) is no name for this kind; the details only."""
        ...
