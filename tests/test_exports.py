"""The public API itself is under test: its names, their homes, and what importing it costs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kopylite
from kopylite.lazily import found_in

SOURCE = Path(kopylite.__file__).read_text()


ROOMS = [
    path.parent.name
    for path in sorted(Path(kopylite.__file__).parent.glob("*/__init__.py"))
    if "found_in(" in path.read_text()
]


def imported(statements: list[ast.stmt]) -> dict[str, str]:
    """name -> module."""
    found = [node for node in statements if isinstance(node, ast.ImportFrom) and (node.module or "")[:8] == "kopylite"]
    return {alias.name: node.module or "" for node in found for alias in node.names}


def names_for_type_checkers(source: str = SOURCE) -> dict[str, str]:
    """name -> module, from the imports that only a type checker sees."""
    [block] = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return imported(block.body)


@pytest.mark.parametrize("name", kopylite.__all__)
def test_every_public_name_can_be_imported_and_documents_itself(name: str) -> None:
    assert getattr(kopylite, name).__doc__


def test_type_checkers_see_the_names_that_programs_get() -> None:
    assert names_for_type_checkers() == kopylite._HOMES
    assert list(kopylite._HOMES) == kopylite.__all__


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_finds_the_names_that_type_checkers_see_when_they_are_asked_for(room: str) -> None:
    module = importlib.import_module(f"kopylite.{room}")
    source = Path(str(module.__file__)).read_text()
    shown = names_for_type_checkers(source) | imported(ast.parse(source).body)
    assert sorted(shown) == sorted(module.__all__)
    for name, home in shown.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match=f"'kopylite.{room}' has no attribute 'Nothing'"):
        _ = module.Nothing


def test_a_name_that_is_also_a_module_of_its_room_is_not_left_for_later() -> None:
    with pytest.raises(AssertionError, match="room"):
        found_in("room", {"room.things": "Thing things"})


@pytest.mark.parametrize(("name", "home"), kopylite._HOMES.items())
def test_a_public_name_is_public_in_its_room_too(name: str, home: str) -> None:
    module = importlib.import_module(home)
    assert name in getattr(module, "__all__", [name])
    assert getattr(kopylite, name) is getattr(module, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = kopylite.Nothing


def test_dir_shows_the_names_before_they_are_loaded() -> None:
    assert set(kopylite.__all__) <= set(dir(kopylite))


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    return set(done.stdout.split())


def test_importing_kopylite_loads_no_dependency_at_all() -> None:
    loaded = loaded_by("import kopylite")
    assert not loaded & {"kubernetes_asyncio", "aiohttp", "pydantic", "anyio", "msgspec", "prometheus_client"}
    assert {name for name in loaded if name.startswith("kopylite")} == {"kopylite"}


# What only a running operator needs: its HTTP, its metrics, its caches and queues, and the embedded server.
AT_WORK = {
    "kubernetes_asyncio", "httptools", "prometheus_client", "yaml", "uvloop", "http.client", "kopylite.apiserver",
    "kopylite.client.cached", "kopylite.client.transport", "kopylite.cache.store", "kopylite.controller.controller",
    "kopylite.crds.schema", "kopylite.manager", "kopylite.serving", "kopylite.workqueue.queue",
}  # fmt: skip
# What none but those need who use it.
ON_DEMAND = {
    "kubernetes_asyncio", "cryptography", "kopylite.webhooks.service", "kopylite.apiserver", "kopylite.deploy",
    "kopylite.doctor", "kopylite.sweep", "kopylite.crds", "kopylite.serving.server", "aiohttp", "yarl",
    "prometheus_client", "yaml", "pydantic.networks", "difflib", "kopylite.webhooks.configurations",
    "kopylite.client.execplugin", "kopylite.client.oidc", "kopylite.leaderelection.elector",
    "kopylite.leaderelection.membership",
}  # fmt: skip


def test_declaring_an_operator_loads_nothing_that_only_a_running_one_needs() -> None:
    loaded = loaded_by("from kopylite import App, Context, CustomResource, Kind, Request, Result, Unstructured, watch")
    assert not loaded & AT_WORK


def test_what_runs_an_operator_loads_nothing_that_only_some_need() -> None:
    loaded = loaded_by(
        "import kopylite.cli.run, kopylite.manager.manager, kopylite.manager.wiring, kopylite.client.contexts"
    )
    assert not loaded & ON_DEMAND


def test_pytest_loads_nothing_that_only_tests_of_operators_need() -> None:
    """It loads the plugins in each project of an environment that has kopylite."""
    assert not loaded_by("import kopylite.testing.plugin, kopylite.sweep.plugin") & AT_WORK
