"""Names in generated source: Python's rules and habits for what a CRD calls its fields."""

from __future__ import annotations

import keyword
import re

from kopylite.objects.apimodel import ApiModel
from kopylite.objects.wireschema import camel

# Words of a name: URLs, an acronym (HTTP of HTTPRoute), a word with its digits (ipv4), digits.
_WORDS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")
# What a field must not be called: names that its class has already, and names that the annotations use.
_TAKEN = frozenset(dir(ApiModel)) | {
    "str", "int", "float", "bool", "list", "dict", "date", "datetime",
    "embedded_resource", "list_atomic", "list_map", "list_set",
}  # fmt: skip


def python_name(wire_name: str) -> tuple[str, str | None]:
    """The Python name for a field, and its wire name if that does not follow from the Python name."""
    name = "_".join(_WORDS.findall(wire_name)).lower() or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    if name in _TAKEN or keyword.iskeyword(name) or name.startswith("model_"):
        name += "_"
    return name, None if camel(name) == wire_name else wire_name


def class_name(path: tuple[str, ...]) -> str:
    """The class name for what is at a path of wire names."""
    words = (part[:1].upper() + part[1:] for step in path for part in re.split(r"[^A-Za-z0-9]+", step))
    name = "".join(words)
    if not name or name[0].isdigit():
        name = f"Field{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def kind_class_name(kind: str) -> str:
    """The class name for a kind: the kind itself where Python allows it."""
    fits = kind.isidentifier() and not keyword.iskeyword(kind) and kind not in _TAKEN
    return kind if fits else class_name((kind,))


def singular(name: str) -> str:
    """The name of one item of a list; a name that is no English plural stays as it is."""
    if name.endswith("ies") and len(name) > 4:
        return f"{name[:-3]}y"
    if name.endswith(("sses", "shes", "ches", "xes")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith(("ss", "us", "is")) else name
