from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.client.apiwarnings import REMEMBERED, ApiWarnings, kind_of, parse_warnings
from kopylite.client.verbs import ApiRequest

PODS = ApiRequest("POST", "/api/v1/namespaces/a/pods")


@pytest.mark.parametrize(
    ("header", "warnings"),
    [
        ('299 - "v1 is deprecated"', [(299, "v1 is deprecated")]),
        (r'299 - "unknown field \"spec.x\" \\ "', [(299, r'unknown field "spec.x" \ ')]),
        ('299 - "a", 299 x "b, c" "Wed, 21 Oct 2015" , 199 y "d"', [(299, "a"), (299, "b, c"), (199, "d")]),
        ('299 - "=?UTF-8?q?caf=C3=A9?="', [(299, "café")]),
        ('299 - "=?no-such-code?q?x?="', [(299, "=?no-such-code?q?x?=")]),
        ('299 - "good", 29 - "bad"', [(299, "good")]),
        ('299 - "not closed', []),
        ('299 - "a" b', []),
        ('299 - "a\x1b[2J"', []),
        ('299 - "\udcff"', []),
        ("299 - plain", []),
        ('٢٩٩ - "digits of another script"', []),
        ("", []),
    ],
)
def test_a_header_is_read_as_client_go_reads_it(header: str, warnings: list[tuple[int, str]]) -> None:
    assert list(parse_warnings(header)) == warnings


@given(st.text())
def test_any_header_is_read(header: str) -> None:
    list(parse_warnings(header))
    list(parse_warnings(f'299 - "{header}"'))


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))))
def test_any_text_comes_through(text: str) -> None:
    if "=?" not in text:
        quoted = text.replace("\\", r"\\").replace('"', r"\"")
        assert list(parse_warnings(f'299 - "{quoted}"')) == [(299, text)]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/namespaces/a/pods/b/status", "api/v1/pods"),
        ("/api/v1/pods", "api/v1/pods"),
        ("/api/v1/namespaces/a", "api/v1/namespaces"),
        ("/api/v1/namespaces/a/status", "api/v1/namespaces"),
        ("/apis/apps/v1/namespaces/a/deployments/b", "apis/apps/v1/deployments"),
        ("/apis/example.com/v1/clusterthings/b/status", "apis/example.com/v1/clusterthings"),
        ("/version", "version"),
    ],
)
def test_a_kind_is_known_by_its_path(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_a_warning_is_logged_once_for_each_kind_with_its_request(caplog: pytest.LogCaptureFixture) -> None:
    warnings = ApiWarnings()
    for path in ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods/x", "/api/v1/nodes"):
        warnings.show(ApiRequest("PUT", path), ['299 - "a", 299 - "b"', '299 - "c", 199 - "about caches"', '299 - ""'])
    assert [r.getMessage() for r in caplog.records] == [
        *(f"PUT /api/v1/namespaces/a/pods: the API server warns: {text}" for text in "abc"),
        *(f"PUT /api/v1/nodes: the API server warns: {text}" for text in "abc"),
    ]


def test_what_was_shown_is_remembered_within_bounds(caplog: pytest.LogCaptureFixture) -> None:
    warnings = ApiWarnings()
    with caplog.at_level(logging.ERROR):
        for number in range(3 * REMEMBERED):
            warnings.show(PODS, [f'299 - "{number}"'])
    assert len(warnings._shown) == REMEMBERED
    warnings.show(PODS, [f'299 - "{3 * REMEMBERED - 1}"'])
    assert not caplog.records
