"""Webhooks of a Manager's Apps: served with its options, counted in its metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from kopylite.client import ClientConfig
from kopylite.clock import Clock
from kopylite.errors import UsageError
from kopylite.manager.operator import Operator
from kopylite.manager.options import Options
from kopylite.metrics import Metrics
from kopylite.reconcile import Environment
from kopylite.serving import parse_address

if TYPE_CHECKING:
    from kopylite.webhooks.service import WebhookService

# No API server lets in as many requests at a time: with a limit that calls can reach, they would wait for connections
# of others, which wait for them.
HOOK_CONNECTIONS = 1000


def hook_config(config: ClientConfig) -> ClientConfig:
    """As the client's, with connections of its own: a write of a reconcile, which has one, waits for a webhook that
    may write, too."""
    return replace(config, user_agent=f"{config.user_agent} webhooks", max_connections=HOOK_CONNECTIONS)


def webhook_service(
    owners: Sequence[tuple[Operator, Environment]],
    options: Options,
    config: ClientConfig,
    metrics: Metrics,
    clock: Clock,
) -> WebhookService | None:
    """What serves the webhooks of some Apps; None: they have none.

    Raises:
        UsageError: the address is none.
    """
    if not owners:
        return None
    address = parse_address(options.webhook_address)
    if address is None:
        raise UsageError("--webhook-address off: the App has webhooks, and nothing could be written without them")
    from kopylite.webhooks.service import WebhookService, WebhookSettings  # with its server: most Apps have no webhooks

    settings = WebhookSettings(
        address=address,
        shared=options.webhook_shared,
        certs=options.webhook_certs,
        url=options.webhook_url,
        manage=options.webhook_manage,
        namespace=config.namespace,
    )
    numbers = metrics.webhooks
    service = WebhookService(owners, settings, clock, observe=numbers.called, on_crash=numbers.crashed)
    numbers.in_flight = lambda: service.server.in_flight
    return service


@asynccontextmanager
async def served(
    service: WebhookService | None,
    fail: Callable[[UsageError], None],
    endless: Callable[[str, Callable[[], Awaitable[None]]], Coroutine[Any, Any, None]],
) -> AsyncIterator[None]:
    """Around all that the Apps do: their first writes may have to pass their own webhooks.

    Args:
        fail: told of an address that cannot be had, or a missing package: the run then ends in order.
        endless: runs what may end after a stop only.
    """
    if service is None:
        yield
        return
    failures: list[Exception] = []  # raised below, as themselves: the task group would wrap them
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(endless, "the serving of webhooks", partial(_serve, service, fail))
        await service.wait_begun()
        try:
            yield
        except Exception as error:
            failures.append(error)
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]


async def _serve(service: WebhookService, fail: Callable[[UsageError], None]) -> None:
    try:
        await service.run()
    except UsageError as error:
        fail(error)
