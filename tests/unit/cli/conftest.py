"""The command line warns of variables that it does not know, and those of the suite itself are some."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest

SUITE = ("KOPYLITE_REQUIRE_REAL", "KOPYLITE_FIELD_CRDS", "KOPYLITE_FUZZ_SEEDS")


@pytest.fixture(autouse=True)
def without_the_variables_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SUITE:
        if name in os.environ:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def what_a_command_sets_for_its_process_is_put_back() -> Iterator[None]:
    """The command line owns its process: it configures logging and takes the signals, for good."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    root, levels = logging.getLogger(), {name: one.level for name, one in loggers().items()}
    kept, level = list(root.handlers), root.level
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    root.handlers[:] = [one for one in root.handlers if one in kept]
    root.setLevel(level)
    for name, logger in loggers().items():
        logger.setLevel(levels.get(name, logging.NOTSET))


def loggers() -> dict[str, logging.Logger]:
    found = logging.root.manager.loggerDict
    return {name: one for name, one in found.items() if isinstance(one, logging.Logger)}
