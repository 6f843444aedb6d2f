"""Certificates over years, replicas that start at once, Secrets that somebody breaks; and what is served with them."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.client import Client
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import Forbidden, Invalid
from kopylite.objects import Unstructured
from kopylite.serving.authority import Authority, CertificateAuthority
from kopylite.testing import EmbeddedCluster
from kopylite.webhooks.certificates import (
    SECRET,
    BadCertificate,
    SecretCertificates,
    ServingPair,
    distrust,
    joined,
    load_pair,
    new_context,
    pair_in,
    renewed,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ["shop-webhooks.default.svc", "127.0.0.1"]


def trusts(bundle: bytes, parts: Mapping[str, bytes], now: datetime) -> bool:
    """Whether a caller with this bundle takes this certificate."""
    authorities = Authority.certificates(bundle, now)
    return Authority.serving(parts["tls.crt"], parts["tls.key"], HOSTS, authorities, now) is not None


def test_through_the_years_every_certificate_is_trusted_by_the_bundle_before_it() -> None:
    parts = renewed({}, HOSTS, BEGIN)
    seen: set[bytes] = set()
    for days in range(0, 365 * 4, 7):
        now = BEGIN + timedelta(days=days)
        after = renewed(parts, HOSTS, now)
        assert trusts(after["ca.crt"], after, now)
        assert trusts(parts["ca.crt"], after, now), "an API server that was not told yet"
        assert trusts(after["ca.crt"], parts, now), "a replica that serves the old one yet"
        assert renewed(after, HOSTS, now) == after
        parts = after
        seen.add(parts["ca.key"])
    assert len(seen) >= 3


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from(["ca.crt", "ca.key", "tls.crt", "tls.key"]), st.binary(max_size=50)))
def test_whatever_a_secret_holds_is_mended(garbled: dict[str, bytes]) -> None:
    good = renewed({}, HOSTS, BEGIN)
    parts = renewed({**good, **garbled}, HOSTS, BEGIN)
    assert trusts(parts["ca.crt"], parts, BEGIN)


def test_other_hosts_need_another_certificate_of_the_same_authority() -> None:
    parts = renewed({}, HOSTS, BEGIN)
    after = renewed(parts, [*HOSTS, "other"], BEGIN)
    assert after["tls.crt"] != parts["tls.crt"]
    assert after["ca.crt"] == parts["ca.crt"]


async def test_two_replicas_that_start_at_once_agree_and_a_broken_secret_is_restored() -> None:
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        replicas = [SecretCertificates(client.live, "default", "certs", HOSTS) for _ in range(4)]
        pairs: list[ServingPair] = []

        async def start(replica: SecretCertificates) -> None:
            pairs.append(await replica.current(BEGIN))

        async with anyio.create_task_group() as tasks:
            for replica in replicas:
                tasks.start_soon(start, replica)
        assert len(set(pairs)) == 1
        await client.live.delete(SECRET, "certs", namespace="default")
        assert await replicas[0].current(BEGIN) == pairs[0]
        assert await stored(client) == await stored(client)
        await client.live.patch(SECRET, "certs", {"data": {"ca.key": "eA==", "tls.key": "eA=="}}, namespace="default")
        assert await replicas[1].current(BEGIN) == pairs[0]
        assert await replicas[2].current(BEGIN) == pairs[0]


async def stored(client: Client) -> Unstructured:
    return await client.live.get(SECRET, "certs", namespace="default")


def test_a_bad_pair_is_refused_and_its_key_is_not_shown(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    one, other = authority.server(HOSTS), authority.server(HOSTS)
    context = new_context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    load_pair(context, ServingPair(one.certificate, one.key))
    for chain, key in ((one.certificate, other.key), (b"", b""), (b"garbage", one.key)):
        with pytest.raises(BadCertificate) as caught:
            load_pair(context, ServingPair(chain, key))
        assert "PRIVATE" not in str(caught.value)
    assert "PRIVATE" not in repr(ServingPair(one.certificate, one.key))
    assert "PRIVATE" not in repr(Authority.new("x", 1, BEGIN))
    with pytest.raises(BadCertificate, match=r"tls\.crt"):
        pair_in(tmp_path)
    (tmp_path / "tls.crt").write_bytes(one.certificate)
    (tmp_path / "tls.key").write_bytes(one.key)
    assert pair_in(tmp_path) == ServingPair(one.certificate, one.key)


def test_what_callers_will_not_take_is_told_as_they_would() -> None:
    authority, other = CertificateAuthority("one"), CertificateAuthority("other")
    issued = authority.server(HOSTS)

    def told(bundle: bytes = b"", host: str = "") -> str:
        return distrust(ServingPair(issued.certificate, issued.key, bundle), host)

    for bundle in (b"", authority.certificate, other.certificate + authority.certificate, issued.certificate):
        assert told(bundle, HOSTS[0]) == told(bundle) == ""
    assert "local issuer" in told(other.certificate, HOSTS[0])
    assert "not valid for 'elsewhere.svc'" in told(authority.certificate, "elsewhere.svc")
    assert "not valid for '192.0.2.1'" in told(authority.certificate, "192.0.2.1")
    assert "unreadable" in told(b"-----BEGIN CERTIFICATE-----\xff", HOSTS[0])


@pytest.mark.parametrize(("began", "problem"), [(-20, "expired"), (-5, ""), (5, "not yet valid")])
def test_a_certificate_is_trusted_in_its_time(began: int, problem: str) -> None:
    then = SYSTEM_CLOCK.now() + timedelta(days=began)
    authority = Authority.new("one", 100, then - timedelta(days=50))
    chain, key = authority.sign(HOSTS, 10, then)
    for bundle in (authority.certificate, b""):
        told = distrust(ServingPair(chain, key, bundle))
        assert problem in told
        assert bool(told) == bool(problem)


@pytest.mark.parametrize("days", [-400, -2, 365, 3000])
def test_a_clock_that_was_wrong_is_forgotten_when_it_is_right_again(days: int) -> None:
    wrong = renewed({}, HOSTS, BEGIN + timedelta(days=days))
    parts = renewed(wrong, HOSTS, BEGIN)
    assert trusts(parts["ca.crt"], parts, BEGIN)
    assert renewed(parts, HOSTS, BEGIN) == parts
    if days > 1:
        assert parts["ca.crt"] != wrong["ca.crt"], "no caller takes what is not valid yet"


def test_clocks_that_differ_by_hours_do_not_fight() -> None:
    parts = renewed({}, HOSTS, BEGIN)
    for hours in (-12, 12, -1, 1):
        assert renewed(parts, HOSTS, BEGIN + timedelta(hours=hours)) == parts


def test_a_bundle_of_many_authorities_is_cut() -> None:
    many = b"".join(Authority.new(f"ca {number}", 10, BEGIN).certificate for number in range(30))
    parts = renewed({**renewed({}, HOSTS, BEGIN), "ca.crt": many}, HOSTS, BEGIN)
    assert 2 <= parts["ca.crt"].count(b"BEGIN") < 12
    assert trusts(parts["ca.crt"], parts, BEGIN)


def test_what_callers_trust_stays_in_the_bundle_until_it_is_over() -> None:
    old, new = Authority.new("old", 30, BEGIN), Authority.new("new", 300, BEGIN)
    both = joined(new.certificate, old.certificate, BEGIN + timedelta(days=1))
    assert both == new.certificate + old.certificate
    assert joined(new.certificate, both, BEGIN + timedelta(days=1)) == both
    assert joined(new.certificate, both, BEGIN + timedelta(days=31)) == new.certificate
    assert joined(new.certificate, b"garbage -----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", BEGIN) == (
        new.certificate
    )
    assert joined(b"", both, BEGIN) == b""
    own = CertificateAuthority().server(HOSTS).certificate
    assert joined(new.certificate, own, BEGIN) == new.certificate + own, "callers may trust a certificate itself"


def test_replicas_of_two_authorities_write_a_bundle_once_and_do_not_fight_for_its_order() -> None:
    mine, yours = (Authority.new(name, 300, BEGIN).certificate for name in ("mine", "yours"))
    now = BEGIN + timedelta(days=1)
    both = joined(mine, joined(yours, b"", now), now)
    assert both == mine + yours
    assert joined(yours, both, now) == joined(mine, both, now) == both


def test_a_key_gets_to_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    pair = CertificateAuthority().server(HOSTS)
    load_pair(new_context(), ServingPair(pair.certificate, pair.key))


async def test_a_secret_that_cannot_be_written_is_served_from_as_long_as_it_is_valid() -> None:
    """Immutable, or without the right to update it."""
    soon = BEGIN + timedelta(days=70)
    late = BEGIN + timedelta(days=100)
    async with EmbeddedCluster() as cluster, cluster.client() as client:
        first = await SecretCertificates(client.live, "default", "certs", HOSTS).current(BEGIN)
        reader = cluster.user_kubeconfig("ann")
        for wire in READER:
            await client.create(Unstructured(wire))
        async with cluster.client(reader) as ann:
            replica = SecretCertificates(ann.live, "default", "certs", HOSTS)
            assert await replica.current(BEGIN) == first
            assert replica.problem == ""
            assert await replica.current(soon) == first
            assert 'User "ann" cannot update resource "secrets"' in replica.problem
            with pytest.raises(Forbidden, match='User "ann" cannot update resource "secrets"'):
                await replica.current(late)
        await client.live.patch(SECRET, "certs", {"immutable": True}, namespace="default")
        replica = SecretCertificates(client.live, "default", "certs", HOSTS)
        assert await replica.current(soon) == first
        assert "Secret default/certs is immutable" in replica.problem
        with pytest.raises(Invalid, match="is immutable, and its certificates are to be renewed: delete it"):
            await replica.current(late)
        await client.live.delete(SECRET, "certs", namespace="default")
        assert await replica.current(late) != first
        assert replica.problem == ""


READER = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "reader", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    },
]  # fmt: skip
