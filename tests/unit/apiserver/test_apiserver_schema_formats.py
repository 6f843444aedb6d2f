"""String formats. Each verdict was compared with a real kube-apiserver 1.37."""

from __future__ import annotations

import pytest

from kopylite.apiserver.schema.formats import conforms, recognised

GOOD = {
    "date": ["2020-01-01"],
    "date-time": ["2020-01-01T00:00:00Z", "2020-01-01t00:00:00.5+01:00"],
    "duration": ["1h30m", "2 hours", "5ms", "3 weeks", "0"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000"],
    "ipv4": ["1.2.3.4", "01.2.3.4"],
    "ipv6": ["::1"],
    "cidr": ["1.2.3.4/8", "::/0", "01.2.3.0/24"],
    "mac": ["00:00:5e:00:53:01", "0000.5e00.5301"],
    "uri": ["http://a.b/c", "/a", "mailto:x@y", "http://[::1]:80/", "*"],
    "email": ["a@b.c", "Some Name <a@b.c>"],
    "hostname": ["example.com", "localhost"],
    "byte": ["YWJj", "YQ=="],
    "hexcolor": ["#fff", "abcdef"],
    "rgbcolor": ["rgb(1,2,3)"],
    "isbn": ["0321751043", "978-0321751041"],
    "isbn10": ["080442957X"],
    "isbn13": ["978-0321751041"],
    "creditcard": ["4111 1111 1111 1111"],
    "ssn": ["111-11-1111"],
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "password": [""],
    "k8s-short-name": ["a", "a-b"],
    "k8s-long-name": ["a.b"],
}
BAD = {
    "date": ["2020-13-01", "x"],
    "date-time": ["2020-01-01", "2020-01-01T25:00:00Z", "2020-01-01T00:00:00"],
    "duration": ["x", "10"],
    "uuid": ["x"],
    "uuid4": ["123e4567-e89b-12d3-a456-426614174000"],
    "ipv4": ["1.2.3", "::1", "1.2.3.256"],
    "ipv6": ["1.2.3.4", "fe80::1%eth0"],
    "cidr": ["1.2.3.4", "1.2.3.4/33"],
    "mac": ["x", "00:00"],
    "uri": ["a", "http://a b", "http://a:b", "http://a/%zz", ":x", ""],
    "email": ["a", "@b", "a@b c"],
    "hostname": ["a.b", "a_b", "-a", "a" * 64],
    "byte": ["YWJ", "a==="],
    "hexcolor": ["#ffff"],
    "rgbcolor": ["rgb(1,2,300)"],
    "isbn": ["1"],
    "isbn10": ["0321751044"],
    "isbn13": ["9780321751042"],
    "creditcard": ["4111111111111112"],
    "ssn": ["111111111"],
    "bsonobjectid": ["x"],
    "k8s-short-name": ["A", "a.b", "a" * 64],
    "k8s-long-name": ["A", "a..b"],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(GOOD))
def test_a_text_of_the_format_conforms(name: str, text: str) -> None:
    assert conforms(name, text)


@pytest.mark.parametrize(("name", "text"), cases(BAD))
def test_another_text_does_not(name: str, text: str) -> None:
    assert not conforms(name, text)


def test_an_unknown_format_is_never_broken() -> None:
    assert conforms("colour", "anything")


def test_formats_belong_to_types() -> None:
    assert recognised("date-time", "string")
    assert recognised("uuid", "")
    assert recognised("int32", "integer")
    assert recognised("double", "number")
    assert not recognised("int32", "string")
    assert not recognised("date-time", "object")
    assert not recognised("colour", "string")
