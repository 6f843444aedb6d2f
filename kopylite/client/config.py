"""Where the API server is and how to speak to it: from a kubeconfig, or from the pod that this runs in."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from kopylite.client.addresses import is_loopback, proxy_url, server_url, tls_name
from kopylite.client.credentials import Credentials, StaticCredentials, check_header, token_file
from kopylite.client.tls import TlsSettings
from kopylite.errors import KubeconfigError
from kopylite.redaction import remember

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# What the server records as the writer of a field when no field manager is given.
USER_AGENT = "kopylite"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How to reach one API server, as one user. Its repr holds no secret.

    Attributes:
        server: the URL.
        credentials: who the client is; by default nobody.
        tls: certificates; unused for http URLs.
        namespace: the default one of the context or the pod.
        proxy: URL of an http, https or socks5 proxy (socks5 needs kopylite[socks]).
        headers: sent with every request (impersonation).
        compression: let the server compress large answers.
        max_connections: requests at the same time, and as many lists beside them; more wait. None: 64, or as many as
            the operator has workers. Watches are not counted.
        source: where this came from, for people: "kubeconfig FILE, context NAME" or "in-cluster".
        allow_plain_http: credentials may go to another machine over http, readable by everybody on the way.

    Raises:
        KubeconfigError: server or proxy is no usable URL, a header is no header, or credentials would go to another
            machine over plain HTTP. client-go sends none there and is nobody without a word.
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
    allow_plain_http: bool = False

    def __post_init__(self) -> None:
        where = self.source or "the client's configuration"
        object.__setattr__(self, "server", server_url(self.server, where))
        if self.tls.server_name:
            tls_name(self.tls.server_name, where)
        if self.proxy is not None:
            object.__setattr__(self, "proxy", proxy_url(self.proxy, where))
            remember(urlsplit(self.proxy).password or "")
        for name, value in (*self.headers, ("User-Agent", self.user_agent)):
            check_header(f"{name}{value}", f"{where}: the header {name[:40]!a}")
        if self.server.startswith("http:") and not is_loopback(self.server) and not self.allow_plain_http:
            anonymous = isinstance(self.credentials, StaticCredentials) and self.credentials.anonymous
            if not anonymous:
                raise KubeconfigError(
                    f"{where}: {self.server} is plain HTTP to another machine, and everybody on the way could read the "
                    "credentials; use https:// (a server without a scheme is http), or accept that: "
                    "allow_plain_http=True, --allow-plain-http"
                )


def load_config(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    anonymous: bool = False,
    allow_plain_http: bool = False,
) -> ClientConfig:
    """The connection settings, looked for as kubectl and controller-runtime do.

    In this order: `kubeconfig`; the files of KUBECONFIG; the service account of the pod; ~/.kube/config. A
    `context` skips the pod.

    Args:
        anonymous: connect as nobody, whatever credentials there are. Without it, a context without credentials is an
            error and never a client that the server knows as system:anonymous.
        allow_plain_http: let credentials go to another machine over http.

    Raises:
        KubeconfigError: nothing was found, or what was found cannot be used; says what to do.
    """
    files, skip_missing = _files(kubeconfig, context)
    if files is None:
        config = in_cluster(SERVICE_ACCOUNT)
        return replace(config, credentials=StaticCredentials()) if anonymous else config
    # Late: a pod never needs YAML, plugins and providers, and an operator's module is imported without them.
    from kopylite.client.contexts import from_kubeconfig
    from kopylite.client.kubeconfig import read_kubeconfig

    found = read_kubeconfig(files, skip_missing=skip_missing)
    return from_kubeconfig(found, context, anonymous=anonymous, allow_plain_http=allow_plain_http)


def _files(kubeconfig: str | Path | None, context: str | None) -> tuple[list[Path] | None, bool]:
    """The kubeconfigs to read, and whether missing ones are no error; None: this is a pod."""
    if kubeconfig is not None:
        return [Path(kubeconfig).expanduser()], False
    if listed := [Path(p).expanduser() for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]:
        return listed, True
    if context is None and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists():
        return None, False
    default = Path.home() / ".kube" / "config"
    if not default.exists():
        raise KubeconfigError(
            f"no cluster to connect to: --kubeconfig and KUBECONFIG are not set, this is no pod with a service "
            f"account, and there is no {default}"
        )
    return [default], False


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
