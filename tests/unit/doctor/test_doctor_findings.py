from __future__ import annotations

import json
import shlex

from hypothesis import given
from hypothesis import strategies as st

from kopylite.doctor.findings import Diagnosis, Unchecked, command, error, kubectl, listed, shown, warning
from kopylite.doctor.report import as_json, as_table, summary
from kopylite.redaction import remember

HOSTILE = (
    st.text() | st.just("\x1b[2J\r\nerror: all is well\x00\u202e" * 3) | st.just("x" * 5000) | st.just("a'; rm -rf / #")
)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_a_text_of_the_cluster_moves_no_cursor_and_fakes_no_line(where: str, what: str, fix: str) -> None:
    diagnosis = Diagnosis("https://server")
    diagnosis.add([error("crd", where, what, command("kubectl", "get", fix)), Unchecked("x", what, where)])
    table = as_table(diagnosis)
    assert "\x1b" not in table
    assert "\x00" not in table
    assert diagnosis.findings[0].what.isprintable()
    assert json.loads(as_json(diagnosis))["findings"][0]["where"] == diagnosis.findings[0].where


@given(st.text() | st.just("a'; touch /tmp/x; '"))
def test_a_word_of_a_command_is_one_word_for_the_shell(word: str) -> None:
    words = shlex.split(kubectl("get", "pod", word, "ns"))
    assert words[:5] == ["kubectl", "-n", "ns", "get", "pod"]
    assert len(words) == 6
    if word.isascii() and word.isprintable():
        assert words[5] == word


def test_a_secret_is_not_shown() -> None:
    remember("hunter2-hunter2")
    found = error("x", "a", "the message has hunter2-hunter2 in it", "echo hunter2-hunter2")
    assert "hunter2" not in found.what + found.fix


def test_errors_come_first_and_nothing_comes_twice() -> None:
    diagnosis = Diagnosis("https://server", "v1.37.2")
    for _ in range(2):
        diagnosis.add([warning("a", "w", "x", "f"), error("b", "w", "x", "f"), Unchecked("c", "d")])
    assert [each.check for each in diagnosis.ordered] == ["b", "a"]
    assert summary(diagnosis) == "https://server, Kubernetes v1.37.2: 1 error, 1 warning, 1 not checked"
    wire = json.loads(as_json(diagnosis))
    assert (wire["kopyliteDoctor"], wire["errors"], wire["warnings"], wire["reachable"]) == (1, 1, 1, True)
    assert set(wire["findings"][0]) == {"severity", "check", "where", "what", "fix"}
    assert wire["unchecked"] == [{"check": "c", "what": "d", "needs": ""}]


def test_a_fix_is_shown_as_it_is_to_be_copied() -> None:
    diagnosis = Diagnosis("s")
    diagnosis.add([error("rights", "where", "what " * 60, "kubectl apply -f - <<'END'\nkind: Role\n  a: b\nEND")])
    assert "    kubectl apply -f - <<'END'\n    kind: Role\n      a: b\n    END" in as_table(diagnosis)


def test_nothing_found_is_one_line() -> None:
    assert as_table(Diagnosis("https://server")) == "https://server: nothing found\n"


def test_of_many_the_first_few_are_named() -> None:
    assert listed("abcdefg", 3) == "a, b, c and 4 more"
    assert listed("ab") == "a, b"
    assert len(shown("x" * 100_000)) <= 600
