"""Neighbours: modules beside a file, from which it imports. They are read for their constants, and never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from kopylite.errors import UsageError
from kopylite.migration.constants import Constants, constants_of, text_of
from kopylite.migration.sources import read_source

# Of one module; more imports than any has.
MOST = 100
# How far above a file its package may begin.
LEVELS = 5


def imported_constants(path: Path, tree: ast.Module) -> Constants:
    """The texts that a module imports from files near it, by the names that it has for them: "GROUP", "conf.GROUP"."""
    found: Constants = {}
    for count, (module, level, name, local) in enumerate(_imports(tree)):
        if count >= MOST:
            break
        if name:
            home = _file_of(path, module, level)
            text = _texts(home).get(name) if home else None
            if text is not None:
                found[local] = ast.Constant(text)
                continue
            module = ".".join(part for part in (module, name) if part)
        home = _file_of(path, module, level)
        for inner, text in (_texts(home) if home else {}).items():
            found[f"{local}.{inner}"] = ast.Constant(text)
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[str, int, str, str]]:
    """Module, how many packages above, the name that is taken from it ("": itself), and its name here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.module or "", node.level, alias.name, alias.asname or alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname or "." not in alias.name:
                    yield alias.name, 0, "", alias.asname or alias.name


def _file_of(path: Path, module: str, level: int) -> Path | None:
    """The file of a module: from the folder that a relative import names, or from one of those above the file."""
    folders = list(path.resolve().parents)
    folders = folders[level - 1 : level] if level else folders[:LEVELS]
    parts = [part for part in module.split(".") if part]
    for folder in folders:
        base = folder.joinpath(*parts)
        if not base.name:  # the root of all files is no module
            continue
        for candidate in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _texts(path: Path) -> dict[str, str]:
    """The constants of a file that are texts; a file that cannot be read has none."""
    try:
        constants = constants_of([read_source(path).tree])
    except UsageError:
        return {}
    texts = {name: text_of(value, constants) for name, value in constants.items()}
    return {name: text for name, text in texts.items() if text is not None}
