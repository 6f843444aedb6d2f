"""Vocabulary: which names of a module are kopf's, and which of them have a counterpart. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

CHANGES = frozenset({"create", "update", "resume", "delete", "field"})
ACTIVITIES = frozenset({"startup", "cleanup", "login", "probe"})
REVIEWS = frozenset({"validate", "mutate"})

# Of kopf's dotted names: what a declaration is called here.
DECLARATIONS = {
    **{f"on.{name}": name for name in (*CHANGES, *ACTIVITIES, *REVIEWS, "event")},
    **{name: name for name in ("timer", "daemon", "index")},
}
SUBHANDLERS = frozenset({"on.this", "subhandler"})

# ImportedNames that kopylite.migration.bridge has, too.
BRIDGED = frozenset(
    {
        *("adopt", "append_owner_reference", "remove_owner_reference", "label", "harmonize_naming"),
        *("adjust_namespace", "event", "info", "warn", "exception", "register", "execute", "subhandler"),
        *("all_", "any_", "none_", "not_", "PRESENT", "ABSENT", "Memo", "Body", "Meta", "Patch", "Spec", "Status"),
        *("Labels", "Annotations", "Diff", "Index", "Store", "Logger", "ObjectLogger", "OperatorSettings"),
        *("DaemonStopped", "SyncDaemonStopperChecker", "AsyncDaemonStopperChecker"),
        *("TemporaryError", "PermanentError", "HandlerTimeoutError", "HandlerRetriesError"),
    }
)
# What `from kopf import *` brings that operators use.
STARRED = (*BRIDGED, "on", "timer", "daemon", "index", "AdmissionError", "ErrorsMode", "EVERYTHING", "run", "configure")


@dataclass(slots=True)
class Vocabulary:
    """The names of one module.

    Attributes:
        modules: names of kopf itself, and of its `on`, with what they stand for: {"k": "", "on": "on"}.
        direct: names that were imported from kopf, with kopf's.
        starred: whether all of kopf's names were imported.
    """

    modules: dict[str, str] = field(default_factory=dict)
    direct: dict[str, str] = field(default_factory=dict)
    starred: bool = False

    def resolve(self, node: ast.expr) -> str | None:
        """The dotted name of kopf's that an expression names, as "on.create"; None: it names nothing of kopf."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        known = self.modules.get(node.id)
        if known is None:
            known = self.direct.get(node.id)
        if known is None:
            return None
        return ".".join([part for part in (known, *reversed(parts)) if part])

    def __bool__(self) -> bool:
        return bool(self.modules or self.direct)


def vocabulary_of(tree: ast.Module) -> Vocabulary:
    """What the imports of a module say, wherever they stand."""
    found = Vocabulary()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "kopf" or (alias.name.startswith("kopf.") and alias.asname is None):
                    found.modules[alias.asname or "kopf"] = ""
                elif alias.name.startswith("kopf.") and alias.asname:
                    found.modules[alias.asname] = alias.name.removeprefix("kopf.")
        elif isinstance(node, ast.ImportFrom) and is_from_kopf(node):
            inner = (node.module or "").removeprefix("kopf").lstrip(".")
            for alias in node.names:
                if alias.name == "*":
                    found.starred = True
                    found.direct |= {name: name for name in STARRED}
                else:
                    found.direct[alias.asname or alias.name] = f"{inner}.{alias.name}" if inner else alias.name
    return found


def is_from_kopf(node: ast.AST) -> bool:
    """Whether it is an import of names from kopf."""
    if not isinstance(node, ast.ImportFrom) or node.level:
        return False
    return node.module == "kopf" or (node.module or "").startswith("kopf.")
