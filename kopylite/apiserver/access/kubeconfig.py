"""The kubeconfig of an embedded server, as text and as a file. Pure but for writing the file."""

from __future__ import annotations

import base64
import os
from pathlib import Path
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


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read: it holds a credential."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
