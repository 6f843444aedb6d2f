"""Every built-in kind: what is refused, kept and frozen, as a real API server has it."""

from __future__ import annotations

import pytest

from tests.conformance.likeness.kinds import kinds, samples, scripts
from tests.conformance.likeness.report import KNOWN_KINDS, known_differences
from tests.conformance.likeness.run import run_kinds
from tests.machine import require_real_server

# Enough for a run of less than a minute; `python -m tests.conformance.likeness --kinds` plays all of them.
SHARE = 4


def test_every_kind_that_is_stored_has_a_sample_and_every_request_a_name_of_its_own() -> None:
    assert [f"{api_version}/{entry['kind']}" for api_version, entry in kinds()] == list(samples())
    for script in scripts():
        names = [step.name for step in script.steps]
        assert len(set(names)) == len(names) > 10, script


@pytest.mark.realserver
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_objects_made_from_the_schema_of_each_kind_are_answered_as_by_the_real_server() -> None:
    require_real_server()
    report = await run_kinds(share=SHARE)
    print(report.table(), report.verdict(), sep="\n")
    shown = "\n".join(f"{c.id}: {c.step.method} {c.step.path}\n{c.difference()}" for c in report.surprises())
    assert not shown, f"differences that {KNOWN_KINDS.name} does not list:\n{shown}"
    assert not report.outdated(), f"listed as different, but equal now: {report.outdated()}"
    assert len(known_differences(KNOWN_KINDS)) < len(report.comparisons) + len(report.left_out)
