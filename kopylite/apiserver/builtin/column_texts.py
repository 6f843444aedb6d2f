"""The descriptions of the columns of tables: `columns.json` says of each column whose text it has. Pure.

`io.k8s....Type.field` is the text of that field, as `kubectl explain` has it; what begins with `=` stands there itself;
`*` holds the columns that most kinds have.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from kopylite.apiserver.builtin.descriptions import field_descriptions


@cache
def _columns() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = msgspec.json.decode(
        resources.files(__package__).joinpath("columns.json").read_bytes()
    )
    return found


@cache
def column_texts(storage: str) -> Mapping[str, str]:
    """The descriptions by column of a storage name; what is not known is not in it."""
    sources = {**_columns()["*"], **_columns().get(storage, {})}
    return {column: text for column, source in sources.items() if (text := _text(source))}


def _text(source: str) -> str:
    if source.startswith("="):
        return source[1:]
    schema, _, field = source.rpartition(".")
    # The docstrings have two spaces where the text had a new paragraph.
    return field_descriptions(schema).get(field, "").replace(".  ", ".\n\n")
