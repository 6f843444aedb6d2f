"""Webhooks of a Manager's Apps: served with its options, counted in its metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kopylite.client import ClientConfig
from kopylite.clock import Clock
from kopylite.errors import UsageError
from kopylite.manager.operator import Operator
from kopylite.manager.options import Options
from kopylite.metrics import Metrics
from kopylite.reconcile import Environment
from kopylite.serving import parse_address
from kopylite.webhooks.service import WebhookService, WebhookSettings


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


async def serve(service: WebhookService, fail: Callable[[UsageError], None]) -> None:
    """Until it is cancelled; an address that cannot be had, or a missing package, ends the run in order."""
    try:
        await service.run()
    except UsageError as error:
        fail(error)
