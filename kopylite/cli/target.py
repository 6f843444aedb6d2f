"""The target of a command: `package.module:attribute`, or `path/to/file.py:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING

from kopylite.boundary import say
from kopylite.errors import KubeconfigError, RegistrationError, UsageError

if TYPE_CHECKING:
    from kopylite.app import App

DEFAULT_ATTRIBUTE = "app"

_OURS = f"{Path(__file__).parent.parent}{os.sep}"
_PYTHONS = f"{sysconfig.get_path('stdlib')}{os.sep}"


class ModuleNotLoaded(UsageError):
    """The module of a target cannot be found, or fails to import."""


class AttributeNotFound(UsageError):
    """The module of a target has no such attribute, or it is no App."""


def load_apps(targets: Sequence[str]) -> list[App]:
    """The Apps of some targets, each once. Raises as `load_app` does."""
    return list(dict.fromkeys(map(load_app, targets)))


def load_app(target: str) -> App:
    """Import the target's module, with the current folder first on the path, and return its App.

    The attribute is `app` if none is named.

    Raises:
        ModuleNotLoaded: there is no such module; or, with its own error as the cause, it fails to import.
        AttributeNotFound: the module has no such attribute, or it is no App.
        RegistrationError: it declares something wrongly; the message names file and line.
    """
    from kopylite.app import App

    place, _, attribute = target.partition(":")
    attribute = attribute or DEFAULT_ATTRIBUTE
    module = load_module(place)
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    hint = f"; it has the App {', '.join(apps)}" if apps else "; it has no App at all"
    if not hasattr(module, attribute):
        raise AttributeNotFound(f"{place} has no attribute {attribute!r}{hint}")
    app = getattr(module, attribute)
    if not isinstance(app, App):
        raise AttributeNotFound(f"{place}:{attribute} is a {type(app).__name__} and not a kopylite.App{hint}")
    return app


def load_module(place: str) -> ModuleType:
    """Import `package.module` or `path/to/file.py`, with the current folder first on the path.

    A file of a package is imported as its module; any other one can import what lies beside it.

    Raises:
        ModuleNotLoaded: there is no such module; or, with its own error as the cause, it fails to import.
        RegistrationError: it declares something wrongly; the message names file and line.
    """
    _put_first(Path.cwd())
    try:
        if place.endswith(".py"):
            return _load_file(Path(place))
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            raise ModuleNotLoaded(f"there is no module {error.name!r} here or in the Python path") from None
        raise ModuleNotLoaded(f"{place} cannot be imported: {error}") from _as_the_user_sees(error)
    except (ModuleNotLoaded, KubeconfigError):
        raise
    except UsageError as error:
        raise RegistrationError(f"{_place_of(error)}{error}") from None
    except SystemExit as error:
        raise ModuleNotLoaded(f"{_place_of(error)}{place} ends the process instead of being imported") from None
    except BaseException as error:  # whatever it is, it is about this module, and no signal: those have handlers
        raise ModuleNotLoaded(f"{place} cannot be imported: {say(error)}") from _as_the_user_sees(error)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModuleNotLoaded(f"there is no file {path}")
    path = path.resolve()
    return _load_from_package(path) or _load_alone(path)


def _load_from_package(path: Path) -> ModuleType | None:
    """A file of a package, as its module, so that it can say `from . import ...`; None: it is of none."""
    top, names = path.parent, [path.stem]
    while (top / "__init__.py").is_file():
        names.insert(0, top.name)
        top = top.parent
    if len(names) == 1 or not all(name.isidentifier() for name in names):
        return None
    _put_first(top)
    name = ".".join(names)
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None  # another package of this name is loaded already
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != path:
        return None
    return importlib.import_module(name)


def _load_alone(path: Path) -> ModuleType:
    """Not under the file's own name: an operator.py must not take the place of Python's `operator`."""
    _put_first(path.parent)
    name = f"kopylite_target_{path.stem}"
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path):
        name += "_"  # several targets may have files of one name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _put_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _place_of(error: BaseException) -> str:
    """ "FILE:LINE: " of the user's line that led to an error."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not _is_machinery(frame.f_code.co_filename):
            place = f"{_short(frame.f_code.co_filename)}:{line}: "
    return place


def _as_the_user_sees(error: BaseException) -> BaseException:
    """The error without the frames that led to the user's module: they are of no help to anybody."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and _is_machinery(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return error.with_traceback(trace)


def _is_machinery(filename: str) -> bool:
    """Not the user's: kopylite's, Python's, or made by them ("<string>")."""
    in_python = filename.startswith(_PYTHONS) and "site-packages" not in filename
    return in_python or filename.startswith((_OURS, "<"))


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
