from __future__ import annotations

import pytest

from kopylite.errors import RegistrationError
from kopylite.objects import Kind


def test_a_kind_shows_itself_as_it_is_written() -> None:
    assert repr(Kind("apps/v1", "Deployment")) == "Kind('apps/v1', 'Deployment')"
    assert repr(Kind("a.b/v1", "C", "cs", True)) == "Kind('a.b/v1', 'C', 'cs', True)"
    assert str(Kind("apps/v1", "Deployment")) == "Deployment.apps/v1"


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        ("ConfigMap", "v1", r"Did you mean Kind\('v1', 'ConfigMap'\)\?"),
        ("apps/v1/Deployment", "x", "'apps/v1' or 'v1'"),
    ],
)
def test_a_kind_that_is_written_the_wrong_way_round_is_refused(api_version: str, kind: str, hint: str) -> None:
    with pytest.raises(RegistrationError, match=hint):
        Kind(api_version, kind)


def test_an_api_version_has_one_slash_at_most() -> None:
    with pytest.raises(RegistrationError, match="at most one slash"):
        Kind("example.com/v1/extra", "Thing")
