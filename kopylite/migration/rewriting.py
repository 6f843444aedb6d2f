"""Rewriting: takes kopf out of the text of a module, and leaves everything else as it is. Pure."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field

from kopylite.migration import advice
from kopylite.migration.constants import Constants, text_of
from kopylite.migration.declarations import FoundHandlers
from kopylite.migration.report import Remark
from kopylite.migration.sources import ModuleSource, TextEdit
from kopylite.migration.vocabulary import BRIDGED, DECLARATIONS, SUBHANDLERS, Vocabulary, is_from_kopf

TYPES = frozenset(
    {
        *("UserInfo", "Headers", "SSLPeer", "RawEvent", "RawBody", "RawEventType", "Resource", "Operation"),
        *("BodyEssence", "ObjectReference", "OwnerReference", "HandlerId", "DiffItem", "FieldPath", "FieldSpec"),
        "LocalObjectLogger",
    }
)
_MODES = {f"ErrorsMode.{name}": f'"{name.lower()}"' for name in ("TEMPORARY", "PERMANENT", "IGNORED")}
# Statements at the top that only ran, or set up, kopf.
_TAKEN_OUT = frozenset({"run", "configure", "set_default_lifecycle", "set_default_registry", "spawn_tasks"})


@dataclass(slots=True)
class ImportedNames:
    """How the written module calls what it imports from kopylite; a name that was taken has another one."""

    bridge: str = "bridge"
    retry: str = "Retry"
    terminal: str = "TerminalError"
    denied: str = "Denied"
    used: set[str] = field(default_factory=set)

    def use(self, name: str) -> str:
        """The name of "bridge", "retry", "terminal" or "denied", which is then imported."""
        self.used.add(name)
        found: str = getattr(self, name)
        return found


@dataclass(slots=True)
class Rewriting:
    """The edits of one module.

    Attributes:
        settings: of kopf, by their path "peering.name", as they were set at the start.
        remarks: for the report.
        emptied: handlers of the start that did nothing but set settings.
    """

    source: ModuleSource
    words: Vocabulary
    found: FoundHandlers
    names: ImportedNames
    constants: Constants
    settings: dict[str, ast.expr] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    emptied: set[str] = field(default_factory=set)
    _out: list[tuple[int, int]] = field(default_factory=list)
    _replaced: set[int] = field(default_factory=set)

    def run(self) -> None:
        """Make all edits."""
        for decorator in self.found.decorators:
            self.source.comment_out(decorator.lineno, decorator.end_lineno or decorator.lineno)
        for statement in self.found.statements:
            self._take_out(statement)
        for decorator, what, reason in self.found.strays:
            self._remark(decorator.lineno, f"@kopf: {what}", "it is called by nobody: " + reason, advice.REGISTRY)
        self._settings()
        for block in _blocks(self.source.tree):
            self._imports(block)
        self._top()
        self._out = sorted((edit.begin, edit.end) for edit in self.source.edits)
        self._visit(self.source.tree)
        # What was declared is written anew, below: it is taken from there, with its names replaced.
        self._out = []
        for call in {id(each.call): each.call for each in self.found.handlers if each.call}.values():
            for node in (*call.args, *(each.value for each in call.keywords)):
                self._visit(node)
        for statement, given, name in self.found.lambdas:
            self._visit(given)
            self.source.replace(statement, f"{name} = {self.source.edited(given)}")

    def _remark(self, line: int, construct: str, done: str, todo: str = "") -> None:
        self.remarks.append(Remark(self.source.name, line, construct, done, todo))

    def _take_out(self, statement: ast.stmt, *, sole: bool = False) -> None:
        """Make a comment of a statement."""
        if self.source.stands_alone(statement):
            first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
            self.source.comment_out(first, statement.end_lineno or first, instead="pass" if sole else "")
        else:
            self._remark(statement.lineno, "kopf", f"became `pass`: {self.source.text(statement)}")
            self.source.replace(statement, "pass")

    def _imports(self, block: list[ast.stmt]) -> None:
        """Take kopf out of the imports of a block."""
        for statement in block:
            if is_from_kopf(statement):
                self._take_out(statement, sole=len(block) == 1)
                if any(alias.name == "*" for alias in statement.names):  # type: ignore[attr-defined]
                    self._remark(statement.lineno, "from kopf import *", "the names that operators use count as kopf's",
                                 "look whether one of them was yours")  # fmt: skip
            elif isinstance(statement, ast.Import):
                left = [each for each in statement.names if each.name != "kopf" and not each.name.startswith("kopf.")]
                if not left:
                    self._take_out(statement, sole=len(block) == 1)
                elif len(left) < len(statement.names):
                    listed = ", ".join(f"{each.name} as {each.asname}" if each.asname else each.name for each in left)
                    self.source.replace(statement, f"import {listed}")

    def _top(self) -> None:
        """Statements of the module that only ran kopf."""
        for statement in self.source.tree.body:
            if isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
                if any(self.words.resolve(node) for node in ast.walk(statement) if isinstance(node, ast.expr)):
                    self._take_out(statement)
                    todo = "run it by `python -m kopylite run FILE`; move what else it did into @app.on_start"
                    self._remark(statement.lineno, "if __name__ == ...", "taken out", todo)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                named = self.words.resolve(statement.value.func)
                if named in _TAKEN_OUT:
                    self._take_out(statement)
                    self._remark(statement.lineno, f"kopf.{named}", "taken out; " + advice.MISSING.get(named, ""))

    def _settings(self) -> None:
        """Take out what is set in `settings` by handlers of the start."""
        for each in self.found.handlers:
            if each.what != "startup" or not isinstance(each.function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for block in _blocks(each.function):
                set_here = [(statement, path) for statement in block if (path := _setting(statement))]
                for number, (statement, path) in enumerate(set_here):
                    value = getattr(statement, "value", None)
                    if value is not None:
                        self.settings[path] = value
                    self._take_out(statement, sole=number == 0 and len(set_here) == len(block))
                    self._remark(statement.lineno, f"settings.{path}", f"taken out; {advice.of_setting(path)}")
            left = [each for each in each.function.body if not _setting(each) and not _is_text(each)]
            if not [each for each in left if not isinstance(each, ast.Pass)]:
                self.emptied.add(each.name)

    def _visit(self, tree: ast.AST) -> None:
        """Replace what is left of kopf's names, but for those that are parameters."""
        waiting: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
        apart = {id(statement) for statement, _, _ in self.found.lambdas} if isinstance(tree, ast.Module) else set()
        while waiting:
            node, hidden = waiting.pop()
            if id(node) in apart:
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                args = node.args
                every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
                inner = hidden | {each.arg for each in every if each is not None}
                inside: list[ast.AST] = node.body if isinstance(node.body, list) else [node.body]  # type: ignore[assignment]
                outside = [child for child in ast.iter_child_nodes(node) if not any(child is each for each in inside)]
                waiting += [(child, hidden) for child in outside] + [(child, inner) for child in inside]
                continue
            if isinstance(node, ast.Call) and (named := self._resolved(node.func, hidden)):
                if self._called(node, named):
                    waiting += [(child, hidden) for child in (*node.args, *(each.value for each in node.keywords))]
                    continue
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                self._caught(node.type, hidden)
            elif isinstance(node, ast.Attribute | ast.Name) and (named := self._resolved(node, hidden)):
                self._named(node, named)
                continue
            waiting += [(child, hidden) for child in ast.iter_child_nodes(node)]

    def _resolved(self, node: ast.expr, hidden: frozenset[str]) -> str | None:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in hidden or not isinstance(root.ctx, ast.Load):
            return None
        return self.words.resolve(node)

    def _called(self, node: ast.Call, named: str) -> bool:
        """Rewrite a call that is written in another way here; False: only its name is."""
        options = {each.arg: each.value for each in node.keywords}
        if named == "TemporaryError":
            delay = options.get("delay", node.args[1] if len(node.args) > 1 else None)
            plain = len(node.args) == 1 and set(options) <= {"delay"}
            number = delay.value if isinstance(delay, ast.Constant) else 60 if delay is None else None
            if plain and isinstance(number, int | float) and number > 0 and not isinstance(number, bool):
                self.source.replace(node.func, self.names.use("retry"))
                for keyword in node.keywords:
                    begin, _ = self.source.span(keyword)
                    self.source.edits.append(TextEdit(begin, begin + len("delay"), "after"))
                if delay is None:
                    end = self.source.span(node)[1] - 1
                    comma = self.source.data[self.source.span(node.args[0])[1] : end].rstrip().endswith(b",")
                    self.source.edits.append(TextEdit(end, end, " after=60" if comma else ", after=60"))
                return True
        if named == "AdmissionError" and node.args and len(node.args) == 1:
            self.source.replace(node.func, self.names.use("denied"))
            if node.keywords:
                begin, end = self.source.span(node.keywords[0])[0], self.source.span(node.keywords[-1])[1]
                self.source.edits.append(TextEdit(self.source.data.rfind(b",", 0, begin), end, ""))
                self._remark(
                    node.lineno, "kopf.AdmissionError(code=)", "dropped: a denial is a 403, or with field= a 422"
                )
            return True
        return False

    def _caught(self, node: ast.expr, hidden: frozenset[str]) -> None:
        """What is caught is what is raised: a Retry for a TemporaryError."""
        for each in node.elts if isinstance(node, ast.Tuple) else [node]:
            if self._resolved(each, hidden) == "TemporaryError":
                self.source.replace(each, self.names.use("retry"))
                self._replaced.add(self.source.span(each)[0])

    def _named(self, node: ast.expr, named: str) -> None:
        begin = self.source.span(node)[0]
        out = bisect.bisect_right(self._out, (begin, len(self.source.data))) - 1
        if begin in self._replaced or (out >= 0 and begin < self._out[out][1]):
            return
        place = f"{self.source.name}:{node.lineno}"
        head = named.partition(".")[0]
        if named in ("PermanentError", "HandlerTimeoutError", "HandlerRetriesError"):
            text = self.names.use("terminal")
        elif named == "AdmissionError":
            text = self.names.use("denied")
        elif named in _MODES:
            text = _MODES[named]
        elif named in SUBHANDLERS:
            text = f"{self.names.use('bridge')}.subhandler"
            self._remark(
                node.lineno, f"kopf.{named}", "runs when its handler has returned, and again when one of them fails"
            )
        elif named in DECLARATIONS:
            text = f"{self.names.use('bridge')}.unmoved({f'kopf.{named}'!r}, {place!r})"
            done = "declares a handler when the program runs: it is called by nobody"
            self._remark(node.lineno, f"kopf.{named}", done, advice.REGISTRY)
        elif head in BRIDGED or head in TYPES:
            text = f"{self.names.use('bridge')}.{named}"
        elif not named:
            text = self.names.use("bridge")
            self._remark(node.lineno, "kopf", "the module itself is handed about; it became kopylite.migration.bridge",
                         "look what is asked of it")  # fmt: skip
        else:
            text = f"{self.names.use('bridge')}.missing({f'kopf.{named}'!r}, {place!r})"
            todo = advice.MISSING.get(head, "write it another way; docs/from-kopf.md says how")
            self._remark(
                node.lineno, f"kopf.{named}", "has no counterpart: a stand-in, whose use is a TerminalError", todo
            )
        self.source.replace(node, text)

    def setting(self, path: str) -> str | None:
        """A setting of kopf's, if it is a text that is known."""
        return text_of(self.settings.get(path), self.constants)

    def prefix(self) -> str | None:
        """Of the annotations of kopf's storages."""
        for path in ("persistence.diffbase_storage", "persistence.progress_storage"):
            for node in ast.walk(self.settings[path]) if path in self.settings else ():
                if isinstance(node, ast.keyword) and node.arg == "prefix":
                    found = text_of(node.value, self.constants)
                    if found:
                        return found
        return None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements below a node."""
    for each in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(each, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _setting(statement: ast.stmt) -> str:
    """The path of what a statement sets in `settings`; "": it sets nothing there."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        target = statement.target
    else:
        return ""
    text = ast.unparse(target)
    return text.removeprefix("settings.") if text.startswith("settings.") else ""


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
