"""WebhookService: serves the webhooks of an operator, looks after their certificate, tells the API server of them."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from kopylite.boundary import say
from kopylite.client import Client
from kopylite.clock import Clock
from kopylite.errors import KopyliteError, KubeconfigError, UsageError
from kopylite.reconcile import Environment
from kopylite.serving import Address, PostHandler, PostServer
from kopylite.serving.address import is_loopback
from kopylite.serving.postserver import Observe
from kopylite.troubleshooting import Trouble
from kopylite.webhooks.admission import Judge, deadline_of
from kopylite.webhooks.certificates import (
    BadCertificate,
    SecretCertificates,
    ServingPair,
    check_pair,
    distrust,
    joined,
    load_pair,
    new_context,
    pair_in,
)
from kopylite.webhooks.configurations import (
    CONVERT_PATH,
    HookEndpoint,
    WebhookPlace,
    endpoints_of,
    host_of,
    service_name,
    with_port,
)
from kopylite.webhooks.conversion import (
    ConversionFailed,
    Conversions,
    conversion_answer,
    conversion_request_of,
    steps_of,
)
from kopylite.webhooks.registration import Registration
from kopylite.webhooks.specs import ConverterSpec, WebhookSpec

logger = logging.getLogger("kopylite.webhooks")

AUTO = "auto"

# A folder is looked at as often; the kubelet brings a new certificate after a minute or so anyway.
FOLDER_SECONDS = 5.0
# As often the Secret is read, and what was applied is compared.
SECRET_SECONDS = 60.0
RETRY_SECONDS = 2.0
# How long the start of the operator waits for its webhooks, which its own first writes may have to pass.
BEGIN_SECONDS = 10.0
# API servers hear of another authority by their watches; before that they would refuse its certificate.
HEARD_SECONDS = 3.0
# After a stop: kube-proxy everywhere has to hear first that this pod is no more.
DRAIN_SECONDS = 3.0
# An API server converts a whole list in one call, of as many objects as it was asked for.
MAX_CONVERSION = 100 * 1024 * 1024
# So many objects of a conversion are converted before others have a turn.
TURN = 20


class HookOwner(Protocol):
    """What an App has of webhooks."""

    @property
    def name(self) -> str: ...
    @property
    def hooks(self) -> Sequence[WebhookSpec]: ...
    @property
    def converters(self) -> Sequence[ConverterSpec]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How webhooks are served.

    Args:
        address: where to listen.
        shared: other processes listen there, too: see PostServer.
        certs: "auto", or the folder of tls.crt, tls.key and (for `manage`) ca.crt.
        url: how the API server reaches them; "": by the Service. Without a port, the one that is listened on.
        manage: apply the configurations.
        namespace: of the Service, and of the Secret of "auto".
    """

    address: Address
    certs: str = AUTO
    url: str = ""
    manage: bool = False
    namespace: str = "default"
    shared: bool = False


@dataclass(slots=True)
class _State:
    """What is not yet as it should be; None: all is well."""

    certificate: str | None = "the certificate has not been read yet"
    distrust: str | None = None
    configuration: str | None = None
    told: set[str] = field(default_factory=set)


def registration_of(owner: HookOwner, client: Client) -> Registration:
    """What the API server is told of the webhooks of one App."""
    return Registration(client, service_name(owner.name), {owner.name: endpoints_of(owner.hooks)}, owner.converters)


class WebhookService:
    """Serves the webhooks of some Apps, in one event loop, until it is cancelled; then finishes the calls in progress.

    Args:
        owners: the Apps that have webhooks, each with the environment of its contexts.
        observe: told of each call: see PostServer.
        on_crash: told of each function that failed: True for a converter.

    Attributes:
        handlers: by path; they answer also where nothing listens.
    """

    def __init__(
        self,
        owners: Sequence[tuple[HookOwner, Environment]],
        settings: WebhookSettings,
        clock: Clock,
        *,
        observe: Observe = lambda path, status, seconds: None,
        on_crash: Callable[[bool], None] = lambda conversion: None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._on_crash = on_crash
        self._client = owners[0][1].client
        self._name = service_name(owners[0][0].name)
        self._converters = [spec for owner, _ in owners for spec in owner.converters]
        self._conversions = Conversions(self._converters)
        self._endpoints: dict[str, list[HookEndpoint]] = {}
        self._context: ssl.SSLContext = new_context()
        self._pair: ServingPair | None = None
        self._state = _State(configuration="not applied yet" if settings.manage else None)
        self.handlers = self._handlers(owners)
        self.server = PostServer(
            settings.address, self.handlers, self._context, observe=observe, now=clock.monotonic,
            setting="--webhook-address", shared=settings.shared,
            limits={CONVERT_PATH: MAX_CONVERSION} if self._converters else None,
        )  # fmt: skip
        self._registration = Registration(self._client, self._name, self._endpoints, self._converters)
        hosts = WebhookPlace(settings.namespace, self._name, settings.url).hosts
        self._asked_for = hosts[0] if settings.manage else ""
        self._certificates = SecretCertificates(self._client.live, settings.namespace, f"{self._name}-certs", hosts)
        self._begun, self._ending = anyio.Event(), anyio.Event()

    def check(self) -> str | None:
        """Why webhooks cannot be called; None: they can."""
        if self._pair is None:
            return self._state.certificate
        return self._state.distrust or (self._state.configuration if self.server.listening else "not listening")

    async def run(self) -> None:
        """Serve until `end`.

        Raises:
            UsageError: the address cannot be listened on, or the package `cryptography` is missing.
        """
        try:
            while not await self._look_at_certificate():
                self._begun.set()
                if await self._ends_within(RETRY_SECONDS):
                    return
            async with self.server:
                logger.info("webhooks listen on https://%s: %s", self.server.address, ", ".join(self.server.paths))
                await self._look_after()
        finally:
            self._begun.set()

    async def _look_after(self) -> None:
        pause = FOLDER_SECONDS if self._settings.certs != AUTO else SECRET_SECONDS
        due = 0.0
        while True:
            if self._settings.manage and self._clock.monotonic() >= due:
                await self._apply(self._pair)
                due = self._clock.monotonic() + (RETRY_SECONDS if self._state.configuration else SECRET_SECONDS)
            self._begun.set()
            if await self._ends_within(pause if self._state.configuration is None else RETRY_SECONDS):
                return
            await self._look_at_certificate()

    async def _ends_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._ending.wait()
        return self._ending.is_set()

    async def wait_begun(self) -> None:
        """Wait until they are served and applied, or that was tried in vain, or takes long."""
        with anyio.move_on_after(BEGIN_SECONDS):
            await self._begun.wait()

    async def wait_ready(self) -> None:
        """Wait until they can be called, and the API server knows them."""
        while self.check() is not None:  # noqa: ASYNC110
            await anyio.sleep(0.02)

    async def end(self) -> None:
        """Have `run` end: calls that come are answered until the API server calls other replicas, then those in
        progress."""
        self.server.part()
        url = self._settings.url
        if self.server.listening and not (url and is_loopback(host_of(url))):
            await anyio.sleep(DRAIN_SECONDS)
        self._ending.set()

    def _handlers(self, owners: Sequence[tuple[HookOwner, Environment]]) -> dict[str, PostHandler]:
        handlers: dict[str, PostHandler] = {}
        for owner, environment in owners:
            endpoints = self._endpoints[owner.name] = endpoints_of(owner.hooks)
            for endpoint in endpoints:
                if endpoint.path in handlers:
                    raise UsageError(f"two apps have a webhook at {endpoint.path}: give one of them a name='...'")
                handlers[endpoint.path] = Judge(endpoint.specs, environment, lambda: self._on_crash(False)).answer
        if self._converters:
            handlers[CONVERT_PATH] = self._convert
        return handlers

    async def _convert(self, body: bytes, timeout: float) -> bytes:
        request = conversion_request_of(body)
        converted = []
        try:
            with anyio.move_on_after(deadline_of(timeout)) as scope:
                for wire in steps_of(self._conversions, request):
                    converted.append(wire)
                    if not len(converted) % TURN:
                        await anyio.lowlevel.checkpoint()
        except ConversionFailed as error:
            self._on_crash(True)
            self._tell(f"{error}", error.__cause__)
            return conversion_answer(request.uid, (), str(error))
        if scope.cancelled_caught:
            text = f"{len(request.objects or ())} objects were not converted within {deadline_of(timeout):g} s"
            logger.error("conversion to %s: %s", request.desired, text)
            return conversion_answer(request.uid, (), text)
        return conversion_answer(request.uid, converted)

    async def _look_at_certificate(self) -> bool:
        """Serve with what is to be served with now; False: there is nothing to serve with."""
        try:
            if self._settings.certs == AUTO:
                pair = await self._certificates.current(self._clock.now())
                if self._certificates.problem:
                    self._tell(f"{self._certificates.problem}; the last one is still served, and it is tried again")
            else:
                pair = await anyio.to_thread.run_sync(partial(pair_in, Path(self._settings.certs)))
            if pair != self._pair:
                await self._take(pair)
            self._state.certificate = None
        except (KopyliteError, OSError) as error:
            if isinstance(error, UsageError) and not isinstance(error, (BadCertificate, KubeconfigError)):
                raise
            self._state.certificate = say(error)
            then = "the last one is still served" if self._pair else "webhooks are not served yet"
            self._tell(f"the certificate of the webhooks: {say(error)}; {then}, and it is tried again")
        if self._pair is None:
            return False
        problem = distrust(self._pair, self._asked_for)
        self._state.distrust = f"the API server will not take the certificate: {problem}" if problem else None
        if problem:
            renew = "" if self._settings.certs == AUTO else f"; renew it in {self._settings.certs}"
            self._tell(f"{self._state.distrust}{renew}. See {Trouble.WEBHOOK}")
        return True

    async def _take(self, pair: ServingPair) -> None:
        """Serve with another pair; where its authority is another one, the API server is told first."""
        check_pair(pair)
        was = self._pair
        if was is not None and pair.bundle != was.bundle and self._settings.manage:
            if not await self._apply(pair):
                return
            await anyio.sleep(HEARD_SECONDS)
        load_pair(self._context, pair)
        self._pair = pair
        if was is not None:
            logger.info("webhooks are served with a new certificate")

    async def _apply(self, pair: ServingPair | None) -> bool:
        """Tell the API server of the webhooks, where it does not know them as they are. Whether all that is there was
        told; a CRD that is missing calls nobody.
        """
        assert pair is not None, "served with"
        settings = self._settings
        url = with_port(settings.url, self.server.address.port)
        try:
            bundle = pair.bundle
            if settings.certs != AUTO:  # there the Secret has those that are trusted
                bundle = joined(bundle, await self._registration.bundle(), self._clock.now())
            place = WebhookPlace(settings.namespace, self._name, url, bundle)
            missing = await self._registration.apply(place)
        except (KopyliteError, OSError) as error:
            self._state.configuration = f"the configurations are not applied: {say(error)}"
            self._tell(f"{self._state.configuration}; it is tried again. See {Trouble.WEBHOOK}")
            return False
        self._state.configuration = f"there is no CRD {', '.join(missing)}" if missing else None
        if missing:
            self._tell(f"there is no CRD {', '.join(missing)} yet to tell of its conversion; it is looked for again")
        return True

    def _tell(self, text: str, error: BaseException | None = None) -> None:
        if text not in self._state.told:
            if len(self._state.told) > 1000:
                self._state.told.clear()
            self._state.told.add(text)
            logger.warning("%s", text, exc_info=error)
