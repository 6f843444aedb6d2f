"""Connection: wait at the start until the API server answers, where everybody can see that we wait."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Protocol

import anyio

from kopylite.boundary import json_object, printable
from kopylite.client import ApiRequest, ClientConfig, LiveClient, Transport
from kopylite.clock import Clock
from kopylite.errors import ConnectionFailed, KopyliteError, KubeconfigError, TransportError, api_error
from kopylite.objects import Kind
from kopylite.observers import ClientObserver

logger = logging.getLogger("kopylite.manager")

VERSION = ApiRequest("GET", "/version")
# Each try is short, so that a server which comes up is found soon.
TRY_SECONDS = 5.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 5.0

NAMESPACE = Kind("v1", "Namespace")
NAMESPACES_AT_A_TIME = 8


class OwnTransport(Transport, Protocol):
    """A Transport that whoever made it has to close."""

    async def aclose(self) -> None: ...


class Connect(Protocol):
    """Makes what reaches an API server."""

    def __call__(self, config: ClientConfig, *, observer: ClientObserver, clock: Clock) -> OwnTransport: ...


def opened(
    connect: Connect, clock: Clock, stack: AsyncExitStack, config: ClientConfig, observer: ClientObserver
) -> Transport:
    """A transport that is closed with the stack, also when the run is cancelled: else it is a warning at the end."""
    transport = connect(config, observer=observer, clock=clock)

    async def close(*exc_info: object) -> None:
        with anyio.CancelScope(shield=True):
            await transport.aclose()

    stack.push_async_exit(close)
    return transport


async def wait_for_server(transport: Transport, config: ClientConfig, limit: float, clock: Clock) -> None:
    """Return as soon as the API server answers; each failed try is one line in the log.

    Raises:
        ConnectionFailed: it did not answer within `limit` seconds.
        KubeconfigError: it refused the credentials until then.
    """
    began, pause = clock.monotonic(), FIRST_PAUSE
    while (problem := await _try(transport, config)) is not None:
        waited = clock.monotonic() - began
        if waited + pause >= limit:
            raise type(problem)(f"gave up after {waited:.0f} s: {problem} ({config.source})")
        logger.warning("%s; trying again in %.1f s, until %.0f s have passed", problem, pause, limit)
        await clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _try(transport: Transport, config: ClientConfig) -> ConnectionFailed | KubeconfigError | None:
    """One request, without the retries that the transport would make on its own and nobody would see."""
    try:
        with anyio.fail_after(TRY_SECONDS):
            async with transport.stream(VERSION) as stream:
                body = await stream.read()
    except TransportError as error:
        return ConnectionFailed(str(error))
    except TimeoutError:
        return ConnectionFailed(f"no answer from {config.server} within {TRY_SECONDS:.0f} s")
    if stream.status == 401:
        return KubeconfigError(f"{config.server} refuses the credentials: {api_error(401, body).message}")
    if stream.status >= 500:
        return ConnectionFailed(f"{config.server} is not ready: {api_error(stream.status, body)}")
    if stream.status not in (200, 403):
        return ConnectionFailed(_not_an_api_server(config.server, stream.status, body))
    version = "of a version that it does not tell"  # that may be forbidden, and is no matter
    if stream.status == 200:
        found = json_object(body).get("gitVersion")
        if not isinstance(found, str):
            return ConnectionFailed(f"{config.server} is no Kubernetes API server: its /version is none")
        version = " ".join(printable(found, 100).split())  # one line, whatever it says
    logger.info("connected to %s, Kubernetes %s, by %s", config.server, version, config.source)
    return None


def _not_an_api_server(server: str, status: int, body: bytes) -> str:
    if status == 400 and b"HTTP request to an HTTPS server" in body:
        return f"{server} speaks TLS: write https:// in the kubeconfig's server"
    return f"{server} is no Kubernetes API server: its /version answers {api_error(status, body)}"


async def missing_namespaces(client: LiveClient, namespaces: Sequence[str]) -> list[str]:
    """Which of these do not exist, as far as that may be asked."""
    missing: list[str] = []
    limit = anyio.CapacityLimiter(NAMESPACES_AT_A_TIME)

    async def look(name: str) -> None:
        async with limit:
            with suppress(KopyliteError, OSError):
                if await client.find(NAMESPACE, name) is None:
                    missing.append(name)

    async with anyio.create_task_group() as tasks:
        for name in namespaces:
            tasks.start_soon(look, name)
    return sorted(missing)
