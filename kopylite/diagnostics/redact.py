"""Redaction of log texts: credentials and the contents of Secrets never reach a log, at any level.

A safety net below careful logging, for exception texts and for what users print. It knows the forms in which
Kubernetes programs come across secrets; it errs on the side of removing too much.
"""

from __future__ import annotations

import re

MARK = "[redacted]"

_QUOTE = r"""\\?["']?"""

_RULES: list[tuple[re.Pattern[str], str]] = [
    # HTTP headers, in a dict's repr or in plain words.
    (
        re.compile(
            rf"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)({_QUOTE}\s*[:=,]\s*{_QUOTE})[^\n\"']+",
        ),
        rf"\1\2{MARK}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+(?!\[)[A-Za-z0-9._~+/-]{8,}=*"), rf"\1 {MARK}"),
    # JSON web tokens: service accounts, OIDC.
    (re.compile(r"\beyJ[\w-]{4,}\.[\w-]{4,}\.[\w-]*"), MARK),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), MARK),
    # Kubeconfig fields, credentials in assignments and in URLs.
    (
        re.compile(
            rf"(?i)\b(password|passwd|(?:id-|access-|refresh-|bearer)?token|client-key-data|client-secret|api[-_]?key)"
            rf"({_QUOTE}\s*[:=]\s*{_QUOTE})(?!\[)[^\s\"',;&}}]{{4,}}",
        ),
        rf"\1\2{MARK}",
    ),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@"), rf"\1{MARK}@"),
    (
        re.compile(r"(?i)(last-applied-configuration\\?[\"']\s*:\s*)(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"),
        rf"\1{MARK}",
    ),
]

# Objects of kind Secret, as JSON or as a dict's repr.
_SECRET = re.compile(r"""["']kind\\?["']\s*:\s*\\?["']Secret\\?["']""")
_SECRET_DATA = re.compile(r"""(["'](?:data|stringData)\\?["']\s*:\s*)\{[^{}]*\}""")

# Most lines hold none of these words, and one search is all they cost.
_SUSPECT = re.compile(
    r"(?i)authori|cookie|bearer|basic |eyJ|PRIVATE KEY|passw|token|client-|api.?key|://|last-applied|Secret"
)


def redact(text: str) -> str:
    """The text with everything that looks like a credential, or like the data of a Secret, cut out."""
    if not _SUSPECT.search(text):
        return text
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if _SECRET.search(text):
        text = _SECRET_DATA.sub(rf"\1{MARK}", text)
    return text
