"""Where a value that is secret ends: all of it goes, and nothing around it. Whole texts: test_redaction_forms.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.redaction.patterns import MARK, is_secret_name, redact_forms

WORDS = st.text("abcdefgh", min_size=1, max_size=8)


@pytest.mark.parametrize(
    "name", ["password", "DB_PASSWORD", "clientSecret", "api-key", "tokens", "tls.key", "auth", "x" * 100 + "Token"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", "name", "author", "key", "passwordPolicy", "tokenRequests", "secretName"])
def test_names_of_what_is_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"password": "a\\"b", "user": "u"}', f'{{"password": {MARK}, "user": "u"}}'),
        ("{'password': 'it''s', 'user': 'u'}", f"{{'password': {MARK}, 'user': 'u'}}"),
        ("token=abc rest", f"token={MARK} rest"),
        ("token: abc rest\nnext: line", f"token: {MARK}\nnext: line"),
        ('{"tokens": ["a", "b]"], "n": 1}', f'{{"tokens": {MARK}, "n": 1}}'),
        ("password: |\n  one\n  two\nuser: u", f"password: {MARK}\nuser: u"),
        ("password:\n- one\n- two\nuser: u", f"password:{MARK}\nuser: u"),
        ("run --password hunter now", f"run --password {MARK}"),
        ("https://user:pw@host/path", f"https://{MARK}@host/path"),
        ("Bearer abcdefgh1.x end", f"Bearer {MARK} end"),
    ],
)
def test_a_value_ends_where_it_ends(text: str, expected: str) -> None:
    found = redact_forms(text)
    assert [part.strip() for part in found.split(MARK)] == [part.strip() for part in expected.split(MARK)]


@pytest.mark.parametrize("nothing", ['""', "null", "None", "true", "false", "~", MARK])
def test_what_is_no_value_stays(nothing: str) -> None:
    assert redact_forms(f'{{"password": {nothing}, "a": 1}}') == f'{{"password": {nothing}, "a": 1}}'


@given(WORDS, WORDS)
def test_what_stands_beside_a_secret_of_json_stays(secret: str, other: str) -> None:
    found = redact_forms(f'{{"first": "{other}", "password": "{secret}-secret9", "last": "{other}"}}')
    assert found == f'{{"first": "{other}", "password": {MARK}, "last": "{other}"}}'


@given(st.text("ab \n\t:=-", max_size=40))
def test_texts_without_a_name_or_a_shape_stay(text: str) -> None:
    assert redact_forms(text) == text


@given(WORDS.map(lambda word: f"password={word}9"))
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    once = redact_forms(text)
    assert redact_forms(once) == once == f"password={MARK}"
