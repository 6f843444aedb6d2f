"""The server's version beside what this process is made for, and its clock beside ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from kopylite.doctor.findings import Finding, error, warning
from kopylite.doctor.wire import span

# What kopylite is tested with, in the conformance suite; and since when all that it asks for is stable.
TESTED = (1, 37)
OLDEST = (1, 31)
# Kubernetes itself lets its clients be one minor version away; models only gain fields, so more does less harm.
MODELS_AWAY = 3
# The Date header has whole seconds, and is as old as the answer's way.
SKEW_NOTICED, SKEW_HARMFUL = 5.0, 60.0


def minor_of(version: str) -> tuple[int, int] | None:
    """(1, 37) of "v1.37.2+k3s1"."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})", version)
    return (int(found[1]), int(found[2])) if found else None


def judge_version(server: str, version: str, models: str) -> Iterator[Finding]:
    """What is to be said of a server's version.

    Args:
        version: gitVersion of the server.
        models: the version of kubernetes_asyncio, whose major number is the minor one of Kubernetes.
    """
    found = minor_of(version)
    if found is None:
        return
    name = f"{found[0]}.{found[1]}"
    if found < OLDEST:
        text = f"Kubernetes {name} is older than {OLDEST[0]}.{OLDEST[1]}, the oldest that kopylite supports"
        yield warning(
            "version", server, text, "upgrade the cluster, or stay with what your own tests have shown to work"
        )
    elif found > (TESTED[0], TESTED[1] + 1):
        text = f"Kubernetes {name} is newer than {TESTED[0]}.{TESTED[1]}, the newest that this kopylite was tested with"
        yield warning("version", server, text, "pip install --upgrade kopylite")
    own = re.match(r"\d{1,4}", models)
    if own is not None and abs(int(own[0]) - found[1]) > MODELS_AWAY:
        text = f"kubernetes_asyncio {models} has the models of Kubernetes 1.{own[0]}, and this is {name}: "
        text += "newer fields are not in its models, and are kept only by patches"
        yield warning("version", server, text, f"pip install 'kubernetes_asyncio=={found[1]}.*', if there is one")


def server_time(date: str) -> datetime | None:
    """The time of a Date header."""
    try:
        found = parsedate_to_datetime(date)
    except (ValueError, IndexError, OverflowError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def judge_clock(server: str, theirs: datetime | None, before: datetime, after: datetime) -> Iterator[Finding]:
    """Whether the clocks differ by more than the way of an answer that was asked for and came at these times."""
    if theirs is None:
        return
    early, late = (theirs - after).total_seconds(), (theirs - before).total_seconds()
    skew = early if early > 0 else late + 1 if late + 1 < 0 else 0.0  # they cut to the second
    if abs(skew) < SKEW_NOTICED:
        return
    text = f"this machine's clock is {span(abs(skew))} {'behind' if skew > 0 else 'ahead of'} the API server's. "
    text += "Tokens and certificates then end too early or count too early, and times in conditions, Events and Leases "
    text += "lie (leader election itself compares no clocks)"
    tell = error if abs(skew) >= SKEW_HARMFUL else warning
    yield tell(
        "clock", server, text, "timedatectl set-ntp true    # on this machine, or on the server's, whichever is wrong"
    )
