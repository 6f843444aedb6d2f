"""JSON texts that no decoder takes, since they are nested too deeply or odd in one place: found out from outside.

Decoders recurse, and give up at a depth that depends on the version of Python; an API server stores objects that are
ten times deeper. These functions look at brackets and strings only, in linear time and without recursion, so that one
such object can be told from its neighbours, and named. They are for the rare text that was refused, not for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

# A string, brackets that stand together, or a comma. Everything else is colons, numbers, words and white space.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]+|[\]}]+|,', re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


def members(text: bytes) -> dict[str, bytes]:
    """The members of a JSON object, their values undecoded. Of a name that occurs twice, the last.

    Raises:
        ValueError: it is no object. What its values hold is not looked at.
    """
    found: dict[str, bytes] = {}
    for part in _parts(text, b"{"):
        name = _TOKEN.match(part)
        if name is None or part[:1] != b'"':
            raise ValueError("a member of the object has no name")
        colon, value = part[name.end() :].lstrip()[:1], part[name.end() :].lstrip()[1:].strip()
        if colon != b":" or not value:
            raise ValueError("a member of the object has no value")
        found[msgspec.json.decode(name[0], type=str)] = value
    return found


def elements(text: bytes) -> list[bytes]:
    """The elements of a JSON array, undecoded.

    Raises:
        ValueError: it is no array. What its elements hold is not looked at.
    """
    return list(_parts(text, b"["))


def depth(text: bytes) -> int:
    """How deeply brackets are nested."""
    deepest = now = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in _OPENING:
            now += token.end() - token.start()
            deepest = max(deepest, now)
        elif first in _CLOSING:
            now -= token.end() - token.start()
    return deepest


def _parts(text: bytes, bracket: bytes) -> Iterator[bytes]:
    """What stands between the commas of the outermost object or array."""
    text = text.strip()
    if text[:1] != bracket:
        raise ValueError(f"it does not begin with {bracket.decode()}")
    level, begin, end = 0, 1, -1
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in _OPENING:
            level += token.end() - token.start()
        elif first in _CLOSING:
            level -= token.end() - token.start()
            if level <= 0:
                end = token.end() - 1 + level
                break
        elif level == 1 and first == 0x2C:
            yield text[begin : token.start()].strip()
            begin = token.end()
    if end < 0 or text[end + 1 :].strip():
        raise ValueError("it does not end where its outermost bracket does")
    last = text[begin:end].strip()
    if last or begin > 1:
        yield last
