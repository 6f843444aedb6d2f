"""Ownership of fields: managedFields of every write, and server-side apply. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kopylite.apiserver.patching.apply.field_manager import FieldManager, keep_times
from kopylite.apiserver.patching.apply.fieldsets import of_paths
from kopylite.apiserver.patching.apply.merging import atomics, merge
from kopylite.apiserver.patching.apply.topology import topology_of
from kopylite.apiserver.schema.node import SchemaNode

__all__ = ["FieldManager", "apply", "keep_times", "merge_configuration", "update_managed_fields"]


def update_managed_fields(  # noqa: PLR0913
    new: dict[str, Any],
    live: dict[str, Any] | None,
    *,
    schema: SchemaNode,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    reset: tuple[str, ...] = (),
    schema_in: Callable[[str], SchemaNode | None] | None = None,
) -> None:
    """Set `new`'s managedFields after a create, update or non-apply patch; see FieldManager.update.

    Args:
        reset: dotted paths of what the endpoint does not take from clients.
    """
    fields = FieldManager(schema, api_version, "", subresource, of_paths(*reset), schema_in)
    fields.update(live, new, manager, now)


def apply(  # noqa: PLR0913
    live: dict[str, Any] | None,
    config: dict[str, Any],
    *,
    schema: SchemaNode,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    force: bool,
    reset: tuple[str, ...] = (),
    kind: str = "",
    schema_in: Callable[[str], SchemaNode | None] | None = None,
) -> dict[str, Any]:
    """Server-side apply; see FieldManager.apply.

    Args:
        kind: of the endpoint; "" if the caller has compared it with the configuration's.
    """
    name = kind or str(config.get("kind", ""))
    fields = FieldManager(schema, api_version, name, subresource, of_paths(*reset), schema_in)
    return fields.apply(live, config, manager, now, force=force)


def merge_configuration(live: dict[str, Any], config: dict[str, Any], schema: SchemaNode) -> dict[str, Any]:
    """An object with what a configuration names laid over it; nobody comes to own anything.

    Raises:
        ValueError: the configuration replaces what is atomic, and so would drop what it does not name.
    """
    topology = topology_of(schema)
    atomic = list(atomics(config, topology))
    if atomic:
        text = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
        raise ValueError(f"{text}: {', '.join(atomic)}")
    return merge(live, config, topology)
