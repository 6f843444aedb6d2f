from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pytest

from kopylite.app import App
from kopylite.cli.target import AttributeNotFound, ModuleNotLoaded, load_app, load_apps
from kopylite.errors import RegistrationError

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

    assert operator.itemgetter(0)("python") == "p"


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


def test_a_wrong_registration_is_told_with_its_file_and_line(folder: Path) -> None:
    (folder / "shop_operator.py").write_text(
        f"{OPERATOR}\n@app.reconciler('Thing')\nasync def reconcile(ctx, request):\n    ...\n"
    )
    with pytest.raises(RegistrationError, match=r"^shop_operator\.py:6: @app\.reconciler: 'Thing' is no kind"):
        load_app("shop_operator")


def test_a_registration_in_a_module_that_the_target_imports_is_told_with_that_module(folder: Path) -> None:
    (folder / "kinds_of_shop.py").write_text("from kopylite import Kind\nThing = Kind('Example.com/V1', 'Thing')\n")
    (folder / "shop_operator.py").write_text(f"import kinds_of_shop\n{OPERATOR}")
    with pytest.raises(RegistrationError, match=r"^kinds_of_shop\.py:2: Kind\("):
        load_app("shop_operator.py")


def test_the_traceback_of_a_module_that_fails_begins_in_that_module(folder: Path) -> None:
    (folder / "raising_operator.py").write_text("def boom():\n    raise ZeroDivisionError('boom')\nboom()\n")
    for target in ("raising_operator", "raising_operator.py"):
        with pytest.raises(ModuleNotLoaded) as caught:
            load_app(target)
        assert caught.value.__cause__ is not None
        frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
        assert [(Path(frame.filename).name, frame.lineno) for frame in frames] == [
            ("raising_operator.py", 3),
            ("raising_operator.py", 2),
        ]


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nraise asyncio.CancelledError\n",
        "class Odd(BaseException):\n    def __str__(self):\n        raise ValueError\nraise Odd\n",
        "raise BaseExceptionGroup('x', [KeyboardInterrupt()])\n",
        "def f():\n    f()\nf()\n",
        "\0",
        "x = (",
    ],
)
def test_whatever_a_module_raises_is_one_documented_error(folder: Path, source: str) -> None:
    (folder / "odd_operator.py").write_text(source)
    for target in ("odd_operator", "odd_operator.py"):
        with pytest.raises(ModuleNotLoaded, match="odd_operator"):
            load_app(target)


def test_a_module_that_ends_the_process_is_one_that_cannot_be_imported(folder: Path) -> None:
    (folder / "script.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ModuleNotLoaded, match=r"^script\.py:2: script ends the process"):
        load_app("script")


def test_a_file_can_import_what_lies_beside_it(folder: Path) -> None:
    for name in ("one", "two"):  # each with a file of the same name
        (folder / name).mkdir()
        (folder / name / f"beside_{name}.py").write_text(f"NAME = {name!r}\n")
        (folder / name / "operator.py").write_text(
            f"from beside_{name} import NAME\nfrom kopylite.app import App\napp = App(NAME)\n"
        )
    apps = load_apps(["one/operator.py", str(folder / "two" / "operator.py"), "one/operator.py:app"])
    assert [app.name for app in apps][:2] == ["one", "two"]


def test_a_file_of_a_package_is_loaded_as_its_module(folder: Path) -> None:
    package = folder / "src" / "shop_package" / "inner"
    package.mkdir(parents=True)
    for place in (package, package.parent):
        (place / "__init__.py").write_text("")
    (package.parent / "names.py").write_text("NAME = 'relative'\n")
    (package / "operator.py").write_text("from ..names import NAME\nfrom kopylite.app import App\napp = App(NAME)\n")
    assert load_app("src/shop_package/inner/operator.py").name == "relative"
    assert "shop_package.inner.operator" in sys.modules


def test_a_package_whose_name_is_taken_does_not_stop_its_file(folder: Path) -> None:
    package = folder / "json"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "shop.py").write_text(OPERATOR)
    assert load_app("json/shop.py").name == "first"


def test_an_app_that_is_named_twice_is_one(folder: Path) -> None:
    (folder / "shop_operator.py").write_text(OPERATOR)
    assert [app.name for app in load_apps(["shop_operator", "shop_operator:other", "shop_operator:app"])] == [
        "first",
        "second",
    ]
