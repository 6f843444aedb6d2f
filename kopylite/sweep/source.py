"""AppSource: the operator's App, anew each time, with nothing left in the memory of its modules."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from kopylite.app import App
from kopylite.boundary import is_library
from kopylite.errors import UsageError
from kopylite.sweep.patience import ANEW, ImportEndless, import_patience

_OURS = f"{Path(__file__).parent.parent}{os.sep}"
# How the command line names the module of a file.
_TARGET = "kopylite_target_"


class AppSource:
    """Makes an App as often as it is asked, as a process that starts does.

    Args:
        load: imports it, or makes it.
        app: the first one, for what is asked about it.
        folder: the modules from below it are forgotten before each load; None: none are, for an App that is made by
            a function.
        name: for people.
    """

    def __init__(self, load: Callable[[], App], app: App, folder: Path | None, name: str) -> None:
        self._load = load
        self.app = app
        self.folder = folder
        self.name = name

    def load(self) -> App:
        """The App, with empty memory; only in a process of its own. Raises what its modules raise."""
        if self.folder is not None:
            forget(self.folder)
        try:
            with import_patience(ANEW):
                return self._load()
        except ImportEndless as error:
            raise UsageError(f"{self.name}: {error}") from None


def source_of(app: App | Callable[[], App], name: str = "") -> AppSource:
    """Where an App comes from: the module that has it, which is imported anew; or the function that makes it.

    Of several modules that have it, the one is imported that was asked for: by `name`, or as a file (one that stands in
    for what the operator calls outside, say); else the one of its reconciles.

    Args:
        name: "module:attribute", for people, too; "": the module's and the attribute's.

    Raises:
        UsageError: no module has it, so it cannot be made anew.
    """
    if not isinstance(app, App):
        return AppSource(app, app(), None, name or getattr(app, "__qualname__", "the App"))
    own = {spec.reconcile.__module__ for spec in app.controllers}
    found = [
        (module, attribute)
        for place, module in list(sys.modules.items())
        if place != "__main__" and getattr(module, "__file__", None) and _is_users(module)
        for attribute, value in list(vars(module).items())
        if value is app
    ]
    if not found:
        raise UsageError(
            f"sweep: no module has the App {app.name!r} at its top, so its memory cannot be emptied as a crash does. "
            "Name it there, or hand over a function that makes it"
        )
    asked = name.partition(":")[0]

    def rank(each: tuple[ModuleType, str]) -> int:
        of = each[0].__name__
        return 0 if of == asked or of.startswith(_TARGET) else 1 if of in own else 2

    module, attribute = min(found, key=rank)
    file = Path(str(module.__file__))

    def load() -> App:
        loaded: App = getattr(_imported(module.__name__, file), attribute)
        return loaded

    return AppSource(load, app, folder_of(file), name or f"{module.__name__}:{attribute}")


def _imported(name: str, file: Path) -> ModuleType:
    """A module of a name, whose file may lie where Python does not look."""
    with suppress(ImportError, AttributeError):
        if (spec := importlib.util.find_spec(name)) is not None and spec.origin == str(file):
            return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "it was loaded before"
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def folder_of(file: Path) -> Path:
    """Below which a file's own modules lie: its folder, or the top one of its package."""
    folder = file.resolve().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent if (folder.parent / "__init__.py").is_file() else folder
        if not (folder.parent / "__init__.py").is_file():
            break
    return folder


def forget(folder: Path) -> None:
    """Forget the user's modules from below a folder, as if nobody had imported them."""
    below = f"{folder}{os.sep}"
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name != "__main__" and _is_users(module) and os.path.realpath(file).startswith(below):
            del sys.modules[name]
    importlib.invalidate_caches()


def _is_users(module: ModuleType) -> bool:
    file = str(module.__file__)
    return not (file.startswith(_OURS) or is_library(file) or Path(file).name == "conftest.py")
