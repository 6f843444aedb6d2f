"""Where the API server is and how to speak to it: from a kubeconfig, or from the pod that this runs in."""

from __future__ import annotations

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from kopylite.client.credentials import (
    Credentials,
    Identity,
    StaticCredentials,
    auth_provider,
    basic,
    bearer,
    exec_plugin,
    token_file,
)
from kopylite.client.kubeconfig import Entry, Kubeconfig, read_kubeconfig
from kopylite.client.tls import TlsSettings
from kopylite.errors import KubeconfigError

logger = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# What the server records as the writer of a field when no field manager is given.
USER_AGENT = "kopylite"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How to reach one API server, as one user. Its repr holds no secret.

    Attributes:
        server: the URL.
        credentials: who the client is.
        tls: certificates; unused for http URLs.
        namespace: the default one of the context or the pod.
        proxy: URL of an HTTP proxy.
        headers: sent with every request (impersonation).
        compression: let the server compress large answers.
        max_connections: requests at the same time, and as many lists beside them; more wait. None: 64, or as many as
            the operator has workers. Watches are not counted.
        source: where this came from, for people: "kubeconfig FILE, context NAME" or "in-cluster".
    """

    server: str
    credentials: Credentials = field(default_factory=StaticCredentials, repr=False)
    tls: TlsSettings = field(default_factory=TlsSettings)
    namespace: str = "default"
    proxy: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    user_agent: str = USER_AGENT
    compression: bool = False
    max_connections: int | None = None
    source: str = ""


def load_config(kubeconfig: str | Path | None = None, context: str | None = None) -> ClientConfig:
    """The connection settings, looked for as kubectl and controller-runtime do.

    In this order: `kubeconfig`; the files of KUBECONFIG; the service account of the pod; ~/.kube/config. A
    `context` skips the pod.

    Raises:
        KubeconfigError: nothing was found, or what was found cannot be used; says what to do.
    """
    if kubeconfig is not None:
        return from_kubeconfig(read_kubeconfig([Path(kubeconfig).expanduser()]), context)
    if listed := [Path(p).expanduser() for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]:
        return from_kubeconfig(read_kubeconfig(listed, skip_missing=True), context)
    if context is None and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster(SERVICE_ACCOUNT)
    default = Path.home() / ".kube" / "config"
    if not default.exists():
        raise KubeconfigError(
            f"no cluster to connect to: --kubeconfig and KUBECONFIG are not set, this is no pod with a service "
            f"account, and there is no {default}"
        )
    return from_kubeconfig(read_kubeconfig([default]), context)


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> ClientConfig:
    """The settings of the pod that this runs in; token and CA are read again when they are rotated.

    Proxy variables of the environment are not for this connection.

    Raises:
        KubeconfigError: this is no pod, or its service account is not mounted.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        raise KubeconfigError("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    if not (folder / "token").exists():
        raise KubeconfigError(f"{folder / 'token'} is missing: does the pod have automountServiceAccountToken: false?")
    namespace = folder / "namespace"
    return ClientConfig(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        credentials=token_file(folder / "token"),
        tls=TlsSettings(ca=folder / "ca.crt"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        source="in-cluster",
    )


def from_kubeconfig(kubeconfig: Kubeconfig, context: str | None = None) -> ClientConfig:
    """The settings of a context, by default the current one.

    Raises:
        KubeconfigError: names file, context, the rule that is broken, and the way out.
    """
    name, chosen = kubeconfig.context(context)
    cluster_name, user_name = (str(chosen.values.get(what, "")) for what in ("cluster", "user"))
    cluster = kubeconfig.find("clusters", cluster_name, name)
    user = kubeconfig.find("users", user_name, name) if user_name else Entry({}, chosen.file)
    where = f"kubeconfig {cluster.file}, cluster {cluster_name!r} of context {name!r}"
    server = _server(cluster.values, where)
    user_where = f"kubeconfig {user.file}, user {user_name!r} of context {name!r}"
    return ClientConfig(
        server=server,
        credentials=_credentials(user.values, user_where, user.file.absolute().parent),
        tls=_tls(cluster.values, user.values, where, user_where),
        namespace=str(chosen.values.get("namespace", "default")),
        proxy=_proxy(cluster.values, server, where),
        headers=_impersonation(user.values),
        source=f"kubeconfig {chosen.file}, context {name!r}",
    )


def _server(cluster: Mapping[str, Any], where: str) -> str:
    server = str(cluster.get("server", ""))
    if "://" not in server:
        server = f"http://{server}" if server else ""
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise KubeconfigError(f"{where}: server should be a URL such as https://host:6443, not {server!r}")
    if parts.username or parts.password:
        raise KubeconfigError(f"{where}: server holds a user name; put it into the user's entry")
    return server.rstrip("/")


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], where: str, user_where: str) -> TlsSettings:
    insecure = cluster.get("insecure-skip-tls-verify") is True
    ca = _file_or_data(cluster, "certificate-authority", where)
    if insecure:
        logger.warning(
            "%s: insecure-skip-tls-verify is set: anybody on the way can read and change everything; "
            "set certificate-authority instead",
            where,
        )
    certificate = _file_or_data(user, "client-certificate", user_where)
    key = _file_or_data(user, "client-key", user_where)
    if (certificate is None) != (key is None):
        raise KubeconfigError(f"{user_where}: client-certificate and client-key need each other; add the missing one")
    return TlsSettings(ca, certificate, key, cluster.get("tls-server-name"), insecure)


def _file_or_data(values: Mapping[str, Any], name: str, where: str) -> bytes | Path | None:
    data, file = values.get(f"{name}-data"), values.get(name)
    if data is not None:
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error:
            raise KubeconfigError(f"{where}: {name}-data is no base64; paste it without line breaks") from None
    if file is None:
        return None
    path = Path(str(file))
    if not path.is_file():
        raise KubeconfigError(f"{where}: {name} names {path}, which is no file")
    return path


def _credentials(user: Mapping[str, Any], where: str, folder: Path) -> Credentials:
    if "exec" in user:
        return exec_plugin(_exec_spec(user["exec"], where, folder), where)
    if "auth-provider" in user:
        return auth_provider(user, where)
    if "tokenFile" in user:
        path = Path(str(user["tokenFile"]))
        if not path.is_file():
            raise KubeconfigError(f"{where}: tokenFile names {path}, which is no file")
        return token_file(path)
    if "token" in user:
        return StaticCredentials(bearer(str(user["token"])))
    if "username" in user:
        return StaticCredentials(basic(str(user["username"]), str(user.get("password", ""))))
    return StaticCredentials(Identity())


def _exec_spec(spec: Any, where: str, folder: Path) -> Mapping[str, Any]:
    if not isinstance(spec, dict) or not spec.get("command") or not spec.get("apiVersion"):
        raise KubeconfigError(f"{where}: exec needs a command and an apiVersion")
    if spec.get("interactiveMode") == "Always":
        raise KubeconfigError(f"{where}: exec has interactiveMode: Always, and an operator has nobody to ask")
    command = str(spec["command"])
    # As kubectl does: a command with a separator is relative to its kubeconfig, a bare one comes from the PATH.
    return spec | {"command": str(folder / command) if os.sep in command else command}


def _proxy(cluster: Mapping[str, Any], server: str, where: str) -> str | None:
    """The proxy of the cluster's entry, else of the environment; never for the machine itself."""
    parts = urlsplit(server)
    proxy = cluster.get("proxy-url")
    if proxy is None:
        host = parts.hostname or ""
        if host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(parts.netloc):
            return None
        proxy = getproxies_environment().get(parts.scheme)
        where = "the environment's proxy setting"
    if proxy is None:
        return None
    if urlsplit(str(proxy)).scheme not in ("http", "https"):
        raise KubeconfigError(f"{where}: proxies are supported as http:// and https:// URLs only")
    return str(proxy)


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    if "as" in user:
        headers.append(("Impersonate-User", str(user["as"])))
    if "as-uid" in user:
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for name, values in (user.get("as-user-extra") or {}).items():
        # A header's name cannot hold every character that a key may.
        headers += [(f"Impersonate-Extra-{quote(str(name), safe='')}", str(value)) for value in values]
    return tuple(headers)
