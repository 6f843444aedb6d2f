"""The public API itself is under test: its names, their homes, and what importing it costs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kopylite

SOURCE = Path(kopylite.__file__).read_text()


def names_for_type_checkers() -> dict[str, str]:
    """name -> module, from the imports that only a type checker sees."""
    [block] = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If)]
    return {
        alias.name: node.module or "" for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


@pytest.mark.parametrize("name", kopylite.__all__)
def test_every_public_name_can_be_imported_and_documents_itself(name: str) -> None:
    assert getattr(kopylite, name).__doc__


def test_type_checkers_see_the_names_that_programs_get() -> None:
    assert names_for_type_checkers() == kopylite._HOMES
    assert list(kopylite._HOMES) == kopylite.__all__


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


def test_declaring_an_operator_loads_neither_the_kubernetes_library_nor_a_server() -> None:
    loaded = loaded_by("from kopylite import App, Context, CustomResource, Kind, Request, Result, Unstructured, watch")
    assert not loaded & {"kubernetes_asyncio", "aiohttp.web", "prometheus_client", "kopylite.apiserver", "yaml"}
