"""Kubeconfigs of servers on this machine, as text. `cli/kubeconfigs.py` puts them into files that others use, too."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from kopylite.objects.yamlwrite import to_yaml
from kopylite.serving.authority import IssuedCertificate

_NAME = "kopylite"


def kubeconfig(url: str, user: Mapping[str, str], ca: bytes, namespace: str = "default") -> str:
    """The text.

    Args:
        user: the entry of the user: a token, or a certificate_user.
        ca: PEM; b"" for plain HTTP.
        namespace: of the context.
    """
    cluster: dict[str, Any] = {"server": url}
    if ca:
        cluster["certificate-authority-data"] = _base64(ca)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {**user}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace}}],
        "current-context": _NAME,
    }
    return to_yaml([document], start=False)


def certificate_user(client: IssuedCertificate) -> dict[str, str]:
    """The entry of a user who shows a certificate."""
    return {"client-certificate-data": _base64(client.certificate), "client-key-data": _base64(client.key)}


def _base64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
