"""The evaluator: the compiled part of the `cel` package (common-expression-language on PyPI). The only door to it.

Importing the package the ordinary way also loads its interactive shell with typer, prompt_toolkit and rich:
half a second and 300 modules for a server that starts in milliseconds. So only the extension module is loaded.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from kopylite.errors import UsageError

_NAME = "cel.cel"


def _load() -> ModuleType:
    loaded = sys.modules.get(_NAME)
    if loaded is not None:
        return loaded
    package = importlib.util.find_spec("cel")
    spec = PathFinder.find_spec(_NAME, package.submodule_search_locations) if package is not None else None
    if spec is None or spec.loader is None:
        raise UsageError(
            "CRDs with validation rules need the package common-expression-language: pip install 'kopylite[dev]'"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Whoever imports the whole package later must get this very module: it cannot be initialised twice.
    sys.modules[_NAME] = module
    return module


_engine = _load()
# A function that fails is an ordinary outcome here (`||` may absorb it); the package warns of each.
logging.getLogger("cel").setLevel(logging.ERROR)

Context: Any = _engine.Context
OptionalValue: Any = _engine.OptionalValue
compile_text: Any = _engine.compile
