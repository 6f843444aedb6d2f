"""Who the client is: tokens and certificates that may change while the process runs.

A `CachedCredentials` keeps an `Identity` until it expires or the server rejects it, and loads the next one with a
function: from a file, from an exec plugin, from an auth provider. The plain cases need no other library; plugins
and providers are kubernetes_asyncio's, which is imported on first use (it costs 57 MB and 0.6 s).
"""

from __future__ import annotations

import base64
import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import anyio

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KubeconfigError

logger = logging.getLogger(__name__)

# client-go reads token files again each minute, and counts a token as old 10 s before its end.
TOKEN_FILE_PERIOD = 60.0
EXPIRY_LEEWAY = 10.0
# A plugin that returns a token the server rejects would otherwise run for each request.
PLUGIN_MIN_INTERVAL = 10.0
# A plugin may talk to a cloud's sign-in service; one that waits for a person would wait for ever.
PLUGIN_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, as PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """What the client shows of itself for some time.

    Attributes:
        authorization: the value of the header; None for none.
        key_pair: a client certificate that came with the credentials, beside the configured one.
        lifetime: seconds that this may be used for, counted from its loading.
    """

    authorization: str | None = field(default=None, repr=False)
    key_pair: KeyPair | None = field(default=None, repr=False)
    lifetime: float = math.inf


class Credentials(Protocol):
    """Where the transport gets an Identity from."""

    def current(self) -> Identity | None:
        """The identity to use now; None: `fetch` it."""

    async def fetch(self) -> Identity:
        """A new identity; calls at the same time share one load. Raises KubeconfigError."""

    def reject(self, identity: Identity) -> bool:
        """The server answered 401 to `identity`. True if a fetch may bring a better one."""


class StaticCredentials:
    """An identity that never changes: a token from the kubeconfig, a password, or nothing."""

    __slots__ = ("_identity",)

    def __init__(self, identity: Identity | None = None) -> None:
        self._identity = identity or Identity()

    def current(self) -> Identity | None:
        return self._identity

    async def fetch(self) -> Identity:
        return self._identity

    def reject(self, identity: Identity) -> bool:
        return False


class CachedCredentials:
    """Credentials that are loaded, kept for their lifetime, and loaded again.

    A load that fails leaves the identity before in use, as long as the server has not rejected it: a token file
    may be unreadable for the moment in which it is rotated.

    Args:
        load: gives a new Identity; raises KubeconfigError.
        min_interval: seconds that must pass after a load before a rejection causes another one.
    """

    __slots__ = ("_clock", "_identity", "_load", "_loaded_at", "_lock", "_min_interval", "_stale_at")

    def __init__(
        self, load: Callable[[], Awaitable[Identity]], *, min_interval: float = 0.0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._load = load
        self._min_interval = min_interval
        self._clock = clock
        self._identity: Identity | None = None
        self._loaded_at = -math.inf
        self._stale_at = -math.inf
        self._lock = anyio.Lock()

    def current(self) -> Identity | None:
        return self._identity if self._clock.monotonic() < self._stale_at else None

    async def fetch(self) -> Identity:
        async with self._lock:
            if (fresh := self.current()) is not None:
                return fresh
            try:
                identity = await self._load()
            except KubeconfigError as error:
                if self._identity is None:
                    raise
                logger.warning("credentials could not be renewed, the old ones stay in use: %s", error)
                identity = self._identity
            now = self._clock.monotonic()
            self._identity, self._loaded_at = identity, now
            # An identity that is about to end is still used for a second: else each request would load again.
            self._stale_at = now + max(identity.lifetime - EXPIRY_LEEWAY, 1.0)
            return identity

    def reject(self, identity: Identity) -> bool:
        if identity is not self._identity:
            return True  # another request has already fetched a newer one
        if self._clock.monotonic() - self._loaded_at < self._min_interval:
            return False
        self._identity, self._stale_at = None, -math.inf
        return True


def bearer(token: str) -> Identity:
    return Identity(f"Bearer {token}")


def basic(username: str, password: str) -> Identity:
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return Identity(f"Basic {pair}")


def token_file(path: Path, *, clock: Clock = SYSTEM_CLOCK) -> CachedCredentials:
    """Credentials from a file that holds a bearer token, read again each minute and after a 401."""

    async def load() -> Identity:
        try:
            token = path.read_text(encoding="utf-8").strip()  # noqa: ASYNC240 - a small local file, once a minute
        except (OSError, UnicodeDecodeError) as error:
            raise KubeconfigError(f"token file {path} cannot be read: {error}") from error
        if not token:
            raise KubeconfigError(f"token file {path} is empty: it should hold a bearer token")
        return Identity(f"Bearer {token}", lifetime=TOKEN_FILE_PERIOD + EXPIRY_LEEWAY)

    return CachedCredentials(load, clock=clock)


def exec_plugin(spec: Mapping[str, Any], where: str, *, clock: Clock = SYSTEM_CLOCK) -> CachedCredentials:
    """Credentials from a client-go credential plugin, run again before they expire and after a 401.

    Args:
        spec: the `exec` entry of a kubeconfig user; its command is run without a shell.
        where: names file and user, for errors.
    """

    async def load() -> Identity:
        from kubernetes_asyncio.config import ConfigException
        from kubernetes_asyncio.config.exec_provider import ExecProvider
        from kubernetes_asyncio.config.kube_config import ConfigNode

        try:
            with anyio.fail_after(PLUGIN_TIMEOUT):
                status = await ExecProvider(ConfigNode("exec", dict(spec))).run()
        except FileNotFoundError as error:
            hint = str(spec.get("installHint") or f"install {spec.get('command')!r} or put it on the PATH")
            raise KubeconfigError(f"{where}: the exec plugin was not found: {hint}") from error
        except TimeoutError as error:
            raise KubeconfigError(f"{where}: the exec plugin gave no answer in {PLUGIN_TIMEOUT:.0f} s") from error
        except (ConfigException, OSError) as error:
            raise KubeconfigError(f"{where}: the exec plugin failed: {error}") from error
        return _identity_of(status, where, clock.now())

    return CachedCredentials(load, min_interval=PLUGIN_MIN_INTERVAL, clock=clock)


def _identity_of(status: Mapping[str, Any], where: str, now: datetime) -> Identity:
    """The identity in the status of an ExecCredential."""
    token, certificate, key = (status.get(n) for n in ("token", "clientCertificateData", "clientKeyData"))
    if bool(certificate) != bool(key):
        raise KubeconfigError(f"{where}: the exec plugin returned a certificate or a key without the other")
    if not token and not certificate:
        raise KubeconfigError(f"{where}: the exec plugin returned neither a token nor a client certificate")
    lifetime = math.inf
    if expiry := status.get("expirationTimestamp"):
        lifetime = (datetime.fromisoformat(str(expiry)) - now).total_seconds()
    return Identity(
        f"Bearer {token}" if token else None,
        KeyPair(str(certificate).encode(), str(key).encode()) if certificate else None,
        lifetime,
    )


def auth_provider(user: Mapping[str, Any], where: str, *, clock: Clock = SYSTEM_CLOCK) -> CachedCredentials:
    """Credentials from a kubeconfig `auth-provider` (oidc, gcp), renewed shortly before the token ends.

    Args:
        user: the user entry of a kubeconfig.
        where: names file and user, for errors.
    """
    # The loader keeps the renewed tokens in the dicts it is given, and is asked for nothing but the token.
    kubeconfig = {
        "current-context": "",
        "contexts": [{"name": "", "context": {"cluster": "", "user": "it"}}],
        "clusters": [{"name": "", "cluster": {"server": "http://unused"}}],
        "users": [{"name": "it", "user": json.loads(json.dumps(user, default=str))}],
    }

    async def load() -> Identity:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import ConfigException
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        configuration = Configuration()
        try:
            with anyio.fail_after(PLUGIN_TIMEOUT):
                await KubeConfigLoader(kubeconfig).load_and_set(configuration)
        except (ConfigException, OSError, ValueError, KeyError) as error:
            raise KubeconfigError(f"{where}: the auth provider failed: {error}") from error
        header = configuration.api_key.get("BearerToken")
        if not header:
            raise KubeconfigError(f"{where}: the auth provider gave no token; an exec plugin is its usual successor")
        # The loader decides itself whether the token must be renewed (5 minutes before its end).
        return Identity(header, lifetime=TOKEN_FILE_PERIOD + EXPIRY_LEEWAY)

    return CachedCredentials(load, min_interval=PLUGIN_MIN_INTERVAL, clock=clock)
