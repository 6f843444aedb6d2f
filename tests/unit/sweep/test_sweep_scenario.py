from __future__ import annotations

from pathlib import Path

import pytest

from kopylite.errors import UsageError
from kopylite.objects.yamlwrite import to_yaml
from kopylite.sweep.scenario import EXAMPLE, Scenario, Step, read_scenario, scenario_of
from tests.unit.sweep.operators import CRD, a_thing


def written(folder: Path, text: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return path


def test_a_file_has_crds_beside_it_and_steps(tmp_path: Path) -> None:
    (tmp_path / "thing.crd.yaml").write_text(to_yaml([CRD, CRD]))
    read = read_scenario(written(tmp_path, EXAMPLE))
    assert len(read.crds) == 2  # several documents in one file
    assert [str(step) for step in read.steps] == [
        "apply Thing default/a",
        "patch Thing default/a",
        "delete Thing default/a",
    ]
    assert read.steps[1].patch == {"spec": {"size": 2}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a scenario is one YAML map with crds and steps"),
        ("- a", "a scenario is one YAML map with crds and steps"),
        ("steps: [", ":1: "),
        ("step: []", "there is no key 'step'; there are crds, steps"),
        ("steps: {}", "steps: a list with at least one step, not a map"),
        ("crds: thing.yaml\nsteps: [a]", "crds: a list of files"),
        ("crds: [nowhere.yaml]\nsteps: [a]", "nowhere.yaml: No such file or directory (paths are relative"),
        ("steps: [a]", "steps[0]: a step is a map with one key, apply, patch, delete, not a text"),
        ("steps: [{wait: 5}]", "steps[0]: there is no step 'wait'; there are apply, patch, delete"),
        ("steps: [{apply: 5}]", "steps[0].apply: a map, not a number"),
        ("steps: [{apply: {kind: Thing}}]", "steps[0].apply.apiVersion: a text, not nothing"),
        ("steps: [{apply: {apiVersion: v1, kind: Pod}}]", "steps[0].apply.metadata: a map with a name, not nothing"),
        ("steps: [{delete: {apiVersion: v1, kind: Pod}}]", "steps[0].delete.name: a text, not nothing"),
        ("steps: [{delete: {apiVersion: v1, kind: Pod, name: a, nmespace: b}}]", "there is no key 'nmespace'"),
        ("steps: [{patch: {apiVersion: v1, kind: Pod, name: a}}]", "steps[0].patch.patch: a merge patch"),
    ],
)
def test_what_is_no_scenario_is_told_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_scenario(written(tmp_path, text))
    assert problem in str(raised.value)
    assert "scenario.yaml" in str(raised.value)


async def test_objects_and_functions_stand_for_scenarios() -> None:
    async def play(scene: object) -> None:
        """Nothing."""

    assert scenario_of([a_thing()]).steps == (Step("apply", a_thing()),)
    assert scenario_of(play).play is play
    given = Scenario()
    assert scenario_of(given) is given
