from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from kopylite.cli.environment import (
    OptionGroup,
    choice,
    names,
    path,
    positive_int,
    seconds,
    unknown_variables,
    whole_number,
)


def parser_with(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kopylite")
    options = OptionGroup(parser.add_argument_group("x"), environment)
    options.add("--workers", parse=positive_int, default=1, metavar="N", help="how many")
    options.add("--grace-period", parse=seconds, default=30.0, metavar="TIME", help="100% of it")
    options.add("-n", "--namespace", parse=names, collect=True, metavar="NAME", help="which")
    return parser


def test_the_flag_wins_over_the_variable_and_the_variable_over_the_default() -> None:
    environment = {"KOPYLITE_WORKERS": "3", "KOPYLITE_GRACE_PERIOD": "2m"}
    args = parser_with(environment).parse_args(["--workers", "5"])
    assert (args.workers, args.grace_period) == (5, 120.0)
    args = parser_with({}).parse_args([])
    assert (args.workers, args.grace_period, args.namespace) == (1, 30.0, None)


def test_a_repeated_flag_collects_and_replaces_what_the_variable_said() -> None:
    environment = {"KOPYLITE_NAMESPACE": "a, b"}
    assert parser_with(environment).parse_args([]).namespace == ["a", "b"]
    assert parser_with(environment).parse_args(["-n", "c", "--namespace", "d,e"]).namespace == ["c", "d", "e"]


def test_a_wrong_value_is_told_with_the_variable_it_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parser_with({"KOPYLITE_WORKERS": "many"}).parse_args([])
    assert caught.value.code == 2
    assert "KOPYLITE_WORKERS: 'many' is not a whole number" in capsys.readouterr().err


def test_a_wrong_variable_is_no_matter_if_the_flag_is_given() -> None:
    assert parser_with({"KOPYLITE_WORKERS": "many"}).parse_args(["--workers", "2"]).workers == 2


def test_a_variable_that_means_nothing_is_warned_of_with_the_nearest_that_does() -> None:
    parser_with({})
    environment = {
        "KOPYLITE_WORKERS": "1",
        "KOPYLITE_WORKRES": "2",
        "KOPYLITE_COLOUR": "red",
        "HOME": "/",
        # A Service named kopylite-webhook, in the pod's own namespace, is the reason for these:
        "KOPYLITE_WEBHOOK_SERVICE_HOST": "10.0.0.1",
        "KOPYLITE_WEBHOOK_SERVICE_PORT_HTTPS": "443",
        "KOPYLITE_WEBHOOK_PORT": "tcp://10.0.0.1:443",
        "KOPYLITE_WEBHOOK_PORT_443_TCP_ADDR": "10.0.0.1",
    }
    colour, workers = unknown_variables(environment)
    assert colour.startswith("the environment variable KOPYLITE_COLOUR has no effect; there are KOPYLITE_")
    assert workers == "the environment variable KOPYLITE_WORKRES has no effect; did you mean KOPYLITE_WORKERS?"


def test_help_names_the_variable_and_the_default() -> None:
    text = parser_with({}).format_help()
    assert "[KOPYLITE_WORKERS; default 1]" in " ".join(text.split())
    assert "[KOPYLITE_NAMESPACE]" in text


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1.5", 1.5), ("30s", 30.0), ("2m", 120.0), ("1h", 3600.0)])
def test_durations_are_seconds_or_have_a_unit(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "s", "-1", "inf", "nan", "1d", "1 minute", "1e300", "1e308h"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds(text)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "²"])
def test_a_number_of_workers_is_a_whole_number_of_at_least_one(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        positive_int(text)


def test_a_number_that_no_machine_has_room_for_is_refused() -> None:
    assert positive_int("100000") == 100_000
    assert whole_number("200000") == 200_000, "as of objects to look at, which take no room"
    with pytest.raises(ValueError, match="'100000000' is more than 100000"):
        positive_int("100000000")


def test_an_empty_path_is_not_the_folder_of_the_process() -> None:
    assert path("rights") == Path("rights")
    with pytest.raises(ValueError, match="the path is empty"):
        path("")


def test_a_choice_names_what_is_allowed() -> None:
    assert choice("text", "json")("json") == "json"
    with pytest.raises(ValueError, match="'xml' is none of text, json"):
        choice("text", "json")("xml")


@pytest.mark.parametrize("text", ["", "a,,b", ",", "My_Shop", "-a", "a" * 64])
def test_what_no_namespace_can_be_called_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="lower-case letters"):
        names(text)
