"""YAML is read and written by Go's rules; the answers here were given by goyaml v2, and kubectl is asked again in
tests/conformance/test_yaml.py."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kopylite.errors import UsageError
from kopylite.objects.yamlread import MAX_DEPTH, YamlError, read_document, read_documents
from kopylite.objects.yamlwrite import go_yaml_list, to_go_yaml, to_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("N", False), ("off", False), ("~", None), ("", None), ("=", "="), ("<<", "<<"),
        ("1e3", 1000), ("1.0", 1), ("0o17", 15), ("017", 15), ("08", 8), ("0b11", 3), ("0b-1", -1), ("0x1F", 31),
        ("1_000", 1000), ("_1", "_1"), ("12:30:45", "12:30:45"), ("2026-01-31", "2026-01-31"), ("1e400", "1e400"),
        (".5", 0.5), ("1.5", 1.5), ("-0.0", 0), ("18446744073709551615", 18446744073709551615.0),
        ("9223372036854775807", 2**63 - 1), ("1" * 400, "1" * 400), ("!!str 1", "1"), ("!!int '3'", 3),
        ("!!float 3", 3), ("!foo 5", "5"), ("! 5", "5"), ("!!binary aGk=", "hi"),
    ],
)  # fmt: skip
def test_a_scalar_is_what_go_takes_it_for(text: str, value: Any) -> None:
    found = read_document(f"a: {text}")["a"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "keys"),
    [("y: 0", ["true"]), ("1: 0", ["1"]), ("1e3: 0", ["1000"]), ("1.5: 0", ["1.5"]), ("1e6: 0", ["1e+06"])],
)
def test_a_key_becomes_the_text_that_go_makes_of_it(text: str, keys: list[str]) -> None:
    assert list(read_document(text)) == keys


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\na: 2", {"a": 2}),
        ("a: 2\n<<: {a: 1}", {"a": 1}),
        ("<<: {a: 1}\na: 2", {"a": 2}),
        ("x: &x {a: 1}\nz: {<<: [*x, {a: 2, b: 3}]}", {"x": {"a": 1}, "z": {"a": 1, "b": 3}}),
        ("'<<': {a: 1}", {"<<": {"a": 1}}),
        ("a: &x 1\n*x : 2", {"a": 1, "1": 2}),
        ("a: &x {}\nb: &x {c: 1}\nd: *x", {"a": {}, "b": {"c": 1}, "d": {"c": 1}}),
    ],
)
def test_repeated_keys_merges_and_anchors_are_gos(text: str, value: Any) -> None:
    assert read_document(text) == value


def test_what_an_alias_stands_for_is_a_copy() -> None:
    found = read_document("a: &x {b: [1]}\nc: *x")
    found["a"]["b"].append(2)
    assert found["c"] == {"b": [1]}


def test_a_key_that_comes_twice_is_told() -> None:
    repeated: list[str] = []
    read_document("a: 1\nb:\n  c: 1\n  c: 2\na: 2", repeated=repeated)
    assert repeated == ['line 4: key "c" already set in map', 'line 5: key "a" already set in map']


@pytest.mark.parametrize(
    ("data", "documents"),
    [
        (b"a: 1\n--- # next\nb: 2\n---\n", [{"a": 1}, {"b": 2}]),
        (b"---\n---\na: |\n  x\n  ---\n", [{"a": "x\n---\n"}]),
        (b'{"a":\t1}{"b": 1.0}\n', [{"a": 1}, {"b": 1}]),
        (b'{"a": 1}\n---\nb: y\n', [{"a": 1}, {"b": True}]),
        (b"{a: NaN}", [{"a": "NaN"}]),
        (b'\t\n{\n\t"a": [\n\t\t1e3\n\t]\n}', [{"a": [1000]}]),
        ("a: ü".encode("utf-16"), [{"a": "ü"}]),
        (b"\xff\xfe" + "a: 1\r\n---\r\nb: 2".encode("utf-16-le"), [{"a": 1}, {"b": 2}]),
        ("\ufeffa: 1".encode(), [{"a": 1}]),
        (b"a: 1\r\nb: 2\r\n", [{"a": 1, "b": 2}]),
        (b"", []),
        (b"# nothing\n", []),
        (b"null", []),
    ],
)
def test_files_are_read_as_kubectl_reads_them(data: bytes, documents: list[Any]) -> None:
    assert read_documents(data) == documents


def test_of_a_body_or_kubeconfig_the_first_document_counts() -> None:
    assert read_document(b"a: 1\n---\nb: 2") == {"a": 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\n---\nb: [1\nc: d", "f.yaml:4: did not find expected ',' or ']'"),
        (b"a: 1\nb: @x", "f.yaml:2: found character that cannot start any token"),
        (b"a: *b", "f.yaml:1: unknown anchor 'b' referenced"),
        (b"a: &b [*b]", "f.yaml:1: anchor 'b' value contains itself"),
        (b"a: 1\n~: 2", "f.yaml:2: null is no key"),
        (b"[1]: 2", "f.yaml:1: a key is a text or a number, no map or list"),
        (b"a: .nan", "f.yaml:1: json: unsupported value: NaN"),
        (b"a: 1\n--- x", "f.yaml:2: a line with --- ends a document; nothing but a comment may follow it"),
        (b"a: \xff", "f.yaml:1: not UTF-8: invalid start byte"),
        (b"\xff\xfea", "f.yaml: not UTF-16: truncated data"),
        (b'{"a": 1}{"b": 2}{', "f.yaml:1: no JSON: Expecting property name enclosed in double quotes"),
        (b"a: &b 1\nc:\n  <<: *b", "f.yaml:3: map merge requires map or sequence of maps as the value"),
        (b"a: &b [1]\nc:\n  <<: *b", "f.yaml:3: map merge requires map or sequence of maps as the value"),
        (b"a: &b [1]\n*b : 1", "f.yaml:2: a key is a text or a number, no map or list"),
        (b"a: !!int x", "f.yaml:1: cannot decode the value as a !!int"),
        (b"a: !!binary '%'", "f.yaml:1: !!binary value contains invalid base64 data"),
        ("a: \ud800", "f.yaml"),
    ],
)
def test_an_error_names_the_file_the_line_and_the_problem(data: bytes | str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_documents(data, "f.yaml")
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, UsageError)


def test_an_error_quotes_no_value() -> None:
    for text in ("token: 's3cret", "token: !!int s3cret", "token: s3cret: x", "- s3cret\ntoken: x"):
        with pytest.raises(YamlError) as caught:
            read_documents(text)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 5000, '{"a":' * 100_000, "? " * 5000])
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(YamlError):
        read_documents(text)
    with pytest.raises(YamlError):
        read_document(text)


def test_the_depth_that_is_allowed_is_read() -> None:
    depth = MAX_DEPTH - 10
    found = read_document("[" * depth + "]" * depth)
    for _ in range(depth - 1):
        (found,) = found
    assert found == []


def test_a_bomb_of_aliases_is_refused_before_it_explodes() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    begun = time.process_time()
    with pytest.raises(YamlError, match="excessive aliasing"):
        read_document("\n".join(lines))
    assert time.process_time() - begun < 20  # unbounded it would not end at all
    # As many aliases as Go allows are read.
    assert len(read_document("a: &a [1, 2]\nb: [" + ", ".join(["*a"] * 400) + "]")["b"]) == 400


HARD = [
    "y", "n", "Y", "no", "on", "1e3", "0o17", "08", "1_000", "0x1F", "0b1", "1.5", ".5", "~", "null", "", "=", "<<",
    "12:30:45", "2026-01-31", "2026-01-31T00:00:00Z",
    "-", "- a", "a: b", "a #b", "#", "?", "!x", "&x", "*x", "%x", "@x",
    "`x", "'", '"', "{", "[", "|", ">", " x", "x ", "\tx", "x\n", "\n", "\nx", " x\ny\n", "a\tb", "x\r\n", "\x85",
    "\u2028", "\ufeff", "\x7f", "\x00", "😀", "---", "...", "--- x", "x" * 300, "long " * 60, "true", "False", "0",
    "-1", "+1", "1.", "1e400", "inf", ".inf", "NaN", ".nan", "0b-1", "infinity",
]  # fmt: skip


def test_what_is_written_reads_back_as_the_same_texts() -> None:
    document = {"values": HARD, "keys": dict.fromkeys(HARD, 1), "lists": [[text] for text in HARD]}
    assert read_documents(to_yaml([document, {}, document])) == [document, {}, document]
    assert read_document(to_go_yaml(document)) == document


def test_plain_texts_stay_plain_and_disputed_ones_get_quotes() -> None:
    written = to_yaml([{"a": "plain text", "b": "y", "c": "12:30", "d": "v1", "e": "2026-01-31"}], start=False)
    assert written == "a: plain text\nb: 'y'\nc: '12:30'\nd: v1\ne: '2026-01-31'\n"


def test_numbers_that_no_object_can_hold_are_not_written() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="no number"):
            to_yaml([{"a": number}])


def test_a_block_scalar_before_the_next_document_keeps_its_line_break() -> None:
    text = "a: |\n  x\n---\na: |+\n  x\n\n---\na: >-\n  x\n---\na: |\n  x"
    assert [document["a"] for document in read_documents(text)] == ["x\n", "x\n\n", "x", "x\n"]


def test_half_a_pair_of_surrogates_in_json_is_the_replacement_character() -> None:
    text = r'{"a": "\ud83d\ude00 \ud83d \\ud83d \uDE00\ud83d\ude00", "\ud800": 1}'
    assert read_documents(text) == [{"a": "\U0001f600 \ufffd \\ud83d \ufffd\U0001f600", "\ufffd": 1}]


def test_depth_is_told_as_depth() -> None:
    with pytest.raises(YamlError, match="nested too deep"):
        read_documents('{"a": 1}' + '{"a":' * 100_000)


def test_one_document_needs_no_dashes_and_several_do() -> None:
    assert to_yaml([{"a": 1}], start=False) == "a: 1\n"
    assert to_yaml([{"a": 1}]) == "---\na: 1\n"
    assert to_yaml([{"a": 1}, {"b": 2}], start=False) == "---\na: 1\n---\nb: 2\n"


def test_a_list_is_written_item_by_item_as_in_one_piece() -> None:
    for head in ({"kind": "L", "apiVersion": "v1", "metadata": {}}, {"apiVersion": "v1"}, {"z": 1}, {}):
        for items in ([{"a": 1}, {"b": [1, "y"]}], []):
            whole = {**head, "items": items} if items else head
            assert go_yaml_list(head, "items", items) == to_go_yaml(whole)


def test_aliases_are_free_up_to_gos_limits() -> None:
    def aliased(times: int, padding: int) -> str:
        return f"a: &a [1]\nb: [{', '.join(['*a'] * times)}]\nc: [{', '.join(['1'] * padding)}]"

    # An anchored list is two values, and an alias one more: few are free however many aliases there are.
    assert len(read_document(aliased(200, 0))["b"]) == 200
    big = "a: &a [" + ", ".join(["1"] * 2000) + "]\n"
    assert len(read_document(big + "b: *a")["b"]) == 2000
    with pytest.raises(YamlError, match="excessive aliasing"):
        read_document(big + "b: [" + ", ".join(["*a"] * 250) + "]")


def test_texts_of_other_alphabets_are_written_as_they_are() -> None:
    assert to_go_yaml({"a": "é"}).decode() == "a: é\n"
