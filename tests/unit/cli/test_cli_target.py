from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kopylite.app import App
from kopylite.cli.target import AttributeNotFound, ModuleNotLoaded, load_app

OPERATOR = "from kopylite.app import App\napp = App('first')\nother = App('second')\nnumber = 3\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def test_a_module_of_the_current_folder_and_its_attribute(folder: Path) -> None:
    (folder / "shop_operator.py").write_text(OPERATOR)
    assert load_app("shop_operator:other").name == "second"


def test_the_attribute_is_app_if_none_is_named(folder: Path) -> None:
    (folder / "shop_operator.py").write_text(OPERATOR)
    assert isinstance(load_app("shop_operator"), App)


def test_a_file_named_operator_does_not_take_the_place_of_pythons_own(folder: Path) -> None:
    (folder / "operator.py").write_text(OPERATOR)
    assert load_app("operator.py:app").name == "first"
    import operator

    assert operator.itemgetter


@pytest.mark.parametrize("target", ["no_such_module", "no_such_module.sub:app", "no_such_file.py", "no/such/file.py:a"])
def test_a_missing_module_is_one_line(folder: Path, target: str) -> None:
    with pytest.raises(ModuleNotLoaded, match="there is no") as caught:
        load_app(target)
    assert "\n" not in str(caught.value)


def test_a_module_that_lacks_an_import_of_its_own_is_not_called_missing(folder: Path) -> None:
    (folder / "broken_operator.py").write_text("import no_such_dependency\n")
    with pytest.raises(ModuleNotLoaded, match=r"broken_operator cannot be imported: .*no_such_dependency"):
        load_app("broken_operator")


def test_a_module_that_raises_keeps_its_own_error_as_the_cause(folder: Path) -> None:
    (folder / "raising_operator.py").write_text("raise ZeroDivisionError('boom')\n")
    with pytest.raises(ModuleNotLoaded, match="ZeroDivisionError: boom") as caught:
        load_app("raising_operator")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_missing_attribute_names_the_apps_that_are_there(folder: Path) -> None:
    (folder / "shop_operator.py").write_text(OPERATOR)
    with pytest.raises(AttributeNotFound, match=r"no attribute 'main'; it has the App app, other"):
        load_app("shop_operator:main")


def test_an_attribute_that_is_no_app_is_refused(folder: Path) -> None:
    (folder / "shop_operator.py").write_text(OPERATOR)
    with pytest.raises(AttributeNotFound, match=r"number is a int and not a kopylite\.App"):
        load_app("shop_operator:number")
