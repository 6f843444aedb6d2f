"""connect: a client for scripts and tests, in one line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kopylite.client.cached import Client
from kopylite.client.config import ClientConfig, load_config
from kopylite.client.live import FIELD_MANAGER
from kopylite.client.transport import HttpTransport
from kopylite.observers import ClientObserver


@asynccontextmanager
async def connect(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    config: ClientConfig | None = None,
    field_manager: str = FIELD_MANAGER,
    observer: ClientObserver | None = None,
) -> AsyncIterator[Client]:
    """A Client without caches, for scripts and tests; its connections are closed at the end.

    Args:
        kubeconfig, context: see `load_config`.
        config: the settings themselves, instead.
        field_manager: the owner of the fields that it writes.
        observer: told of every request.

    Raises:
        KubeconfigError: no usable settings were found.
    """
    async with HttpTransport(config or load_config(kubeconfig, context), observer=observer) as transport:
        yield Client(transport, field_manager=field_manager)
