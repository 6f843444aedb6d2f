"""The texts that `kubectl explain` shows for built-in fields, from the docstrings of the installed kubernetes_asyncio.

The models' source files are read as text: importing them would cost some 50 MB.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kopylite.apiserver.builtin.data import SCHEMAS

_PROPERTY = re.compile(
    r'@property\s+def (\w+)\(self\):[^\n]*\n\s+r?"""Gets the [^\n]*\n\n(?P<text>.*?)\n\s+:return:', re.DOTALL
)
_ATTRIBUTE = re.compile(r"^ {8}'(\w+)': '([^']+)',?$", re.MULTILINE)
_ESCAPED = re.compile(r'\\(["\\])')
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def _folder() -> Path | None:
    found = importlib.util.find_spec("kubernetes_asyncio")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "client" / "models"
    return folder if folder.is_dir() else None


@cache
def field_descriptions(schema: str) -> Mapping[str, str]:
    """The descriptions of a type's fields, by field; empty if the installed models do not know the type.

    Args:
        schema: full schema name, e.g. "io.k8s.api.core.v1.PodSpec".
    """
    path = _source(schema)
    if path is None:
        return {}
    text = path.read_text()
    # Two dicts stand at the top of a model: types first, then the names on the wire.
    names = dict(_ATTRIBUTE.findall(text.partition("attribute_map = {")[2].partition("}")[0]))
    found = {}
    for match in _PROPERTY.finditer(text):
        name, description = match[1], _unquoted(match["text"].replace("# noqa: E501", "").strip())
        if name in names and description:
            found[names[name]] = description
    return found


def _unquoted(text: str) -> str:
    """The text as it was before the generator of the models escaped it for a docstring."""
    return _ESCAPED.sub(r"\1", text)


# A resource that has every verb, in a short file.
_EVERY_VERB = "coordination_v1_api.py"
_PARAMETER = re.compile(r"^ +:param (\w+): (.+?)(?: \(required\))?$", re.MULTILINE)


@cache
def parameter_descriptions() -> Mapping[str, str]:
    """The descriptions of query and path parameters, by name; empty if the models are not installed."""
    folder = _folder()
    path = folder.parent / "api" / _EVERY_VERB if folder else None
    if path is None or not path.is_file():
        return {}
    found: dict[str, str] = {}
    for name, description in _PARAMETER.findall(path.read_text()):
        first, *words = name.strip("_").split("_")
        found.setdefault(first + "".join(word.capitalize() for word in words), _unquoted(description))
    return found


# Kinds whose apiVersion and kind are described in the words that serve for custom ones too.
_ANY_OBJECT, _ANY_LIST = "io.k8s.api.core.v1.ConfigMap", "io.k8s.api.core.v1.ConfigMapList"
_HEAD = ("apiVersion", "kind")
# The models say nothing about fields of other models' types.
_CONVENTIONS = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_METADATA = f"Standard object's metadata. {_CONVENTIONS}#metadata"
_LIST_METADATA = f"Standard list metadata. {_CONVENTIONS}#types-kinds"


def describe(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with the descriptions of its fields added; of a custom kind's those that every kind has."""
    if name in SCHEMAS:
        texts = dict(field_descriptions(name))
    else:
        listed = "items" in (schema.get("required") or ())
        found = field_descriptions(_ANY_LIST if listed else _ANY_OBJECT)
        texts = {field: found[field] for field in _HEAD if field in found}
        texts["metadata"] = _LIST_METADATA if listed else _METADATA
    if not texts:
        return schema
    properties = {
        field: {**prop, "description": texts[field]} if field in texts else prop
        for field, prop in (schema.get("properties") or {}).items()
    }
    return {**schema, "properties": properties}


def _source(schema: str) -> Path | None:
    """The file of the model of a type; where groups share a name, the model is named after its group too."""
    folder = _folder()
    *package, version, kind = schema.split(".")
    if folder is None or not package:
        return None
    stem = f"{version}_{_WORD.sub('_', kind).lower()}"
    for name in (stem, f"{package[-1].replace('-', '_').lower()}_{stem}"):
        path = folder / f"{name}.py"
        if path.is_file():
            return path
    return None
