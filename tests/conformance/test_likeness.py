"""The embedded API server answers as a real one does, to a corpus of requests."""

from __future__ import annotations

import pytest

from tests.conformance.likeness.report import Report
from tests.conformance.likeness.run import run
from tests.conformance.likeness.script import corpus
from tests.machine import require_real_server

REQUIRED_REQUESTS = 400
REQUIRED_PERCENT = 99.5
# A run takes about 40 seconds on two idle cores.
pytestmark = [pytest.mark.realserver, pytest.mark.slow, pytest.mark.timeout(600)]


async def test_nearly_all_requests_are_answered_alike_and_the_list_of_differences_is_true() -> None:
    require_real_server()
    report = await run()
    print(report.table(), report.verdict(), sep="\n")
    assert not report.surprises(), _shown(report)
    assert report.percent >= REQUIRED_PERCENT, report.verdict()
    assert not report.outdated(), f"listed as different, but equal now: {report.outdated()}"


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert sum(len(script.steps) for script in corpus()) >= REQUIRED_REQUESTS


def _shown(report: Report) -> str:
    return "\n".join(f"{c.id}: {c.step.method} {c.step.path}\n{c.difference()}" for c in report.surprises())
