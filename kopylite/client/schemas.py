"""Schemas: what the server publishes of the fields of custom resources that no class describes."""

from __future__ import annotations

from typing import Any

import msgspec

from kopylite.client.fields import Field, field_of_schema, fields_of, is_described
from kopylite.client.transport import Transport
from kopylite.client.verbs import ApiRequest
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KopyliteError
from kopylite.objects import Kind

# The schema of a new definition is published a moment after it is served; who may not read it need not ask often.
RETRY_AFTER = 60.0


class Schemas:
    """The fields of all kinds. Asks the server once for each kind that neither a table nor a class describes."""

    __slots__ = ("_clock", "_found", "_retry_at", "_transport")

    def __init__(self, transport: Transport, clock: Clock = SYSTEM_CLOCK) -> None:
        self._transport = transport
        self._clock = clock
        self._found: dict[Kind, Field] = {}
        self._retry_at: dict[Kind, float] = {}

    async def fields(self, kind: Kind | type[Any], resolved: Kind) -> Field:
        """The fields of the objects of a kind; of a custom one without a schema, its metadata and conditions."""
        if is_described(kind, resolved):
            return fields_of(kind, resolved)
        found = self._found.get(resolved)
        if found is None and self._clock.monotonic() >= self._retry_at.get(resolved, 0.0):
            found = await self._published(resolved)
            if found is None:
                self._retry_at[resolved] = self._clock.monotonic() + RETRY_AFTER
            else:
                self._found[resolved] = found
        return found or fields_of(kind, resolved)

    async def _published(self, kind: Kind) -> Field | None:
        group_version_kind = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        try:
            response = await self._transport.request(ApiRequest("GET", f"/openapi/v3/apis/{kind.api_version}"))
            document = msgspec.json.decode(response.body, type=dict) if response.status == 200 else {}
            for schema in document.get("components", {}).get("schemas", {}).values():
                if group_version_kind in schema.get("x-kubernetes-group-version-kind", ()):
                    return field_of_schema(schema)
        except (KopyliteError, ValueError, AttributeError, TypeError):
            pass  # it is an improvement, not a need
        return None
