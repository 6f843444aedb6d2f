"""Warnings of the API server: `Warning` headers, read as client-go reads them, logged once for each kind and text."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from email.errors import HeaderParseError
from email.header import decode_header, make_header

from kopylite.boundary import printable
from kopylite.client.verbs import ApiRequest

logger = logging.getLogger(__name__)

# What was shown is remembered as a number; a busy operator meets some dozens of texts.
REMEMBERED = 1000
# kube-apiserver cuts a text at 256 bytes, and all texts of an answer at 4096.
MAX_HEADER = 16 * 1024

_HEAD = re.compile(r"\s*(\d{3}) (\S+) \"", re.ASCII)
_TEXT = re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL)
_DATE = re.compile(r'\s*"[^"]*"')
_NEXT = re.compile(r"\s*(?:,|$)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# The code of a warning for people; all others are about caches.
_MISCELLANEOUS = 299


class ApiWarnings:
    """Logs each warning the first time that it comes about a kind, with the request that it came for."""

    def __init__(self) -> None:
        # By the hash of kind and text, the oldest first.
        self._shown: dict[int, None] = {}

    def show(self, request: ApiRequest, headers: Sequence[str]) -> None:
        """Log what is new in the `Warning` headers of an answer. What client-go cannot read is left out."""
        for header in headers:
            for code, text in parse_warnings(header[:MAX_HEADER]):
                if code == _MISCELLANEOUS and text and self._is_new(hash((kind_of(request.path), text))):
                    logger.warning("%s: the API server warns: %s", request, printable(text))

    def _is_new(self, what: int) -> bool:
        if what in self._shown:
            return False
        if len(self._shown) >= REMEMBERED:
            del self._shown[next(iter(self._shown))]
        self._shown[what] = None
        return True


def kind_of(path: str) -> str:
    """The path without namespace, name and sub-resource: one for each kind and version."""
    parts = path.strip("/").split("/")
    version = 2 if parts[0] == "api" else 3
    rest = parts[version:]
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2:] not in (["status"], ["finalize"]):
        rest = rest[2:]
    return "/".join([*parts[:version], *rest[:1]])


def parse_warnings(header: str) -> Iterator[tuple[int, str]]:
    """Code and text of each warning in a header, up to the first that is malformed.

    `299 agent "text"`, maybe with a date, several separated by commas. Quotes in a text are escaped by a backslash;
    a text may be encoded as in mail headers, as older servers do.
    """
    position = 0
    while position < len(header):
        head = _HEAD.match(header, position)
        text = _TEXT.match(header, head.end()) if head else None
        if head is None or text is None:
            return
        date = _DATE.match(header, text.end())
        end = _NEXT.match(header, date.end() if date else text.end())
        if end is None:
            return
        plain = _decoded(_ESCAPED.sub(r"\1", text[1]))
        if not _has_control_characters(head[2]) and not _has_control_characters(plain):
            yield int(head[1]), plain
        position = end.end()


def _decoded(text: str) -> str:
    if "=?" not in text:
        return text
    try:
        return str(make_header(decode_header(text)))
    except (HeaderParseError, LookupError, ValueError):
        return text


def _has_control_characters(text: str) -> bool:
    """Also what was no UTF-8, which the HTTP library hands on as lone surrogates."""
    return any(c < " " or "\x7f" <= c < "\xa0" or "\ud800" <= c <= "\udfff" for c in text)
