"""From a context of a kubeconfig to a ClientConfig: what its cluster and its user mean, as client-go takes them."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kopylite.client.addresses import environment_proxy, proxy_url, server_url
from kopylite.client.authentication import credentials_of, has_certificate, impersonation
from kopylite.client.clusterinfo import ClusterInfo
from kopylite.client.config import ClientConfig
from kopylite.client.credentials import Credentials, StaticCredentials
from kopylite.client.kubeconfig import Kubeconfig, KubeconfigCluster, KubeconfigUser
from kopylite.client.tls import TlsSettings
from kopylite.errors import KubeconfigError

logger = logging.getLogger(__name__)

# The cluster's extension that is meant for exec plugins.
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
# What `kubectl config view` shows instead of secrets and certificates.
_LEFT_OUT = ("REDACTED", "DATA+OMITTED")


def from_kubeconfig(
    kubeconfig: Kubeconfig, context: str | None = None, *, anonymous: bool = False, allow_plain_http: bool = False
) -> ClientConfig:
    """The settings of a context, by default the current one; arguments as in `load_config`.

    Raises:
        KubeconfigError: names file, context, the rule that is broken, and the way out.
    """
    name, chosen = kubeconfig.context(context)
    found = kubeconfig.cluster_of(name, chosen)
    cluster = found.values
    where = f"kubeconfig {found.file}, cluster {chosen.values.cluster!r} of context {name!r}"
    user, user_where = KubeconfigUser(), f"kubeconfig {chosen.file}, context {name!r}"
    if not anonymous:
        entry = kubeconfig.user_of(name, chosen)
        user, user_where = entry.values, f"kubeconfig {entry.file}, user {chosen.values.user!r} of context {name!r}"
    _refuse_left_out({"certificate-authority-data": cluster.certificate_authority_data}, where)
    _refuse_left_out(
        {
            "client-certificate-data": user.client_certificate_data,
            "client-key-data": user.client_key_data,
            "token": None if user.token_file else user.token,  # the file is what counts
            "password": user.password,
        },
        user_where,
    )
    tls = _tls(cluster, user, where, user_where)
    speaks_tls = tls != TlsSettings()
    server = server_url(cluster.server or "", where, tls=speaks_tls)
    proxy = _proxy(cluster, server, where)
    credentials: Credentials = StaticCredentials()
    if not anonymous:
        info = ClusterInfo(server, replace(tls, certificate=None, key=None), proxy, _exec_extension(cluster))
        credentials = credentials_of(user, user_where, info)
        if server.startswith("http:") and isinstance(credentials, StaticCredentials) and credentials.anonymous:
            raise KubeconfigError(
                f"{user_where}: it has a client certificate only, which cannot be shown to {server}: use https://"
            )
    return ClientConfig(
        server=server,
        credentials=credentials,
        tls=tls,
        namespace=chosen.values.namespace or "default",
        proxy=proxy,
        headers=impersonation(user, user_where),
        source=f"kubeconfig {chosen.file}, context {name!r}",
        allow_plain_http=allow_plain_http,
    )


def _refuse_left_out(values: Mapping[str, str | None], where: str) -> None:
    for name, value in values.items():
        if value in _LEFT_OUT:
            raise KubeconfigError(
                f"{where}: {name} was left out by `kubectl config view`; save it again with `kubectl config view --raw`"
            )


def _tls(cluster: KubeconfigCluster, user: KubeconfigUser, where: str, user_where: str) -> TlsSettings:
    insecure = cluster.insecure_skip_tls_verify is True
    ca = _file_or_data(
        cluster.certificate_authority, cluster.certificate_authority_data, "certificate-authority", where
    )
    if insecure and ca is not None:
        raise KubeconfigError(
            f"{where}: it has both a certificate-authority and insecure-skip-tls-verify; remove the latter"
        )
    if insecure:
        logger.warning(
            "%s: insecure-skip-tls-verify is set: anybody on the way can read and change everything; "
            "set certificate-authority instead",
            where,
        )
    if not has_certificate(user):
        return TlsSettings(ca, None, None, cluster.tls_server_name or None, insecure)
    certificate = _file_or_data(user.client_certificate, user.client_certificate_data, "client-certificate", user_where)
    key = _file_or_data(user.client_key, user.client_key_data, "client-key", user_where)
    if key is None:
        raise KubeconfigError(f"{user_where}: client-certificate needs a client-key; add it")
    return TlsSettings(ca, certificate, key, cluster.tls_server_name or None, insecure)


def _file_or_data(file: str | None, data: str | None, name: str, where: str) -> bytes | Path | None:
    if file and data:
        raise KubeconfigError(f"{where}: it has both {name} and {name}-data; remove one of them")
    if data:
        try:
            # As Go reads it: line breaks are no part of it.
            return base64.b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
        except ValueError:  # binascii.Error, or characters beyond ASCII
            raise KubeconfigError(f"{where}: {name}-data is no base64; paste it anew") from None
    if not file:
        return None
    path = Path(file)
    if not path.is_file():
        raise KubeconfigError(f"{where}: {name} names {path}, which is no file")
    return path


def _proxy(cluster: KubeconfigCluster, server: str, where: str) -> str | None:
    """The proxy of the cluster's entry, else of the environment."""
    if cluster.proxy_url:
        return proxy_url(cluster.proxy_url, f"{where}: proxy-url")
    return environment_proxy(server, os.environ)


def _exec_extension(cluster: KubeconfigCluster) -> object:
    named = {extension.name: extension.extension for extension in cluster.extensions or ()}
    return named.get(_EXEC_EXTENSION)
