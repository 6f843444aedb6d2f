"""The kubeconfig of an embedded server, as text."""

from __future__ import annotations

import base64
from typing import Any

from kopylite.objects.yamlwrite import to_yaml

_NAME = "kopylite"


def kubeconfig(url: str, token: str, certificate: bytes, namespace: str) -> str:
    """The text; `certificate` is the CA's, PEM, b"" for plain HTTP."""
    cluster: dict[str, Any] = {"server": url}
    if certificate:
        cluster["certificate-authority-data"] = base64.b64encode(certificate).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace}}],
        "current-context": _NAME,
    }
    return to_yaml([document], start=False)
