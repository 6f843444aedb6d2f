"""KnownSecrets: values that are known to be secret, remembered by their hashes, and found again in any text.

A value is looked for as it is, and as it stands in base64, hex, JSON of Python and of Go, JSON within JSON, a repr
of its text or bytes, and a URL. Of what is shorter than six characters nothing is remembered: it would be found
everywhere.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from kopylite.redaction.patterns import MARK, is_secret_name

MIN_LENGTH = 6
# Forms of values; an operator that reads a thousand Secrets of four keys has about 20,000. The oldest go first.
LIMIT = 100_000
# Values beyond this are files; of those, each line is remembered too.
MAX_LINES = 400
# Bounds the work for each character of a text, whatever values there are.
MAX_LENGTHS = 64
# What Secrets hold and everybody may know: certificates of types that have them, and the account's namespace.
_PUBLIC_KEYS = frozenset({"ca.crt", "tls.crt", "namespace", "ca-bundle.crt"})
_URL_SAFE = str.maketrans("+/", "-_")
_GO = str.maketrans({"&": "\\u0026", "<": "\\u003c", ">": "\\u003e"})
_DECODE = msgspec.json.Decoder(dict[str, Any]).decode


class KnownSecrets:
    """Remembers at most `LIMIT` forms of values, and cuts them out of texts."""

    __slots__ = ("_forms", "_lengths", "_objects")

    def __init__(self) -> None:
        # By the hash of a form: the hash of its first characters, and its length.
        self._forms: dict[int, tuple[int, int]] = {}
        # By the hash of the first characters: how many forms of which length begin so.
        self._lengths: dict[int, dict[int, int]] = {}
        # Hashes of whole Secrets, so that reading one again costs nothing.
        self._objects: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def remember(self, value: str) -> None:
        """From now on this value is cut out of what is redacted."""
        for form in _forms(value):
            self._add(form)

    def remember_secret(self, secret: bytes | Mapping[str, Any]) -> None:
        """Remember the values of an object of kind Secret, as JSON or in wire form. Never raises."""
        if isinstance(secret, bytes):
            digest = hash(secret)
            if digest in self._objects:
                return
            if len(self._objects) >= LIMIT:
                self._objects.clear()
            self._objects[digest] = None
            try:
                secret = _DECODE(secret)
            except (msgspec.DecodeError, ValueError, RecursionError):
                return
        metadata = secret.get("metadata")
        names = [metadata.get("name"), metadata.get("namespace")] if isinstance(metadata, Mapping) else []
        for value, coded in _values(secret):
            if value not in names:
                for form in _forms(value, coded=coded):
                    self._add(form)

    def redact(self, text: str) -> str:
        """The text without the known values."""
        heads = self._lengths
        if not heads or len(text) < MIN_LENGTH:
            return text
        starts = [i for i in range(len(text) - MIN_LENGTH + 1) if hash(text[i : i + MIN_LENGTH]) in heads]
        pieces, end = [], 0
        for start in starts:
            if start >= end and (length := self._length_at(text, start)):
                pieces += [text[end:start], MARK]
                end = start + length
        return "".join([*pieces, text[end:]]) if pieces else text

    def _length_at(self, text: str, start: int) -> int:
        """How long the longest known value is that begins here; 0: none does."""
        lengths = self._lengths[hash(text[start : start + MIN_LENGTH])]
        for length in sorted(lengths, reverse=True)[:MAX_LENGTHS]:
            if hash(text[start : start + length]) in self._forms and start + length <= len(text):
                return length
        return 0

    def _add(self, form: str) -> None:
        digest = hash(form)
        if digest in self._forms:
            return
        if len(self._forms) >= LIMIT:
            self._forget(next(iter(self._forms)))
        head = hash(form[:MIN_LENGTH])
        lengths = self._lengths.setdefault(head, {})
        lengths[len(form)] = lengths.get(len(form), 0) + 1
        self._forms[digest] = head, len(form)

    def _forget(self, digest: int) -> None:
        head, length = self._forms.pop(digest)
        lengths = self._lengths[head]
        lengths[length] -= 1
        if not lengths[length]:
            del lengths[length]
        if not lengths:
            del self._lengths[head]


def _values(secret: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each value, and whether it is a code of another one."""
    for section in ("data", "stringData"):
        entries = secret.get(section)
        for key, value in entries.items() if isinstance(entries, Mapping) else ():
            if not isinstance(value, str) or key in _PUBLIC_KEYS:
                continue
            if section == "stringData":
                yield value, False
                continue
            yield value, True
            try:
                plain = base64.b64decode(value, validate=True)
            except ValueError:
                continue
            try:
                yield plain.decode(), False
            except ValueError:
                yield from ((code, True) for code in (*_in_base64_or_repr(plain), *_in_hex(plain)))


def _forms(value: str, *, coded: bool = False) -> Iterator[str]:
    """The forms that a value may stand in, each once. Nobody writes the hex of a code, and `LIMIT` has an end."""
    values = {value, value.strip()}
    if "\n" in value:
        values |= {line.strip() for line in value.splitlines()[:MAX_LINES]}
    if value.lstrip().startswith("{"):
        values |= set(_secrets_in_json(value))
    forms = set()
    for plain in values:
        if len(plain) < MIN_LENGTH or plain.startswith("-----"):
            continue
        forms |= {plain, repr(plain)[1:-1], ascii(plain)[1:-1], *_in_json(plain)}
        try:
            content = plain.encode()
        except UnicodeEncodeError:
            continue
        forms |= {*_in_base64_or_repr(content), *(() if coded else _in_hex(content))}
        forms |= {quote(plain, safe=""), quote(plain), quote_plus(plain)}
    yield from (form for form in forms if len(form) >= MIN_LENGTH)


def _in_base64_or_repr(content: bytes) -> tuple[str, ...]:
    """Bytes in base64, and in a repr."""
    code = base64.b64encode(content).decode().rstrip("=")
    return code, code.translate(_URL_SAFE), repr(content)[2:-1]


def _in_hex(content: bytes) -> tuple[str, ...]:
    return content.hex(), content.hex().upper()


def _in_json(text: str) -> Iterator[str]:
    """As JSON has a text that is written by Python, by most others, and by Go; each also as a part of other JSON."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    for form in {json.dumps(text)[1:-1], written, written.translate(_GO)}:
        yield form
        if "\\" in form:
            yield json.dumps(form, ensure_ascii=False)[1:-1]


def _secrets_in_json(text: str) -> Iterator[str]:
    """Of a file such as a .dockerconfigjson, the texts under names that stand for secrets."""
    try:
        pending: list[Any] = [_DECODE(text)]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            pending += [inner for inner in value.values() if not isinstance(inner, str)]
            yield from (inner for name, inner in value.items() if isinstance(inner, str) and is_secret_name(name))
