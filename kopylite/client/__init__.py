"""TALK: to the API server, as whoever the configuration says, one request a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.client.api import Api, WriteListener
    from kopylite.client.cached import Client
    from kopylite.client.caches import CacheReader, Stored, StoreReader
    from kopylite.client.codec import LineSplitter, ListPage, decode_event, decode_list
    from kopylite.client.config import ClientConfig, load_config
    from kopylite.client.connecting import connect
    from kopylite.client.credentials import ClientIdentity, Credentials
    from kopylite.client.listwatch import ListWatch
    from kopylite.client.live import LiveClient
    from kopylite.client.permissions import MissingPermissions, Permission, missing_permission
    from kopylite.client.resources import Resources
    from kopylite.client.tls import TlsSettings
    from kopylite.client.transport import ApiResponse, ApiStream, HttpTransport, Transport
    from kopylite.client.upsert import Outcome
    from kopylite.client.verbs import ApiRequest, Preconditions, ResourceInfo, Selection, WriteOptions
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.client.api": "Api WriteListener",
            "kopylite.client.cached": "Client",
            "kopylite.client.caches": "CacheReader Stored StoreReader",
            "kopylite.client.codec": "LineSplitter ListPage decode_event decode_list",
            "kopylite.client.config": "ClientConfig load_config",
            "kopylite.client.connecting": "connect",
            "kopylite.client.credentials": "ClientIdentity Credentials",
            "kopylite.client.listwatch": "ListWatch",
            "kopylite.client.live": "LiveClient",
            "kopylite.client.permissions": "MissingPermissions Permission missing_permission",
            "kopylite.client.resources": "Resources",
            "kopylite.client.tls": "TlsSettings",
            "kopylite.client.transport": "HttpTransport ApiResponse ApiStream Transport",
            "kopylite.client.upsert": "Outcome",
            "kopylite.client.verbs": "ApiRequest Preconditions ResourceInfo Selection WriteOptions",
        },
    )

__all__ = [
    "Api",
    "ApiRequest",
    "ApiResponse",
    "ApiStream",
    "CacheReader",
    "Client",
    "ClientConfig",
    "ClientIdentity",
    "Credentials",
    "HttpTransport",
    "LineSplitter",
    "ListPage",
    "ListWatch",
    "LiveClient",
    "MissingPermissions",
    "Outcome",
    "Permission",
    "Preconditions",
    "ResourceInfo",
    "Resources",
    "Selection",
    "StoreReader",
    "Stored",
    "TlsSettings",
    "Transport",
    "WriteListener",
    "WriteOptions",
    "connect",
    "decode_event",
    "decode_list",
    "load_config",
    "missing_permission",
]
