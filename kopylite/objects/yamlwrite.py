"""Objects as YAML text that every reader takes for the same object: Go's, and those that follow YAML 1.1 or 1.2."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from kopylite.objects.yamlscalars import reads_back

_TEXT = "tag:yaml.org,2002:str"
# Texts to which YAML's versions and readers give different meanings, though Go's reader takes them for texts.
_DISPUTED = re.compile(r"=|<<|0[oxb].*|[-+]?[.0-9][-+.0-9_:eE]*(?:[tT ][-+0-9:. ]*)?[zZ]?", re.DOTALL)

# Line breaks to some readers and spaces to others, and what some do not let pass: written as escapes.
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def to_yaml(documents: Sequence[dict[str, Any]], *, start: bool = True) -> str:
    """YAML documents in the order of their keys, long texts as blocks, without anchors.

    Args:
        start: begin each document with a line of three dashes.

    Raises:
        ValueError: a number is not finite: no object of the API can hold it.
    """
    # Not by the emitter's own mark: it would put an empty map beside it, where kubectl allows nothing but a comment.
    mark = "---\n" if start or len(documents) > 1 else ""
    return "".join(
        mark + yaml.dump(document, Dumper=_Readable, sort_keys=False, width=110, allow_unicode=True)
        for document in documents
    )


def to_go_yaml(obj: Any, *, sort_keys: bool = True) -> bytes:
    """YAML as Go's encoder writes it: keys sorted as of a map, double quotes where quotes are needed."""
    text: str = yaml.dump(obj, Dumper=_GoStyle, default_flow_style=False, sort_keys=sort_keys, allow_unicode=True)
    return text.encode("utf-8", "replace")


def go_yaml_list(head: Mapping[str, Any], name: str, items: Iterable[Any]) -> bytes:
    """The same of a map with a list of many items, which are taken one by one.

    Args:
        head: what else is in the map; what it has in the place of the list stays there if there are no items.
        name: the key of the list.
    """
    listed = b"".join([to_go_yaml([item]) for item in items])
    if not listed:
        return to_go_yaml(dict(head))
    before = {key: value for key, value in head.items() if key < name}
    after = {key: value for key, value in head.items() if key > name}
    return b"".join((to_go_yaml(before) if before else b"", f"{name}:\n".encode(), listed,
                     to_go_yaml(after) if after else b""))  # fmt: skip


def _is_plain(text: str) -> bool:
    return reads_back(text) and not _DISPUTED.fullmatch(text)


class _Readable(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """What a reader takes a scalar without quotes for: texts that it may take for something else get quotes."""
        found = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        if kind is yaml.ScalarNode and implicit[0] and found == _TEXT and not _is_plain(value):
            return "disputed"
        return found


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _ODD.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar(_TEXT, text, style=style)


def _number(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that an object of the API can hold")
    return yaml.SafeDumper.represent_float(dumper, value)


_Readable.add_representer(str, _text)
_Readable.add_representer(float, _number)


class _GoStyle(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    pass


def _go_text(dumper: Any, text: str) -> Any:
    plain = (
        text
        and reads_back(text)
        and not _ODD.search(text)
        and dumper.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT
    )
    return dumper.represent_scalar(_TEXT, text, style=None if plain else '"')


_GoStyle.add_representer(str, _go_text)
