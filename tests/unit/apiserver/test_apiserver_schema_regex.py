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
        ("^(?s:.)$", "\n", "ab"), ("^[a[]$", "[", "b"), ("^a{,3}$", "a{,3}", "aa"), ("^[[:^alpha:]]$", "1", "a"),
        (r"^\s$", "\t", "\v"), (r"^[\v]$", "\v", "v"), ("(?s)a(?-s).$", "ab", "a\n"), (r"^\p{Greek}+$", "αβ", "ab"),
        (r"^\p{Letter}$", "é", "1"), (r"^\P{^Lu}$", "A", "a"), ("^((a{10}){10}){10}$", "a" * 1000, "a"),
        ("^.$", "\ud800", "ab"), (r"^\x{1F600}$", "😀", "a"),
    ],
)  # fmt: skip
def test_a_go_pattern_matches_as_in_go(pattern: str, matching: str, other: str) -> None:
    assert compile_go(pattern).matches(matching)
    assert not compile_go(pattern).matches(other)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<!a)b", "invalid named capture: `(?<!a)b`"),
        ("(?<=a>)b", "invalid named capture: `(?<=a>`"),
        ("(?P<é>b)", "invalid named capture: `(?P<é>`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("((a{100}){100}){100}", "invalid repeat count: `{100}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        (r"\p{Lx", r"invalid character class range: `\p{Lx`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("(" * 1001 + ")" * 1001, f"expression nests too deeply: `{'(' * 1001 + ')' * 1001}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("[a", "missing closing ]: `[a`"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        compile_go(pattern)
    assert str(caught.value) == f"error parsing regexp: {text}"
