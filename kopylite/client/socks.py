"""Connections through a SOCKS5 proxy: the only door to python_socks, which comes with the extra `socks`."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from urllib.parse import SplitResult, unquote

from kopylite.errors import KubeconfigError


def require_socks() -> None:
    """Raises KubeconfigError: the package is not installed."""
    if find_spec("python_socks") is None:
        raise KubeconfigError(
            "a socks5:// proxy needs the package python-socks; install it with: pip install 'kopylite[socks]'"
        )


async def socks_socket(proxy: SplitResult, host: str, port: int) -> socket.socket:
    """A socket that the proxy has connected; the proxy resolves the name, too, as in Go. No time limit of its own.

    Raises:
        OSError: the proxy is away, refuses, or cannot reach the server.
    """
    # Imported on first use: who has no such proxy need not have the package.
    from python_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError, ProxyType
    from python_socks.async_.asyncio import Proxy

    there = Proxy(
        ProxyType.SOCKS5,
        host=proxy.hostname or "",
        port=proxy.port or 1080,
        username=None if proxy.username is None else unquote(proxy.username),
        password=None if proxy.password is None else unquote(proxy.password),
        rdns=True,
    )
    try:
        return await there.connect(host, port, timeout=3600)
    except (ProxyError, ProxyConnectionError, ProxyTimeoutError, ValueError) as error:
        raise OSError(str(error) or type(error).__name__) from None
