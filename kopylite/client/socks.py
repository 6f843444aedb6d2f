"""Connections through a SOCKS5 proxy: the only door to aiohttp_socks, which comes with the extra `socks`."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp

from kopylite.errors import KubeconfigError


def require_socks() -> None:
    """Raises KubeconfigError: the package is not installed."""
    if find_spec("aiohttp_socks") is None:
        raise KubeconfigError(
            "a socks5:// proxy needs the package aiohttp-socks; install it with: pip install 'kopylite[socks]'"
        )


def socks_connector(proxy: str, **settings: Any) -> aiohttp.BaseConnector:
    """A connector through a proxy, which resolves the names of servers too, as in Go; `settings` are aiohttp's."""
    parts = urlsplit(proxy)
    connector: aiohttp.BaseConnector = _connector_class()(
        host=parts.hostname or "",
        port=parts.port or 1080,
        username=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        rdns=True,
        **settings,
    )
    return connector


@cache
def _connector_class() -> Any:
    # Imported on first use: who has no such proxy need not have the package.
    from aiohttp_socks import ProxyConnectionError, ProxyConnector, ProxyError, ProxyTimeoutError

    class Connector(ProxyConnector):
        """Its failures are aiohttp's."""

        async def connect(self, req: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return await super().connect(req, *args, **kwargs)
            except (ProxyError, ProxyConnectionError, ProxyTimeoutError) as error:
                told = OSError(str(error) or type(error).__name__)
                raise aiohttp.ClientProxyConnectionError(req.connection_key, told) from None

    return Connector
