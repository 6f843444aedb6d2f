"""Redaction: credentials and the contents of Secrets never reach a log, an Event or a metric, at any level.

First what is known to be secret, whatever form it stands in: `remember` is told of tokens, passwords and the values of
Secrets as they are read and written (`known.py`). Then what looks like a secret (`patterns.py`), for texts of others.
It errs on the side of removing too much, takes time in proportion to the text, and cuts a text at 64,000 characters.
"""

from __future__ import annotations

from kopylite.redaction.known import KnownSecrets
from kopylite.redaction.patterns import MARK, MAX_LENGTH, is_secret_name, redact_forms

# One for the process: who logs does not know which client read what it quotes.
_known = KnownSecrets()

remember = _known.remember
remember_secret = _known.remember_secret


def redact(text: str) -> str:
    """The text without what is known to be secret, and without what looks like a credential or a Secret's data."""
    if len(text) > MAX_LENGTH:
        # The rest is no more looked at, so it must not be shown either.
        text = f"{text[:MAX_LENGTH]}… ({len(text) - MAX_LENGTH} more characters)"
    return redact_forms(_known.redact(text))


__all__ = ["MARK", "MAX_LENGTH", "KnownSecrets", "is_secret_name", "redact", "remember", "remember_secret"]
