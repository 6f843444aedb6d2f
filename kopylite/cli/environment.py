"""Options that an environment variable may give too: --grace-period is KOPYLITE_GRACE_PERIOD. The flag wins."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from kopylite.checks import LARGEST, MOST_WORKERS, is_dns_label, is_object_name, nearest
from kopylite.errors import UsageError

PREFIX = "KOPYLITE_"
# What Kubernetes puts into every pod of a namespace that has a Service named kopylite or kopylite-something.
_OF_A_SERVICE = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)")


class _FromVariable(str):
    """A default that came from an environment variable; remembers which, for the message if it is wrong."""

    __slots__ = ("variable",)

    variable: str


class _Collect(argparse.Action):
    """Adds up the lists of a repeated flag; the first one replaces the default, or what a variable said."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        so_far = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*(so_far if isinstance(so_far, list) else ()), *values])


class _Switch(argparse.Action):
    """True, or False for the flag that begins with --no-."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, not str(option_string).startswith("--no-"))


class OptionGroup:
    """Adds options to an argparse group, each with its environment variable.

    Attributes:
        variables: all variables that were added, by whatever group.
    """

    variables: ClassVar[dict[str, None]] = {}

    def __init__(self, group: argparse._ArgumentGroup, environment: Mapping[str, str] = os.environ) -> None:
        self._group = group
        self._environment = environment

    def add(
        self,
        *flags: str,
        parse: Callable[[str], Any],
        help: str,  # noqa: A002  (argparse's own word)
        metavar: str,
        default: Any = None,
        collect: bool = False,
    ) -> None:
        """Add an option.

        Args:
            parse: turns a text into the value; raises ValueError or UsageError for a wrong one.
            collect: the flag may be repeated; `parse` returns lists, which are joined.
        """
        variable = PREFIX + flags[-1].lstrip("-").replace("-", "_").upper()
        self.variables[variable] = None
        given = self._environment.get(variable)
        shown = "" if default in (None, "") else f"; default {default}"
        self._group.add_argument(
            *flags,
            action=_Collect if collect else "store",
            type=_reader(parse),
            default=default if given is None else _remember(given, variable),
            metavar=metavar,
            help=f"{help} [{variable}{shown}]".replace("%", "%%"),
        )

    def add_duration(self, flag: str, default: str, help: str) -> None:  # noqa: A002  (argparse's own word)
        """Add an option whose value is a duration; see `seconds`."""
        self.add(flag, parse=seconds, default=default, metavar="TIME", help=help)

    def add_switch(self, flag: str, *, help: str) -> None:  # noqa: A002  (argparse's own word)
        """Add --flag and --no-flag; the variable says true or false. None: neither was given."""
        variable = PREFIX + flag.lstrip("-").replace("-", "_").upper()
        self.variables[variable] = None
        given = self._environment.get(variable)
        self._group.add_argument(
            flag,
            flag.replace("--", "--no-"),
            action=_Switch,
            nargs=0,
            type=_reader(_boolean),
            default=None if given is None else _remember(given, variable),
            help=f"{help} [{variable}]".replace("%", "%%"),
        )


def unknown_variables(environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """A warning for each variable that has our prefix and means nothing: most likely it was meant to."""
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in OptionGroup.variables and not _OF_A_SERVICE.fullmatch(name):
            known = [variable.removeprefix(PREFIX) for variable in OptionGroup.variables]
            near = nearest(name.removeprefix(PREFIX), known)
            hint = f"did you mean {PREFIX}{near}?" if near else f"there are {', '.join(OptionGroup.variables)}"
            yield f"the environment variable {name} has no effect; {hint}"


def _remember(text: str, variable: str) -> _FromVariable:
    value = _FromVariable(text)
    value.variable = variable
    return value


def _reader(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, UsageError) as error:
            source = f"environment variable {text.variable}: " if isinstance(text, _FromVariable) else ""
            raise argparse.ArgumentTypeError(f"{source}{error}") from None

    return read


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in ("true", "1")


def path(text: str) -> Path:
    """Of a file or folder; an empty text would be the folder that the process happens to stand in."""
    if not text:
        raise ValueError("the path is empty; leave it out instead")
    return Path(text)


def choice(*allowed: str) -> Callable[[str], str]:
    """A parser for one of a few words."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{text!r} is none of {', '.join(allowed)}")
        return text

    return parse


def whole_number(text: str) -> int:
    """Of at least 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def at_most(most: int, why: str) -> Callable[[str], int]:
    """A parser for a whole number of what takes room: tasks, processes."""

    def parse(text: str) -> int:
        number = whole_number(text)
        if number > most:
            raise ValueError(f"{text!r} is more than {most}, {why}")
        return number

    return parse


positive_int = at_most(MOST_WORKERS, "the most that is possible")


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def seconds(text: str) -> float:
    """A duration: seconds, or a number with s, m or h, as in 90, 1.5, 30s, 2m."""
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    number = text[:-1] if factor else text
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    value *= factor or 1
    if not 0 <= value <= LARGEST:
        raise ValueError(f"{text!r} is no duration such as 30, 30s or 2m")
    return value


def names(text: str) -> list[str]:
    """Namespaces, comma-separated."""
    found = [name.strip() for name in text.split(",")]
    if not all(map(is_dns_label, found)):
        raise ValueError(
            f"{text!r} names no namespaces: up to 63 lower-case letters, digits and inner dashes, separated by commas"
        )
    return found


def globs(text: str) -> list[str]:
    """Namespaces, or globs of them, comma-separated."""
    from kopylite.manager.scope import check_namespace

    found = [name.strip() for name in text.split(",")]
    for each in found:
        check_namespace(each, "namespaces")
    return found


def selector(text: str) -> str:
    """A label selector."""
    from kopylite.cache.selectors import parse_label_selector

    try:
        parse_label_selector(text)
    except UsageError as error:
        raise ValueError(f"{error}; write tier=prod, 'tier in (a, b)' or '!tier'") from None
    return text


def name(text: str) -> str:
    """The name of an object: a DNS subdomain."""
    if not is_object_name(text):
        raise ValueError(f"{text!r} is no name: up to 253 lower-case letters, digits, inner dashes and dots")
    return text
