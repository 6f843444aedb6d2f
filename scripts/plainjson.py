"""JSON in a form that people read and diffs show: one line for each part of the third level, the rest in one piece."""

from __future__ import annotations

import json
from typing import Any


def plain_json(value: Any, levels: int = 3) -> str:
    """The text of a data file. Equal values give equal texts."""
    return _lines(value, levels, "") + "\n"


def _lines(value: Any, levels: int, indent: str) -> str:
    if not levels or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, list):
        parts, ends = [_lines(item, levels - 1, inner) for item in value], "[]"
    else:
        parts = [f"{json.dumps(name)}: {_lines(item, levels - 1, inner)}" for name, item in value.items()]
        ends = "{}"
    joined = f",\n{inner}".join(parts)
    return f"{ends[0]}\n{inner}{joined}\n{indent}{ends[1]}"
