"""The zoo without faults: every bug looks well as long as nothing goes wrong, which is why it was not found."""

from __future__ import annotations

import importlib
import os
from collections import Counter

import pytest

from kopylite import App, Client, Kind
from kopylite.testing import VirtualClock
from tests.bugzoo.catalogue import ANIMALS, FOLDER, Animal
from tests.bugzoo.playing import play, world_of

KINDS = [
    Kind("v1", "ConfigMap"),
    Kind("v1", "Secret"),
    Kind("apps/v1", "Deployment"),
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding"),
    Kind("zoo.example.com/v1", "Thing"),
]


async def what_is_there(user: Client) -> str:
    """How many objects of each kind there are where the scenarios play."""
    counts: Counter[str] = Counter()
    for kind in KINDS:
        for namespace in ("default", "store"):
            found = await user.list(kind, namespace=namespace)
            counts[kind.kind] += sum(obj.name != "kube-root-ca.crt" for obj in found)
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def app_of(animal: Animal, which: str) -> App:
    app = getattr(importlib.import_module(f"tests.bugzoo.{animal.name}"), which)
    assert isinstance(app, App)
    return app


def test_every_module_of_the_zoo_is_in_its_catalogue_and_has_a_scenario() -> None:
    modules = {path.stem for path in FOLDER.glob("*.yaml")} - {"thing.crd"}
    assert modules == {animal.name for animal in ANIMALS}
    assert all((FOLDER / f"{name}.py").exists() for name in modules)


def ends_of(animal: Animal, which: str) -> str:
    clock = VirtualClock()

    async def main() -> str:
        async with world_of(animal.scenario, clock) as (cluster, user):
            await play(cluster, user, app_of(animal, which), animal.scenario, clock)
            return await what_is_there(user)

    return clock.run(main)


# All of them are half a minute; KOPYLITE_ZOO=all takes them.
SAMPLE = ANIMALS if os.environ.get("KOPYLITE_ZOO") == "all" else ANIMALS[::4]


@pytest.mark.parametrize("animal", SAMPLE, ids=[animal.name for animal in SAMPLE])
def test_without_faults_each_comes_to_rest_where_it_should(animal: Animal) -> None:
    assert ends_of(animal, "twin") == animal.ends
    assert ends_of(animal, "bug") == (animal.bug_ends or animal.ends).strip()
