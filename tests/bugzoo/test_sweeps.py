"""The sweep over the zoo: each bug is found, and no twin. A sample; KOPYLITE_ZOO=all takes all of them."""

from __future__ import annotations

import os

import pytest

from kopylite.sweep.plans import FAULTS
from tests.bugzoo.catalogue import ANIMALS, Animal
from tests.bugzoo.sweeping import swept

SAMPLE = {"half_done", "ignored_conflict"}


def test_each_bug_names_a_fault_that_there_is() -> None:
    assert {animal.fault for animal in ANIMALS} <= set(FAULTS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("animal", ANIMALS, ids=[animal.name for animal in ANIMALS])
def test_the_bug_is_found_and_its_twin_is_not(animal: Animal) -> None:
    everything = os.environ.get("KOPYLITE_ZOO") == "all"
    if not everything and animal.name not in SAMPLE:
        pytest.skip("of the zoo a sample is swept; KOPYLITE_ZOO=all sweeps all of it")
    faults = None if everything else [animal.fault]
    assert swept(animal, "bug", faults=faults).findings
    twin = swept(animal, "twin", faults=faults)
    assert not twin.findings, str(twin)
