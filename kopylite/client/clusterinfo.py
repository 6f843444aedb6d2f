"""ClusterInfo: what an exec plugin may be told of its cluster."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec

from kopylite.client.tls import TlsSettings
from kopylite.errors import KubeconfigError


class ClusterInfo(msgspec.Struct, frozen=True):
    """What a plugin with `provideClusterInfo` is told of the cluster.

    Attributes:
        extension: the cluster's extension `client.authentication.k8s.io/exec`, for the plugin alone.
    """

    server: str = ""
    tls: TlsSettings = msgspec.field(default_factory=TlsSettings)
    proxy: str | None = None
    extension: Any = None

    def spec(self) -> dict[str, Any]:
        """`spec.cluster` of an ExecCredential. Raises KubeconfigError: the CA's file cannot be read."""
        told: dict[str, Any] = {"server": self.server}
        if self.tls.server_name:
            told["tls-server-name"] = self.tls.server_name
        if self.tls.insecure:
            told["insecure-skip-tls-verify"] = True
        if self.tls.ca is not None:
            try:
                ca = self.tls.ca.read_bytes() if isinstance(self.tls.ca, Path) else self.tls.ca
            except OSError as error:
                raise KubeconfigError(f"the certificate authority cannot be read: {error}") from None
            told["certificate-authority-data"] = base64.b64encode(ca).decode()
        if self.proxy is not None:
            told["proxy-url"] = self.proxy
        told["config"] = self.extension
        return told
