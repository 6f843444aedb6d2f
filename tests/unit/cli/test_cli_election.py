"""The options for several replicas, by flag and by environment variable."""

from __future__ import annotations

import argparse

import pytest

from kopylite.cli.election import add_election_options, election_options


def parsed(*arguments: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    add_election_options(parser)
    return election_options(parser.parse_args(arguments))


def test_without_any_the_app_decides_and_times_are_those_of_kubernetes() -> None:
    assert parsed() == {
        "shards": None,
        "leader_election": None,
        "lease_name": "",
        "lease_namespace": "",
        "lease_duration": 15.0,
        "renew_deadline": 10.0,
        "retry_period": 2.0,
    }


@pytest.mark.parametrize(("text", "meant"), [("true", True), ("FALSE", False), ("1", True), ("0", False)])
def test_the_switch_is_given_by_flag_or_variable_and_the_flag_wins(
    monkeypatch: pytest.MonkeyPatch, text: str, meant: bool
) -> None:
    monkeypatch.setenv("KOPYLITE_LEADER_ELECT", text)
    assert parsed()["leader_election"] is meant
    assert parsed("--leader-elect")["leader_election"] is True
    assert parsed("--no-leader-elect")["leader_election"] is False


def test_a_variable_that_is_neither_true_nor_false_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KOPYLITE_LEADER_ELECT", "perhaps")
    with pytest.raises(SystemExit):
        parsed()
    assert "environment variable KOPYLITE_LEADER_ELECT: 'perhaps' is neither true nor false" in capsys.readouterr().err


def test_name_namespace_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPYLITE_LEASE_NAMESPACE", "ops")
    monkeypatch.setenv("KOPYLITE_RENEW_DEADLINE", "20s")
    found = parsed("--lease-name", "a.b", "--lease-duration", "1m", "--retry-period", "3")
    assert found == {
        "shards": None,
        "leader_election": None,
        "lease_name": "a.b",
        "lease_namespace": "ops",
        "lease_duration": 60.0,
        "renew_deadline": 20.0,
        "retry_period": 3.0,
    }


@pytest.mark.parametrize("name", ["", "A", "a/b", "a-", "a" * 254])
def test_a_lease_name_that_cannot_be_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--lease-name", name)
    assert "is no name" in capsys.readouterr().err


def test_shards_are_a_whole_number(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KOPYLITE_SHARDS", "8")
    assert parsed()["shards"] == 8
    assert parsed("--shards", "0")["shards"] == 0
    with pytest.raises(SystemExit):
        parsed("--shards", "-1")
    assert "is not a whole number" in capsys.readouterr().err
