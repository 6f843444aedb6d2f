"""Connection: wait at the start until the API server answers, where everybody can see that we wait."""

from __future__ import annotations

import logging

import msgspec

from kopylite.client.config import ClientConfig
from kopylite.client.transport import Transport
from kopylite.client.verbs import ApiRequest
from kopylite.clock import Clock
from kopylite.errors import ConnectionFailed, KubeconfigError, TransportError, api_error

logger = logging.getLogger("kopylite.manager")

VERSION = ApiRequest("GET", "/version")
# Each try is short, so that a server which comes up is found soon.
TRY_SECONDS = 5.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 5.0


class _Version(msgspec.Struct):
    git_version: str = msgspec.field(name="gitVersion", default="of an unknown version")


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
    try:
        response = await transport.request(VERSION, timeout=TRY_SECONDS)
    except TransportError as error:
        return ConnectionFailed(str(error))
    if response.status == 401:
        return KubeconfigError(f"{config.server} refuses the credentials: {api_error(401, response.body).message}")
    if response.status >= 500:
        return ConnectionFailed(f"{config.server} is not ready: {api_error(response.status, response.body)}")
    # Anything else is an API server; that /version may be forbidden is no matter.
    version = "of an unknown version"
    if response.status == 200:
        try:
            version = msgspec.json.decode(response.body, type=_Version).git_version
        except msgspec.MsgspecError:
            return ConnectionFailed(f"{config.server} is no Kubernetes API server: /version is no JSON object")
    logger.info("connected to %s, Kubernetes %s, by %s", config.server, version, config.source)
    return None
