"""Finding: one thing that is wrong, where, and what mends it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from kopylite.boundary import printable
from kopylite.redaction import redact

# A condition's message may have 32 KB; what people read of it is the beginning.
LONGEST = 600


class FindingSeverity(Enum):
    """How bad it is."""

    ERROR = "error"  # something does not work, or will never end
    WARNING = "warning"  # it works, and will not for long, or not as one expects


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        severity: how bad.
        check: the subject: its name in the documentation.
        where: the object, file or address.
        what: is wrong, and what follows from it.
        fix: commands or YAML to copy, or in words who has to do what.
    """

    severity: FindingSeverity
    check: str
    where: str
    what: str
    fix: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", shown(self.where))
        object.__setattr__(self, "what", shown(self.what))
        object.__setattr__(self, "fix", printable(redact(self.fix), 20_000))


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What could not be looked at, so that nobody knows whether it is in order.

    Attributes:
        check: the subject.
        what: was not looked at, and why.
        needs: the RBAC rule that would allow it; "" where something else is in the way.
    """

    check: str
    what: str
    needs: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", shown(self.what))
        object.__setattr__(self, "needs", shown(self.needs))


@dataclass(slots=True)
class Diagnosis:
    """All that an examination has found.

    Attributes:
        server: its URL.
        version: of Kubernetes, "" if it does not tell.
        unreachable: the step at which the way to the server ends: "dns", "tcp", "tls", "auth" or "api"; "" if none.
    """

    server: str = ""
    version: str = ""
    unreachable: str = ""
    findings: list[Finding] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)

    def add(self, found: Iterable[Finding | Unchecked]) -> None:
        """Take findings in, each once."""
        for each in found:
            if isinstance(each, Finding):
                if each not in self.findings:
                    self.findings.append(each)
            elif each not in self.unchecked:
                self.unchecked.append(each)

    def count(self, severity: FindingSeverity) -> int:
        return sum(1 for each in self.findings if each.severity is severity)

    @property
    def ordered(self) -> list[Finding]:
        """The errors first, else as they were found."""
        return sorted(self.findings, key=lambda each: each.severity is not FindingSeverity.ERROR)


def error(check: str, where: str, what: str, fix: str) -> Finding:
    return Finding(FindingSeverity.ERROR, check, where, what, fix)


def warning(check: str, where: str, what: str, fix: str) -> Finding:
    return Finding(FindingSeverity.WARNING, check, where, what, fix)


def shown(text: str) -> str:
    """A text of the cluster on one line: without secrets, control characters and line breaks, and not too long."""
    return _visible(" ".join(printable(redact(text[: 4 * LONGEST]), LONGEST).split()))


def command(*words: str) -> str:
    """A command line to copy: every word that comes from the cluster is one word for the shell, too."""
    return " ".join(shlex.quote(_visible(printable(word, 10_000))) for word in words)


def _visible(text: str) -> str:
    """Without what changes how its neighbours look, such as a change of the writing direction."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def kubectl(verb: str, resource: str, name: str, namespace: str, *more: str) -> str:
    """A kubectl command about one object."""
    where = ("-n", namespace) if namespace else ()
    return command("kubectl", *where, verb, resource, name, *more)


def listed(names: Iterable[str], most: int = 5) -> str:
    """The first few, and how many more."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
