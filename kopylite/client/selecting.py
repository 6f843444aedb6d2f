"""Selecting: the forms in which callers say which objects of a list they want, made into the server's. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kopylite.boundary import show
from kopylite.client.paths import check_path
from kopylite.client.verbs import Selection
from kopylite.errors import UsageError
from kopylite.objects import Kind

SelectorLike = str | Mapping[str, str]
"""A selector in the server's syntax, "app=web,tier!=cache", or a map of what has to be equal: {"app": "web"}."""

IndexValues = Mapping[str, str | int | float]
"""Paths of fields and the values that are looked for: {"spec.config": "a", "spec.replicas": 3}."""

_LABEL = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?")
# What stands for itself in the value of a field selector only behind a backslash.
_SPECIAL = re.compile(r"[\\,=]")


def label_selector_text(labels: object, option: str = "labels", error: type[UsageError] = UsageError) -> str:
    """A label selector in the server's syntax.

    Raises:
        UsageError (or `error`): it is no Selector, or a part of a map cannot be a label. The message has the `option`.
    """
    terms = []
    for name, value in _pairs(labels, option, "{'app': 'web'}", error):
        if not _LABEL.fullmatch(name) or (value and not _LABEL.fullmatch(value)) or "/" in value:
            raise error(
                f"{option}: no label can be {name}={show(value)}; a map says what is equal, a text all the rest"
            )
        terms.append(f"{name}={value}")
    return labels if isinstance(labels, str) else ",".join(terms)


def field_selector_text(fields: object, option: str = "fields", error: type[UsageError] = UsageError) -> str:
    """A field selector in the server's syntax. Raises as `label_selector_text`."""
    pairs = _pairs(fields, option, "{'spec.nodeName': 'n1'}", error)
    terms = [f"{name}={_SPECIAL.sub(lambda found: chr(92) + found[0], value)}" for name, value in pairs]
    return fields if isinstance(fields, str) else ",".join(terms)


def selection_of(labels: object, fields: object) -> Selection:
    """Which objects of a list are wanted. Raises as `label_selector_text`."""
    return Selection(label_selector_text(labels), field_selector_text(fields))


def _pairs(selector: object, option: str, example: str, error: type[UsageError]) -> list[tuple[str, str]]:
    odd = selector
    if isinstance(selector, str):
        return []
    if isinstance(selector, Mapping):
        parts = [part for pair in selector.items() for part in pair if not isinstance(part, str)]
        if not parts:
            return list(selector.items())
        odd = parts[0]
    raise error(f"{option} takes a text in the server's syntax, or a map of texts such as {example}, not {show(odd)}")


def index_values(kind: Kind | type[Any], index: object) -> dict[str, str]:
    """Paths and the values that are looked for, spelled as the index has them: numbers and booleans as in JSON.

    Raises:
        UsageError: it is no map of paths and single values, or a class has no such field.
    """
    if not isinstance(index, Mapping):
        raise UsageError(f"index={show(index)}: give a map of paths and values, as in index={{'spec.config': 'a'}}")
    found = {}
    for path, value in index.items():
        if not isinstance(value, str | int | float):
            raise UsageError(
                f"index={{{path!r}: {show(value)}}}: a text, a number or a boolean is looked for, nothing else"
            )
        try:
            check_path(kind, path)
        except UsageError as error:
            raise UsageError(f"index: {error}") from None
        found[path] = str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return found
