from __future__ import annotations

import argparse

import pytest

from kopylite.cli.connecting import (
    add_connection_options,
    connection_of,
    count_option,
    duration_option,
    exit_code,
    namespaces_option,
    played,
)
from kopylite.cli.exitcodes import Exit
from kopylite.cli.target import AttributeNotFound, ModuleNotLoaded
from kopylite.errors import ConnectionFailed, Forbidden, KubeconfigError, RegistrationError, UsageError

REFUSED = 41


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModuleNotLoaded("m"), Exit.MODULE),
        (AttributeNotFound("a"), Exit.ATTRIBUTE),
        (RegistrationError("r"), Exit.REGISTRATION),
        (KubeconfigError("k"), Exit.KUBECONFIG),
        (UsageError("u"), Exit.USAGE),
    ],
)
def test_each_error_has_its_code_and_is_told_once(
    error: UsageError, code: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> int:
        raise error

    assert exit_code(error) == code
    assert played("look", work(), REFUSED) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"kopylite look: {error}\n")


def test_who_is_not_reached_is_sent_to_the_doctor_and_a_refusal_has_the_code_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def away() -> int:
        raise ConnectionFailed("nobody listens at 127.0.0.1:1")

    async def refused() -> int:
        raise Forbidden("you may not list pods")

    async def fine() -> int:
        return 3

    assert played("look", away(), REFUSED) == Exit.UNREACHABLE
    assert "nobody listens at 127.0.0.1:1; `kopylite doctor` finds out why" in capsys.readouterr().err
    assert played("look", refused(), REFUSED) == REFUSED
    assert "you may not list pods" in capsys.readouterr().err
    assert played("look", fine(), REFUSED) == 3
    assert capsys.readouterr().err == ""


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    parser = argparse.ArgumentParser()
    add_connection_options(parser)
    args = parser.parse_args(["--kubeconfig", "/nowhere/config"])
    with pytest.raises(KubeconfigError, match="/nowhere/config"):
        connection_of(args)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "ten", "\x00"])
def test_what_is_no_count_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        count_option(text)
    assert count_option("7") == 7


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "soon", "nan", "inf"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        duration_option(text)
    assert duration_option("1m") == 60.0


def test_namespaces_come_one_by_one_or_with_commas_and_have_to_be_names() -> None:
    assert namespaces_option("shop") == ["shop"]
    with pytest.raises(argparse.ArgumentTypeError, match="Shop"):
        namespaces_option("Shop")
