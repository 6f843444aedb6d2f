"""The target of a command: `package.module:attribute`, or `path/to/file.py:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.app import App

DEFAULT_ATTRIBUTE = "app"


class ModuleNotLoaded(UsageError):
    """The module of a target cannot be found, or fails to import."""


class AttributeNotFound(UsageError):
    """The module of a target has no such attribute, or it is no App."""


def load_app(target: str) -> App:
    """Import the target's module, with the current folder first on the path, and return its App.

    The attribute is `app` if none is named.

    Raises:
        ModuleNotLoaded: there is no such module; or, with its own error as the cause, it fails to import.
        AttributeNotFound: the module has no such attribute, or it is no App.
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

    Raises:
        ModuleNotLoaded: there is no such module; or, with its own error as the cause, it fails to import.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        if place.endswith(".py"):
            return _load_file(Path(place))
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            raise ModuleNotLoaded(f"there is no module {error.name!r} here or in the Python path") from None
        raise ModuleNotLoaded(f"{place} cannot be imported: {error}") from error
    except UsageError:
        raise
    except Exception as error:
        raise ModuleNotLoaded(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    """Not under the file's own name: an operator.py must not take the place of Python's `operator`."""
    name = f"kopylite_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ModuleNotLoaded(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
