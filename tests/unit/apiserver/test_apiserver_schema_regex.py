from __future__ import annotations

import pytest

from kopylite.apiserver.schema.regex import compile_go


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^a$", "a", "a\n"), (r"\Aa\z", "a", "ab"), (r"^\d$", "5", "٣"), ("^[[:alpha:]]+$", "ab", "a1"),
        ("^[^a-c]$", "d", "a"), (r"^\pL$", "é", "1"), (r"^\p{Lu}+$", "AÉ", "a"), (r"^[\p{L}-]+$", "é-", "1"),
        (r"^\PL$", "1", "a"), ("(?i)^AB$", "ab", "b"), ("a(?i)B", "ab", "AB"), ("^(?P<x>a)(?<y>b)$", "ab", "a"),
        (r"^\Qa.b\E$", "a.b", "axb"), ("(?m)^b$", "a\nb", "ab"), (r"^\x{41}$", "A", "B"), ("^[]a]$", "]", "b"),
        ("^(?s:.)$", "\n", "ab"), ("^[a[]$", "[", "b"),
    ],
)  # fmt: skip
def test_a_go_pattern_matches_as_in_go(pattern: str, matching: str, other: str) -> None:
    assert compile_go(pattern).search(matching)
    assert not compile_go(pattern).search(other)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<!a)b", "invalid or unsupported Perl syntax: `(?<!`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("[a", "missing closing ]: `[a`"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        compile_go(pattern)
    assert str(caught.value) == f"error parsing regexp: {text}"
