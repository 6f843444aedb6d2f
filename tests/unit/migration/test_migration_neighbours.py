from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kopylite.migration.constants import text_of
from kopylite.migration.neighbours import imported_constants


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from conf import GROUP", "GROUP"),
        ("from conf import GROUP as G", "G"),
        ("import conf", "conf.GROUP"),
        ("import conf as c", "c.GROUP"),
        ("from .beside import GROUP", "GROUP"),
        ("from . import beside", "beside.GROUP"),
        ("from ..conf import GROUP", "GROUP"),
        ("from package.beside import GROUP", "GROUP"),
    ],
)
def test_a_name_that_is_imported_from_a_file_nearby_is_known(statement: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "conf.py").write_text("BASE = 'example.com'\nGROUP = f'shop.{BASE}'\nraise SystemExit\n")
    (tmp_path / "package" / "beside.py").write_text("GROUP = 'shop.example.com'\n")
    (tmp_path / "package" / "__init__.py").write_text("broken (\n")
    found = imported_constants(tmp_path / "package" / "handlers.py", ast.parse(statement))
    assert text_of(ast.parse(name, mode="eval").body, found) == "shop.example.com"


def test_what_is_nowhere_near_is_not_known(tmp_path: Path) -> None:
    tree = ast.parse("import os, nowhere.at.all\nfrom . import nothing\nfrom ...... import far\n")
    assert imported_constants(tmp_path / "a.py", tree) == {}
    for dots in range(1, 20):
        assert imported_constants(tmp_path / "a.py", ast.parse(f"from {'.' * dots} import far")) == {}
