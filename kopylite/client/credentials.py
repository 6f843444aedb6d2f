"""Who the client is: tokens and certificates that may change while the process runs.

A `CachedCredentials` keeps an `ClientIdentity` until it expires or the server rejects it, and loads the next one with a
function: from a file, from an exec plugin, from an OpenID Connect provider.
"""

from __future__ import annotations

import base64
import logging
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import anyio

from kopylite.boundary import say
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KubeconfigError
from kopylite.redaction import redact, remember

logger = logging.getLogger(__name__)

# client-go reads token files again each minute, and counts a token as old 10 s before its end.
TOKEN_FILE_PERIOD = 60.0
EXPIRY_LEEWAY = 10.0
# A load that failed is not tried again for each request while the old identity still serves.
RETRY_INTERVAL = 10.0
# Service account tokens are 1 to 2 KB; servers take headers of 1 MB at most.
MAX_TOKEN_BYTES = 1024 * 1024

# What no HTTP header can hold: Go's net/http refuses the same.
UNUSABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, as PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What the client shows of itself for some time.

    Attributes:
        authorization: the value of the header; None for none.
        key_pair: a client certificate that came with the credentials, beside the configured one.
        lifetime: seconds that this may be used for, counted from its loading.

    Raises:
        KubeconfigError: the value cannot be a header; it is not shown.
    """

    authorization: str | None = field(default=None, repr=False)
    key_pair: KeyPair | None = field(default=None, repr=False)
    lifetime: float = math.inf

    def __post_init__(self) -> None:
        if self.authorization is not None:
            check_header(self.authorization, "the token")
            remember(self.authorization.partition(" ")[2])


def check_header(value: str, what: str) -> None:
    """Refuse what no HTTP header can hold. Raises KubeconfigError, without the value."""
    if UNUSABLE.search(value):
        raise KubeconfigError(
            f"{what} holds a line break or another control character, which no HTTP header can: write it on one line "
            "(in YAML: not as a block with |)"
        )


class Credentials(Protocol):
    """Where the transport gets an Identity from."""

    def current(self) -> ClientIdentity | None:
        """The identity to use now; None: `fetch` it."""

    async def fetch(self) -> ClientIdentity:
        """A new identity; calls at the same time share one load. Raises KubeconfigError."""

    def reject(self, identity: ClientIdentity) -> bool:
        """The server answered 401 to `identity`. True if a fetch may bring a better one."""


class StaticCredentials:
    """An identity that never changes: a token from the kubeconfig, a password, or nothing."""

    __slots__ = ("_identity",)

    def __init__(self, identity: ClientIdentity | None = None) -> None:
        self._identity = identity or ClientIdentity()

    @property
    def anonymous(self) -> bool:
        """Whether no request says who sends it."""
        return self._identity.authorization is None

    def current(self) -> ClientIdentity | None:
        return self._identity

    async def fetch(self) -> ClientIdentity:
        return self._identity

    def reject(self, identity: ClientIdentity) -> bool:
        return False


class CachedCredentials:
    """Credentials that are loaded, kept for their lifetime, and loaded again.

    A load that fails leaves the identity before in use, as long as the server has not rejected it, and is tried
    again in 10 s: a token file may be unreadable for the moment in which it is rotated.

    Args:
        load: gives a new Identity; raises KubeconfigError.
        min_interval: seconds that must pass after a load before a rejection causes another one, and after a failed
            one before the next: until then, `fetch` raises the same error again.
    """

    __slots__ = ("_clock", "_failure", "_identity", "_load", "_loaded_at", "_lock", "_min_interval", "_stale_at")

    def __init__(
        self, load: Callable[[], Awaitable[ClientIdentity]], *, min_interval: float = 0.0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._load = load
        self._min_interval = min_interval
        self._clock = clock
        self._identity: ClientIdentity | None = None
        self._failure: KubeconfigError | None = None
        self._loaded_at = -math.inf
        self._stale_at = -math.inf
        self._lock = anyio.Lock()

    def current(self) -> ClientIdentity | None:
        return self._identity if self._clock.monotonic() < self._stale_at else None

    async def fetch(self) -> ClientIdentity:
        async with self._lock:
            if (fresh := self.current()) is not None:
                return fresh
            now = self._clock.monotonic()
            if self._failure is not None and self._identity is None and now - self._loaded_at < self._min_interval:
                raise KubeconfigError(str(self._failure))
            try:
                identity = await self._load()
            except Exception as error:
                # Whatever a plugin or a provider comes up with: the old identity is better than none.
                failure = error if isinstance(error, KubeconfigError) else _unforeseen(error)
                self._failure, self._loaded_at = failure, self._clock.monotonic()
                if self._identity is None:
                    raise failure from None
                self._stale_at = self._loaded_at + RETRY_INTERVAL
                logger.warning("credentials could not be renewed, the old ones stay in use: %s", failure)
                return self._identity
            self._identity, self._failure, self._loaded_at = identity, None, self._clock.monotonic()
            # An identity that is about to end is still used for a second: else each request would load again.
            self._stale_at = self._loaded_at + max(identity.lifetime - EXPIRY_LEEWAY, 1.0)
            return identity

    def reject(self, identity: ClientIdentity) -> bool:
        if identity is not self._identity:
            return True  # another request has already fetched a newer one
        if self._clock.monotonic() - self._loaded_at < self._min_interval:
            return False
        self._identity, self._stale_at = None, -math.inf
        return True


def _unforeseen(error: Exception) -> KubeconfigError:
    return KubeconfigError(f"the credentials cannot be loaded: {redact(say(error))}")


def bearer(token: str, where: str = "") -> ClientIdentity:
    """The identity of a token. Raises KubeconfigError, which `where` begins: no header can hold the token."""
    check_header(token, f"{where}: the token" if where else "the token")
    return ClientIdentity(f"Bearer {token}")


def basic(username: str, password: str) -> ClientIdentity:
    remember(password)
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return ClientIdentity(f"Basic {pair}")


def token_file(path: Path, *, fallback: ClientIdentity | None = None, clock: Clock = SYSTEM_CLOCK) -> CachedCredentials:
    """Credentials from a file that holds a bearer token, read again each minute and after a 401.

    Args:
        fallback: used for as long as the file cannot be read, as client-go does with a token beside a tokenFile.
    """

    async def load() -> ClientIdentity:
        try:
            return _read_token(path)
        except KubeconfigError as error:
            if fallback is None:
                raise
            logger.warning("%s; the token beside it is used", error)
            return replace(fallback, lifetime=TOKEN_FILE_PERIOD + EXPIRY_LEEWAY)

    return CachedCredentials(load, clock=clock)


def _read_token(path: Path) -> ClientIdentity:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TOKEN_BYTES + 1)
        token = content.decode().strip()
    except OSError as error:
        raise KubeconfigError(f"token file {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise KubeconfigError(f"token file {path} cannot be read: it holds bytes that are no UTF-8 text") from None
    if not token or len(content) > MAX_TOKEN_BYTES:
        problem = "is larger than 1 MiB" if token else "is empty"
        raise KubeconfigError(f"token file {path} {problem}: it should hold a bearer token")
    check_header(token, f"token file {path}: the token")
    return ClientIdentity(f"Bearer {token}", lifetime=TOKEN_FILE_PERIOD + EXPIRY_LEEWAY)
