"""Who a kubeconfig's user is: which of its credentials count, in client-go's order, and never none by accident."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from kopylite.client.clusterinfo import ClusterInfo
from kopylite.client.credentials import Credentials, StaticCredentials, basic, bearer, token_file
from kopylite.client.kubeconfig import KubeconfigUser
from kopylite.errors import KubeconfigError

_REMOVED = {
    "gcp": "the exec plugin gke-gcloud-auth-plugin",
    "azure": "the exec plugin kubelogin",
}


def credentials_of(user: KubeconfigUser, where: str, cluster: ClusterInfo) -> Credentials:
    """The credentials of a user, for requests: a token before basic authentication before a provider or plugin.

    A client certificate is shown beside any of them, and makes a plugin unnecessary.

    Raises:
        KubeconfigError: there are none, or they exclude each other; `where` begins the message.
    """
    _check_combination(user, where)
    if user.token_file:
        fallback = bearer(user.token, where) if user.token else None
        path = Path(user.token_file)
        if fallback is None and not path.is_file():
            raise KubeconfigError(f"{where}: tokenFile names {path}, which is no file")
        return token_file(path, fallback=fallback)
    if user.token:
        return StaticCredentials(bearer(user.token, where))
    if user.username:
        return StaticCredentials(basic(user.username, user.password or ""))
    if has_certificate(user) and user.auth_provider is None:
        return StaticCredentials()
    if user.exec is not None:
        from kopylite.client.execplugin import exec_plugin

        return exec_plugin(user.exec, where, cluster)
    if user.auth_provider is not None:
        name = user.auth_provider.name or ""
        if name == "oidc":
            from kopylite.client.oidc import oidc_provider

            return oidc_provider(user.auth_provider.config or {}, where)
        way_out = _REMOVED.get(name, "an exec plugin is its usual successor")
        raise KubeconfigError(f"{where}: there is no auth provider {name!r} any more; use instead: {way_out}")
    raise KubeconfigError(
        f"{where}: it holds no credentials (token, tokenFile, client-certificate, username, exec or auth-provider), "
        "and the server would know nobody; add them, or ask for an anonymous client (anonymous=True, --anonymous)"
    )


def has_certificate(user: KubeconfigUser) -> bool:
    return bool(user.client_certificate or user.client_certificate_data)


def impersonation(user: KubeconfigUser, where: str) -> tuple[tuple[str, str], ...]:
    """The headers with which a user acts as another one. Raises KubeconfigError: more than a name, without a name."""
    if not user.impersonate:
        if user.impersonate_uid or user.impersonate_groups or user.impersonate_extra:
            raise KubeconfigError(f"{where}: as-uid, as-groups and as-user-extra need a user: add `as`")
        return ()
    headers = [("Impersonate-User", user.impersonate)]
    if user.impersonate_uid:
        headers.append(("Impersonate-Uid", user.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups or ()]
    for name, values in (user.impersonate_extra or {}).items():
        # A header's name cannot hold every character that a key may.
        headers += [(f"Impersonate-Extra-{quote(name, safe='')}", value) for value in values]
    return tuple(headers)


def _check_combination(user: KubeconfigUser, where: str) -> None:
    if (user.token or user.token_file) and (user.username or user.password):
        raise KubeconfigError(f"{where}: it has a token and a user name with password; only one of them can be used")
    if user.exec is not None and user.auth_provider is not None:
        raise KubeconfigError(f"{where}: it has an auth-provider and an exec plugin; only one of them can be used")
