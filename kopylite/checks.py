"""Checks of options: a value of the wrong type or out of its range is refused where it is written, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from kopylite.boundary import show
from kopylite.errors import RegistrationError, UsageError

# Of seconds, 32 years: more than a timer needs, and less than what some event loops overflow at.
LARGEST = 1e9


# Of namespaces, and of what is part of a host's name: a DNS label.
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?").fullmatch
# Of objects of most kinds: a DNS subdomain.
_LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*").fullmatch


def is_object_name(text: str) -> bool:
    """Whether an object of any kind may have the name: up to 253 lower-case letters, digits, inner dashes and dots."""
    return len(text) <= _LONGEST_NAME and _NAME(text) is not None


def is_dns_label(text: str) -> bool:
    """Whether a namespace, or an App, may have the name: up to 63 lower-case letters, digits and inner dashes."""
    return _LABEL(text) is not None


# Each shard is a Lease that is renewed every two seconds.
MOST_SHARDS = 256


def require_shards(value: object, option: str, *, error: type[UsageError] = RegistrationError) -> None:
    """Refuse what is no number of shards; 0 is one."""
    require_count(value, f"{option} (0: none)", error=error)
    if isinstance(value, int) and value > MOST_SHARDS:
        raise error(f"{option} must be at most {MOST_SHARDS}, not {show(value)}: each is a Lease to be renewed")


def require_count(value: object, option: str, *, least: int = 0, error: type[UsageError] = RegistrationError) -> None:
    """Refuse what is no whole number of at least `least`; True is none, though Python takes it for 1.

    Args:
        option: its name, for the message, with whose it is if that is not clear: "controller 'a': workers".
        error: what to raise.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise error(f"{option} is a whole number, not {_shown(value)}")
    if value < least:
        raise error(f"{option} must be at least {least}, not {show(value)}")


# Each is a task. A typing error with more zeros would take all memory before any signal is heeded.
MOST_WORKERS = 100_000


def require_workers(value: object, option: str, *, error: type[UsageError] = RegistrationError) -> None:
    """Refuse what is no number of workers or threads."""
    require_count(value, option, least=1, error=error)
    if isinstance(value, int) and value > MOST_WORKERS:
        raise error(f"{option} must be at most {MOST_WORKERS}, not {show(value)}")


def require_seconds(
    value: object, option: str, *, zero: bool = False, error: type[UsageError] = RegistrationError
) -> None:
    """Refuse what is no number of seconds: texts, timedeltas, True, nan, inf, and what is not above 0.

    Args:
        zero: whether 0 is allowed.
    """
    if isinstance(value, timedelta):
        raise error(f"{option} is a number of seconds, not a timedelta; write {value.total_seconds():g}")
    require_number(value, option, "number of seconds", zero=zero, error=error)


def require_number(
    value: object,
    option: str,
    what: str = "number",
    *,
    zero: bool = False,
    error: type[UsageError] = RegistrationError,
) -> None:
    """Refuse what is no number, nan, inf, what is not above 0, and what is beyond all reason."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise error(f"{option} is a {what}, not {_shown(value)}")
    if not 0 <= value <= LARGEST or (value == 0 and not zero):
        raise error(
            f"{option} must be {'0 or more' if zero else 'above 0'}, and at most {LARGEST:.0e}, not {show(value)}"
        )


def require_text(value: object, option: str, *, error: type[UsageError] = RegistrationError) -> None:
    """Refuse what is no str."""
    if not isinstance(value, str):
        raise error(f"{option} is a text, not {_shown(value)}")


def require_flag(value: object, option: str, *, error: type[UsageError] = RegistrationError) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise error(f"{option} is True or False, not {_shown(value)}")


def _shown(value: object) -> str:
    text = show(value)
    kind = type(value).__name__
    return f"{text} ({kind})" if len(text) <= 60 else f"a {kind}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant; None: none is like it."""
    from difflib import get_close_matches  # for errors only

    return next(iter(get_close_matches(word, list(known), n=1)), None)
