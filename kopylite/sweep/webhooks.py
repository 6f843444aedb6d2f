"""The App's webhooks in a sweep: answered in the process, as by a replica of the operator that never crashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kopylite.apiserver.server import ApiServer
from kopylite.app import App
from kopylite.client import Client
from kopylite.clock import Clock
from kopylite.controller import ControllerSpec, Watch
from kopylite.lifecycle import LifePlan
from kopylite.reconcile import Environment
from kopylite.serving import Address
from kopylite.webhooks.configurations import WebhookPlace, service_name
from kopylite.webhooks.service import WebhookService, WebhookSettings, registration_of
from kopylite.webhooks.specs import ConverterSpec, WebhookSpec

# Nobody listens there.
URL = "https://webhooks.sweep.invalid"


@dataclass(frozen=True, slots=True)
class WithoutWebhooks:
    """An App as a Manager runs it where somebody else answers for its webhooks."""

    app: App
    hooks: Sequence[WebhookSpec] = ()
    converters: Sequence[ConverterSpec] = ()

    @property
    def name(self) -> str:
        return self.app.name

    @property
    def leader_election(self) -> bool:
        return self.app.leader_election

    @property
    def shards(self) -> int:
        return self.app.shards

    @property
    def controllers(self) -> Sequence[ControllerSpec]:
        return self.app.controllers

    @property
    def cached(self) -> Sequence[Watch]:
        return self.app.cached

    @property
    def life(self) -> LifePlan:
        return self.app.life


async def register_webhooks(app: App, client: Client) -> None:
    """Tell the API server of an App's webhooks and conversions, if it has any. Raises KopyliteError."""
    if app.hooks or app.converters:
        await registration_of(app, client).apply(WebhookPlace("default", service_name(app.name), URL))


def answer_webhooks(app: App, server: ApiServer, client: Client, clock: Clock) -> None:
    """Answer what a server asks an App's webhooks, as long as the server lives.

    Args:
        client: of the webhooks' contexts.
    """
    if not app.hooks and not app.converters:
        return
    owners = [(app, Environment(app.name, client, clock=clock))]
    service = WebhookService(owners, WebhookSettings(address=Address("127.0.0.1", 0)), clock)
    server.assembly.hooks.inside |= {f"{URL}{path}": handler for path, handler in service.handlers.items()}
