from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from kopylite.doctor.access import Shown, claims_of, judge, server_certificate, service_account
from kopylite.doctor.certificates import certificates, validities, validity
from kopylite.doctor.findings import FindingSeverity
from kopylite.doctor.versions import judge_clock, judge_version, server_time

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def certificate(begins: dt.datetime, ends: dt.datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(2**150 + 1).not_valid_before(begins).not_valid_after(ends).sign(key, hashes.SHA256())
    )  # fmt: skip
    return made.public_bytes(serialization.Encoding.PEM)


def token(**claims: Any) -> str:
    def coded(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"Bearer {coded({})}.{coded(claims)}.c2ln"


@pytest.mark.parametrize(
    "end", [dt.datetime(2049, 12, 31, 23, 59, 59), dt.datetime(2051, 1, 1), dt.datetime(9999, 12, 31)]
)
def test_when_a_certificate_ends_is_read_from_its_bytes(end: dt.datetime) -> None:
    begin = dt.datetime(1999, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    bundle = b"junk\n" + certificate(begin, end.replace(tzinfo=dt.UTC)) + certificate(begin, begin + DAY)
    first, second = validities(bundle)
    assert (first.begins, first.ends) == (begin, end.replace(tzinfo=dt.UTC))
    assert second.ends == begin + DAY


@given(st.binary(max_size=300))
def test_any_bytes_are_a_certificate_or_none(data: bytes) -> None:
    assert validity(data) is None or data
    validities(b"-----BEGIN CERTIFICATE-----" + base64.b64encode(data) + b"-----END CERTIFICATE-----" + data)


@given(st.data())
def test_a_certificate_that_is_cut_or_garbled_is_none_or_one(data: st.DataObject) -> None:
    der = bytearray(next(certificates(GOOD)))
    for _ in range(data.draw(st.integers(1, 4))):
        der[data.draw(st.integers(0, min(len(der) - 1, 80)))] = data.draw(st.integers(0, 255))
    validity(bytes(der[: data.draw(st.integers(0, len(der)))]))


GOOD = certificate(NOW - 300 * DAY, NOW + 65 * DAY)


@pytest.mark.parametrize(
    ("begins", "ends", "found"),
    [
        (-300, 65, None),
        (-358, 6, FindingSeverity.WARNING),
        (-365, -1, FindingSeverity.ERROR),
        (2, 9, FindingSeverity.ERROR),
        (-1, 3, None),  # a short life is no short rest of a long one
        (-9, 1, FindingSeverity.WARNING),
    ],
)
def test_a_client_certificate_is_told_of_before_it_ends(begins: int, ends: int, found: FindingSeverity | None) -> None:
    pem = certificate(NOW + begins * DAY, NOW + ends * DAY) + certificate(NOW - 999 * DAY, NOW - DAY)
    findings = list(judge(Shown("kubeconfig", pem), NOW))
    assert [each.severity for each in findings] == ([found] if found else [])


@pytest.mark.parametrize(
    ("issued", "left", "renews", "found"),
    [
        (3600, 3500, False, None),
        (3600, 600, False, FindingSeverity.WARNING),
        (3600, -5, False, FindingSeverity.ERROR),
        (3600, 600, True, None),
        (3600, 30, True, FindingSeverity.WARNING),
        (86400 * 90, 86400 * 2, False, None),
        (86400 * 90, 3600 * 5, False, FindingSeverity.WARNING),
    ],
)
def test_a_token_is_told_of_before_it_ends(issued: int, left: int, renews: bool, found: FindingSeverity | None) -> None:
    ends = NOW.timestamp() + left
    shown = Shown("kubeconfig", authorization=token(exp=int(ends), iat=int(ends - issued)), renews=renews)
    findings = list(judge(shown, NOW))
    assert [each.severity for each in findings] == ([found] if found else [])
    assert all("Bearer" not in each.what + each.fix for each in findings)


@given(st.text() | st.builds(lambda a, b: f"Bearer {a}.{b}.c", st.text(), st.text()))
def test_any_header_is_read_without_an_error(header: str) -> None:
    assert isinstance(claims_of(header), dict)
    list(judge(Shown("x", authorization=header, renews=True, lifetime=0.0), NOW))


def test_claims_of_other_types_count_for_nothing() -> None:
    assert claims_of(f"Bearer a.{base64.urlsafe_b64encode(b'[1]').decode()}.c") == {}
    assert list(judge(Shown("x", authorization=token(exp="soon", iat=[])), NOW)) == []
    assert service_account(token(sub="system:serviceaccount:a:b")) == "system:serviceaccount:a:b"
    assert service_account(token(sub="alice")) == ""


def test_the_certificate_of_the_server_is_looked_at() -> None:
    (found,) = server_certificate("h:1", "Jun  3 00:00:00 2026 GMT", "Jun  3 00:00:00 2025 GMT", NOW)
    assert "ends in 2 d" in found.what
    assert list(server_certificate("h:1", "never", "", NOW)) == []


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (0, None),
        (-1, None),
        (4, None),
        (-5, None),
        (7, FindingSeverity.WARNING),
        (-8, FindingSeverity.WARNING),
        (700, FindingSeverity.ERROR),
    ],
)
def test_clocks_that_differ_by_more_than_the_way_are_told_of(theirs: int, found: FindingSeverity | None) -> None:
    after = NOW + dt.timedelta(seconds=1)
    findings = list(judge_clock("s", NOW + dt.timedelta(seconds=theirs), NOW, after))
    assert [each.severity for each in findings] == ([found] if found else [])


@given(st.text())
def test_any_date_header_is_a_time_or_none(header: str) -> None:
    found = server_time(header)
    assert found is None or found.tzinfo is not None


@pytest.mark.parametrize(
    ("version", "models", "count"),
    [
        ("v1.37.2", "36.0.0", 0),
        ("v1.38.0", "37.0", 0),
        ("v1.41.0", "36.1", 2),
        ("v1.28.9+k3s1", "36.1", 2),
        ("odd", "", 0),
    ],
)
def test_a_version_far_away_is_told_of(version: str, models: str, count: int) -> None:
    assert len(list(judge_version("s", version, models))) == count
