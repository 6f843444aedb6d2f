"""Registration: tells the API server of webhooks, and takes that back."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kopylite.client import Client
from kopylite.errors import NotFound
from kopylite.objects import Kind, Unstructured
from kopylite.webhooks.configurations import (
    API_VERSION,
    KINDS,
    HookEndpoint,
    WebhookPlace,
    configurations_of,
    conversion_of,
    converted_crds,
)
from kopylite.webhooks.specs import ConverterSpec

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
CONFIGURATIONS = {role: Kind(API_VERSION, kind, f"{kind.lower()}s", False) for role, kind in KINDS.items()}


class Registration:
    """What the API server is told of the webhooks of some Apps.

    Args:
        name: of the Service; a field manager's name is made of it.
        endpoints: by the name of the App.
        converters: of all of them.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        endpoints: Mapping[str, Sequence[HookEndpoint]],
        converters: Sequence[ConverterSpec],
    ) -> None:
        self._client = client
        self._name = name
        self._endpoints = endpoints
        self._crds = converted_crds(converters)

    async def apply(self, place: WebhookPlace) -> list[str]:
        """Tell it where it does not know them as they are; only what is one's own is touched.

        Returns:
            The names of CRDs that there are not (yet).

        Raises:
            KopyliteError, OSError: as `Client.apply`.
        """
        for app, endpoints in self._endpoints.items():
            for configuration in configurations_of(app, endpoints, place):
                await self._client.apply(Unstructured(configuration))
        return [name for name in self._crds if not await self._apply_conversion(name, place)]

    async def bundle(self) -> bytes:
        """What callers of the webhooks trust now, PEM; b"": nothing that could be read.

        Raises:
            KopyliteError, OSError: as `LiveClient.find`.
        """
        for app, endpoints in self._endpoints.items():
            for role in {endpoint.role for endpoint in endpoints}:
                found = await self._client.live.find(CONFIGURATIONS[role], app)
                if found is not None:
                    return _bundle_in((found.get("webhooks") or [{}])[0].get("clientConfig"))
        for name in self._crds:
            found = await self._client.live.find(CRD, name)
            conversion = found["spec"].get("conversion") or {} if found is not None else {}
            return _bundle_in((conversion.get("webhook") or {}).get("clientConfig"))
        return b""

    async def withdraw(self) -> None:
        """Delete the configurations: what no process serves holds up everybody's writes.

        Raises:
            KopyliteError, OSError: as `LiveClient.delete`.
        """
        for app, endpoints in self._endpoints.items():
            for role in {endpoint.role for endpoint in endpoints}:
                await self._client.live.delete(CONFIGURATIONS[role], app)

    async def withdraw_conversion(self) -> None:
        """Have the CRDs say that versions differ by name only. Watches of their kinds end by it.

        Raises:
            KopyliteError, OSError: as `LiveClient.patch`.
        """
        for name in self._crds:
            with suppress(NotFound):
                await self._client.live.patch(
                    CRD, name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
                )

    async def _apply_conversion(self, name: str, place: WebhookPlace) -> bool:
        crd = await self._client.live.find(CRD, name)
        if crd is None:
            return False
        # No apply: whoever wrote the CRD owns what is there, be it "no conversion" or, with the other way to reach
        # webhooks, a Service or URL that an apply would leave beside ours.
        conversion = conversion_of(place)
        config = {"url": None, "service": None} | conversion["webhook"]["clientConfig"]
        conversion["webhook"]["clientConfig"] = config
        manager = f"{self._name}-conversion"
        await self._client.live.patch(crd, {"spec": {"conversion": conversion}}, field_manager=manager)
        return True


def _bundle_in(config: Mapping[str, Any] | None) -> bytes:
    try:
        return base64.b64decode((config or {}).get("caBundle") or "")
    except ValueError:
        return b""
