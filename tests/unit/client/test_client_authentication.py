"""Which of a kubeconfig user's credentials count."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path
from typing import Any

import pytest

from kopylite.client.authentication import credentials_of, has_certificate, impersonation
from kopylite.client.clusterinfo import ClusterInfo
from kopylite.client.credentials import StaticCredentials
from kopylite.client.kubeconfig import AuthProvider, ExecSpec, KubeconfigUser
from kopylite.errors import KubeconfigError

CLUSTER = ClusterInfo("https://example.com:6443")
PLUGIN = ExecSpec(command="plugin", api_version="client.authentication.k8s.io/v1", interactive_mode="Never")


def authorization(**settings: Any) -> str | None:
    """The header of a user whose credentials never change."""
    credentials = credentials_of(KubeconfigUser(**settings), "user me", CLUSTER)
    assert isinstance(credentials, StaticCredentials)
    identity = credentials.current()
    assert identity is not None
    return identity.authorization


def test_each_kind_of_credentials_makes_its_header() -> None:
    assert authorization(token="t") == "Bearer t"
    assert authorization(username="u", password="p") == "Basic " + base64.b64encode(b"u:p").decode()
    assert authorization(username="u") == "Basic " + base64.b64encode(b"u:").decode()
    assert authorization(client_certificate="/cert.pem") is None, "the certificate is shown below HTTP"


async def test_a_token_file_counts_before_the_token_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("of the file")
    user = KubeconfigUser(token="beside", token_file=str(path))
    credentials = credentials_of(user, "user me", CLUSTER)
    assert (await credentials.fetch()).authorization == "Bearer of the file"
    path.unlink()
    again = credentials_of(user, "user me", CLUSTER)
    assert (await again.fetch()).authorization == "Bearer beside"


def test_a_token_file_that_is_none_is_told_at_once_where_nothing_stands_beside_it(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"user me: tokenFile names .*none, which is no file"):
        credentials_of(KubeconfigUser(token_file=str(tmp_path / "none")), "user me", CLUSTER)


def test_what_is_certain_counts_before_a_plugin() -> None:
    assert authorization(token="t", exec=PLUGIN) == "Bearer t"
    assert authorization(username="u", exec=PLUGIN) is not None
    assert authorization(client_certificate_data="Y2VydA==", exec=PLUGIN) is None
    assert not isinstance(credentials_of(KubeconfigUser(exec=PLUGIN), "user me", CLUSTER), StaticCredentials)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *itertools.product([{"token": "t"}, {"token_file": "/f"}], [{"username": "u"}, {"password": "p"}]),
        ({"exec": PLUGIN}, {"auth_provider": AuthProvider(name="oidc")}),
    ],
)
def test_what_excludes_each_other_is_refused(one: dict[str, Any], other: dict[str, Any]) -> None:
    with pytest.raises(KubeconfigError, match=r"user me: it has .* only one of them can be used"):
        credentials_of(KubeconfigUser(**one, **other), "user me", CLUSTER)


@pytest.mark.parametrize(
    ("name", "way_out"),
    [("gcp", "gke-gcloud-auth-plugin"), ("azure", "kubelogin"), ("mine", "an exec plugin"), (None, "'' ")],
)
def test_an_auth_provider_that_is_gone_is_named_with_what_follows_it(name: str | None, way_out: str) -> None:
    with pytest.raises(KubeconfigError, match=way_out):
        credentials_of(KubeconfigUser(auth_provider=AuthProvider(name=name)), "user me", CLUSTER)


def test_nobody_is_anonymous_by_accident() -> None:
    for user in (KubeconfigUser(), KubeconfigUser(token=""), KubeconfigUser(password="p")):
        with pytest.raises(KubeconfigError, match="user me: it holds no credentials"):
            credentials_of(user, "user me", CLUSTER)


@pytest.mark.parametrize("field", ["client_certificate", "client_certificate_data"])
def test_a_certificate_comes_as_a_file_or_in_place(field: str) -> None:
    for value in ("x", ""):
        settings: dict[str, Any] = {field: value}
        assert has_certificate(KubeconfigUser(**settings)) is bool(value)


def test_whom_a_user_acts_as_is_told_in_headers() -> None:
    user = KubeconfigUser(
        impersonate="a", impersonate_uid="1", impersonate_groups=["g", "h"], impersonate_extra={"x.io/Y": ["1", "2"]}
    )
    assert impersonation(user, "user me") == (
        ("Impersonate-User", "a"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-x.io%2FY", "1"),
        ("Impersonate-Extra-x.io%2FY", "2"),
    )
    assert impersonation(KubeconfigUser(), "user me") == ()


@pytest.mark.parametrize(
    "more", [{"impersonate_uid": "1"}, {"impersonate_groups": ["g"]}, {"impersonate_extra": {"x": ["y"]}}]
)
def test_more_than_a_name_needs_the_name(more: dict[str, Any]) -> None:
    with pytest.raises(KubeconfigError, match="user me: as-uid, as-groups and as-user-extra need a user"):
        impersonation(KubeconfigUser(**more), "user me")
