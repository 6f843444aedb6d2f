"""Kubeconfig files for control planes on this machine."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from kopylite.apiserver.access.authority import IssuedCertificate
from kopylite.privatefiles import write_private


def write_kubeconfig(path: Path, server: str, ca: bytes, client: IssuedCertificate) -> None:
    """Write a kubeconfig (mode 0600) that reaches `server` with a client certificate."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kopylite",
        "clusters": [{"name": "kopylite", "cluster": {"server": server, "certificate-authority-data": _text(ca)}}],
        "users": [
            {
                "name": "kopylite",
                "user": {
                    "client-certificate-data": _text(client.certificate),
                    "client-key-data": _text(client.key),
                },
            }
        ],
        "contexts": [{"name": "kopylite", "context": {"cluster": "kopylite", "user": "kopylite"}}],
    }
    write_private(path, json.dumps(config, indent=2))


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
