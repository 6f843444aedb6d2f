"""What looks like a secret: names that stand before one, and values that have the shape of one.

Names are found by one pattern; the value after a name is found by looking at it, in time proportional to its length:
a quoted text with its escapes, a bracket with all that is in it, a block of YAML, or the rest of the line.
"""

from __future__ import annotations

import re

MARK = "[redacted]"
# Nobody reads more of one log line.
MAX_LENGTH = 64_000

_QUOTE = r"\\{0,15}[\"']"
_NAMES = (
    r"pass(?:word|wd|phrase)|pwd|token|client[-_]?secret|secret[-_]?(?:access[-_]?)?key|api[-_]?key|access[-_]?key|"
    r"private[-_]?key|(?:client|tls)[-_]?key[-_]?data|tls\.key|dockerconfigjson|dockercfg|connection[-_]?string|"
    r"authorization|cookie|last-applied-configuration|secret|credential|auth"
)
# These are common words too: only where they are clearly the name of a value.
_WORDS = ("secret", "credential", "auth")
_NAME = re.compile(
    rf"""(?P<name>{_NAMES})s?(?P<closing>{_QUOTE})?
    (?P<separator>\s{{0,4}}(?::=|=>|[:=])[ \t]{{0,8}}
    |\s{{0,4}}[,\n]\s{{0,40}}(?:{_QUOTE})?value(?:{_QUOTE})?\s{{0,4}}[:=][ \t]{{0,8}}
    |\s{{0,4}},\s{{0,4}}(?=[bBuUrR]{{0,2}}{_QUOTE})
    |[ \t]{{1,4}}(?=[^\s:=])
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_IS_NAME = re.compile(rf"(?:{_NAMES})s?\Z", re.IGNORECASE)
_DATA = re.compile(
    r"(?:(?<![\w.-])|(?<=\\n))(?P<name>data|stringData|string_data)"
    rf"(?P<closing>{_QUOTE})?(?P<separator>\s{{0,4}}[:=][ \t]{{0,8}})"
)
_SECRET = re.compile(rf"kind(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{_QUOTE})?Secret(?:List)?\b|\bV1Secret|\bSecret\(")
# An operation of a JSON patch.
_PATCHED = re.compile(
    rf"/(?P<name>data|stringData)/[^\s\"',]{{0,300}}(?P<closing>{_QUOTE})"
    rf"(?P<separator>\s{{0,4}},\s{{0,40}}{_QUOTE}value{_QUOTE}\s{{0,4}}:[ \t]{{0,8}})"
)

# Not "basic authentication": base64 without a capital or a digit is rare.
_BASIC = re.compile(r"\b((?i:basic))\s{1,8}(?=[a-z]*[A-Z0-9+/=])[A-Za-z0-9+/]{8,}=*")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}KEY-----|\Z)", re.DOTALL)
# Shapes of secrets that no name stands before.
_SHAPES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("bearer", re.compile(r"\b(bearer)\s{1,8}(?!\[)[A-Za-z0-9._~+/-]{8,}=*", re.IGNORECASE), rf"\1 {MARK}"),
    ("basic", _BASIC, rf"\1 {MARK}"),
    # JSON web tokens: service accounts, OpenID Connect.
    ("eyj", re.compile(r"(?<![\w-])eyJ[\w-]{4,}(?:\.[\w-]*){1,4}"), MARK),
    ("private key", _PRIVATE_KEY, MARK),
    # The same in base64: "-----BEGI".
    ("ls0tls1crudj", re.compile(r"LS0tLS1CRUdJ[A-Za-z0-9+/=_\s-]{0,8}(?:[A-Za-z0-9+/=_-]|\\n)*"), MARK),
    ("://", re.compile(r"(?<=://)[^\s/\"'<>]{1,512}@"), f"{MARK}@"),
    ("@", re.compile(r"(?<=:)[^\s:/\"'<>]{1,256}(?=@(?:tcp|unix)\()"), MARK),
    ("_", re.compile(r"(?<![A-Za-z0-9])(?:gh[oprsu]_|github_pat_)[A-Za-z0-9_]{16,}"), MARK),
    ("glpat-", re.compile(r"glpat-[\w-]{16,}"), MARK),
    ("xox", re.compile(r"(?<![A-Za-z0-9])xox[a-z]-[\w-]{8,}"), MARK),
)  # fmt: skip

# Most texts hold none of these, and looking for them is all that they cost.
_PARTS = (
    "pass", "pwd", "token", "secret", "key", "docker", "connection", "authori", "cookie", "last-applied", "credential",
    "auth",
)  # fmt: skip

_PREFIX = re.compile(r"[bBuUrR]{0,2}(?P<slashes>\\{0,15})(?P<quote>[\"'])")
_NOTHING = re.compile(r"(?:null|None|true|false|~|\[redacted\])(?![^\s,}\])\"'\\])|[,}\])]")
_BLOCK = re.compile(r"(?:[|>][-+0-9]{0,3}[ \t]*|[ \t]*)\r?\n")
_BRACKET_OR_QUOTE = re.compile(r"[\[\](){}]|\\*[\"']")
_LINE = re.compile(r"(?P<indent>[ \t]*)(?P<rest>[^\n]*)\n?")
_BARE = re.compile(r"\S+")
_FLAG = re.compile(r"--[\w-]*\Z")


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret: "password", "DB_PASSWORD", "clientSecret", "auth" …"""
    return _IS_NAME.search(name[-64:]) is not None


def redact_forms(text: str) -> str:
    """The text without what looks like a credential, or like the data of a Secret."""
    lowered = text.lower()
    for part, pattern, mark in _SHAPES:
        if part in lowered:
            text = pattern.sub(mark, text)
    if "data" in lowered and "secret" in lowered and _SECRET.search(text):
        text = _without_values(text, _DATA)
    if "/data/" in lowered or "/stringdata/" in lowered:
        text = _without_values(text, _PATCHED)
    if any(part in lowered for part in _PARTS):
        text = _without_values(text, _NAME)
    return text


def _without_values(text: str, names: re.Pattern[str]) -> str:
    pieces, end, position = [], 0, 0
    while (found := names.search(text, position)) is not None:
        begin = found.end()
        stop = _end_of_value(text, found) if _names_a_value(text, found) else begin
        if stop > begin:
            pieces += [text[end:begin], MARK]
            end = stop
        position = max(stop, begin, position + 1)
    return "".join([*pieces, text[end:]]) if pieces else text


def _names_a_value(text: str, found: re.Match[str]) -> bool:
    separator, closing = found["separator"], found["closing"]
    word = found["name"].lower() in _WORDS
    if not separator.strip():
        # `password 'hunter2' is too short`, `--password hunter2`
        quoted = not word and text[found.end()] in "\"'"
        flag = _FLAG.search(text, max(0, found.start() - 40), found.start()) is not None
        return closing is None and (quoted or flag)
    if word and "," in separator:
        return "value" in separator
    if word and closing is None and ":" in separator:
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        return before.strip(" \t-") == "" or before[-1:] in ("_", "-", ".") or before[-1:].isalnum()
    return True


def _end_of_value(text: str, found: re.Match[str]) -> int:
    begin, closing = found.end(), found["closing"]
    quoted = _PREFIX.match(text, begin)
    if quoted is not None:
        end = _end_of_quoted(text, quoted.end(), quoted["quote"], len(quoted["slashes"]))
        return end if end - quoted.end() > len(quoted["slashes"]) + 1 else begin
    if _NOTHING.match(text, begin):
        return begin
    if text[begin : begin + 1] in ("[", "{", "("):
        return _end_of_bracket(text, begin)
    if _BLOCK.match(text, begin):
        return _end_of_block(text, found.start(), begin)
    line_end = text.find("\n", begin)
    line_end = len(text) if line_end < 0 else line_end
    opening = text[max(0, found.start() - 1) : found.start()]
    if closing is None and opening in ('"', "'") and (quote := text.find(opening, begin, line_end)) >= 0:
        return quote  # 'Authorization: Bearer …'
    if text.startswith("\\n", begin):
        return line_end  # a block of YAML in a repr
    if "=" in found["separator"] or not found["separator"].endswith((" ", "\t")):
        bare = _BARE.match(text, begin)
        return bare.end() if bare is not None else begin
    return line_end


def _end_of_quoted(text: str, position: int, quote: str, slashes: int) -> int:
    """Behind the quote that closes a text which `slashes` backslashes and a quote have opened; else the end of all."""
    while (position := text.find(quote, position)) >= 0:
        before = position
        while before > 0 and text[before - 1] == "\\":
            before -= 1
        count = position - before
        position += 1
        if count == slashes or (slashes == 0 and count % 2 == 0):
            if quote == "'" and not slashes and text[position : position + 1] == "'":
                position += 1  # YAML's escape of a quote
                continue
            return position
    return len(text)


def _end_of_bracket(text: str, position: int) -> int:
    depth = 0
    while (found := _BRACKET_OR_QUOTE.search(text, position)) is not None:
        position, token = found.end(), found[0]
        if token in "[{(":
            depth += 1
        elif token in "]})":
            depth -= 1
            if depth <= 0:
                return position
        else:
            position = _end_of_quoted(text, position, token[-1], len(token) - 1)
    return len(text)


def _end_of_block(text: str, name: int, position: int) -> int:
    """The end of the lines that belong to a name of YAML: those that are indented deeper, and a list at its side."""
    line_start = text.rfind("\n", 0, name) + 1
    own = _LINE.match(text, line_start)
    indent = len(own["indent"]) if own is not None else 0
    position = end = text.find("\n", position) + 1
    while position < len(text):
        line = _LINE.match(text, position)
        if line is None or (line["rest"].strip() and not _belongs(line, indent)):
            break
        position = line.end()
        if line["rest"].strip():
            end = position - (text[position - 1] == "\n")
    return end


def _belongs(line: re.Match[str], indent: int) -> bool:
    depth = len(line["indent"])
    return depth > indent or (depth == indent and line["rest"].startswith("- "))
