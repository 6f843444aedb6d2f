"""converter: a module of a kopf operator becomes one of a kopylite operator. It is read, and never imported or run."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from kopylite.migration import advice
from kopylite.migration.constants import Constants, constants_of
from kopylite.migration.declarations import HandlerDeclaration, arguments_used, declared_in
from kopylite.migration.report import Remark
from kopylite.migration.rewriting import ImportedNames, Rewriting
from kopylite.migration.selectors import KindRef, NamedResource, catalogue, kinds_of
from kopylite.migration.sources import ModuleSource, TextEdit
from kopylite.migration.vocabulary import ACTIVITIES, vocabulary_of
from kopylite.migration.wiring import Wired, WiringWriter

_HOMES = {"Retry": "retry", "TerminalError": "terminal", "Denied": "denied"}


@dataclass(frozen=True, slots=True)
class MovedModule:
    """What became of a module.

    Args:
        text: of the new module.
        remarks: for the report.
        handlers: how many it has; 0: there is no App in it.
    """

    text: str
    remarks: tuple[Remark, ...]
    handlers: int


def move(
    sources: Sequence[ModuleSource], crds: Sequence[Mapping[str, Any]] = (), imported: Sequence[Constants] = ()
) -> list[MovedModule]:
    """The modules of one operator, each moved over. Names of one that others import are known in all of them.

    Args:
        imported: of each module, what it imports from other files.
    """
    constants, known = constants_of(source.tree for source in sources), catalogue(crds)
    seen: dict[str, str] = {}
    moved = []
    for number, source in enumerate(sources):
        near = imported[number] if imported else {}
        one = _Conversion(source, {**constants, **near, **constants_of([source.tree])}, known)
        moved.append(one.run())
        for wired in one.kinds:
            if all(each.what in ("index", "timer", "validate", "mutate") for each in wired.declared):
                continue
            title = f"{wired.ref.kind} of {wired.ref.api_version}"
            if title in seen and seen[title] != source.name:
                done = f"has a reconciler here, and one in {seen[title]}: they run beside each other"
                remark = Remark(source.name, 1, title, done, "join them, so that one function decides for an object")
                moved[-1] = MovedModule(moved[-1].text, (*moved[-1].remarks, remark), moved[-1].handlers)
            seen.setdefault(title, source.name)
    return moved


@dataclass(slots=True)
class _Conversion:
    source: ModuleSource
    constants: Constants
    known: Sequence[NamedResource]
    kinds: list[Wired] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)
    _chosen: dict[str, str] = field(default_factory=dict)
    _found: list[HandlerDeclaration] = field(default_factory=list)
    _causes: dict[str, set[str]] = field(default_factory=dict)

    def run(self) -> MovedModule:
        source, words = self.source, vocabulary_of(self.source.tree)
        if not words:
            note = Remark(source.name, 1, "the file", "has nothing of kopf, and is left as it is")
            return MovedModule(source.result(), (note,), 0)
        self._taken = _identifiers(source.tree)
        found = declared_in(source.tree, words)
        self._found = found.handlers
        self._rename_shadowed()
        for each in self._found:
            self._causes.setdefault(each.name, set()).add(each.what)
        names = ImportedNames(
            self._free("bridge"), self._free("Retry"), self._free("TerminalError"), self._free("Denied")
        )
        rewriting = Rewriting(source, words, found, names, self.constants)
        rewriting.run()
        self.remarks += rewriting.remarks
        others = [each for each in found.handlers if each.what in ACTIVITIES]
        for each in found.handlers:
            if each.what in ACTIVITIES or self._place(each):
                self._told(each, each.name in rewriting.emptied)
        self._libraries()
        wired = self._wired(rewriting, others) if found.handlers else ("", set())
        text = self._assembled(names, *wired)
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return self._kept_whole(len(found.handlers))
        return MovedModule(text, tuple(self.remarks), len(found.handlers))

    def _rename_shadowed(self) -> None:
        """kopf keeps functions, and here they are called by name: one that a later one hides gets a name of its own."""
        defined = [each for each in self.source.tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        last = {each.name: each for each in defined}
        declared: dict[int, list[HandlerDeclaration]] = {}
        for one in self._found:
            declared.setdefault(id(one.function), []).append(one)
        for node in defined:
            of_it = declared.get(id(node), [])
            if last[node.name] is node or not of_it:
                continue
            name = self._free(f"{node.name}_{node.lineno}", new=True)
            begin, end = self.source.span(node)
            if match := re.compile(rb"def\s+(" + node.name.encode() + rb")\b").search(self.source.data, begin, end):
                self.source.edits.append(TextEdit(match.start(1), match.end(1), name))
                for each in of_it:
                    each.name = name
                self._remark(of_it[0], f"{node.name} is defined again below: this one is called {name}")

    def _wired(self, rewriting: Rewriting, others: Sequence[HandlerDeclaration]) -> tuple[str, set[str]]:
        finalizer, standalone = rewriting.setting("persistence.finalizer"), rewriting.settings.get("peering.standalone")
        writer = WiringWriter(
            self.source.name, _app_name(self.source.name), self.source.edited, self._free,
            lambda name: rewriting.names.use(name),
            finalizer=finalizer, prefix=rewriting.prefix(), peering=rewriting.setting("peering.name"),
            led=standalone is None and any(path.startswith("peering.") for path in rewriting.settings),
        )  # fmt: skip
        return writer.written(self.kinds, others, rewriting.emptied), writer.imported

    def _place(self, each: HandlerDeclaration) -> bool:
        """Put a handler to its kinds; False: nobody knows them."""
        refs = (
            "its options are known only when the program runs"
            if each.opaque
            else kinds_of(each.args, each.options, self.constants, self.known)
        )
        if isinstance(refs, str):
            self._remark(each, f"it is called by nobody: {refs}", advice.REGISTRY)
            return False
        for ref in refs:
            self._kind(ref).declared.append(each)
            if ref.doubt:
                self._remark(each, f"the kind is taken for {ref.kind} of {ref.api_version}", ref.doubt)
        return True

    def _kind(self, ref: KindRef) -> Wired:
        for wired in self.kinds:
            if (wired.ref.kind, wired.ref.api_version) == (ref.kind, ref.api_version):
                return wired
        name = re.sub(r"\W", "", ref.kind) or "Resource"
        self.kinds.append(Wired(ref, self._free(name if name.isidentifier() else f"Kind{name}", new=True)))
        return self.kinds[-1]

    def _told(self, each: HandlerDeclaration, emptied: bool) -> None:
        """Say what became of a handler, and what is different for it."""
        done, todo = advice.BECAME[each.what]
        causes = self._causes[each.name]
        todo = "" if each.what == "resume" and causes & {"create", "update"} else todo
        self._remark(each, "only set settings: taken out" if emptied else done, "" if emptied else todo)
        if each.conditional:
            self._remark(each, "it is declared under a condition, and called without one", advice.CONDITIONAL)
        used = arguments_used(each.function)
        for name in sorted(used & advice.ARGUMENTS.keys()):
            if name == "old" and each.what in ("validate", "mutate"):
                continue
            if (name in ("event", "type")) == (each.what == "event") or name not in ("event", "type"):
                self._remark(each, f"argument `{name}`: {advice.ARGUMENTS[name][0]}", advice.ARGUMENTS[name][1])
        for name in sorted(each.options.keys() & advice.OPTIONS.keys()):
            if advice.OPTIONS[name]:
                self._remark(each, f"option {name}= is not taken over", advice.OPTIONS[name])

    def _libraries(self) -> None:
        for node in self.source.tree.body:
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                if (name := module.partition(".")[0]) in advice.LIBRARIES:
                    self.remarks.append(Remark(self.source.name, node.lineno, f"import {name}", advice.OWN_CLIENT))

    def _remark(self, each: HandlerDeclaration, done: str, todo: str = "") -> None:
        construct = each.text if len(each.text) <= 100 else f"{each.text[:97]}..."
        self.remarks.append(Remark(self.source.name, each.line, f"{construct} {each.name}", done, todo))

    def _free(self, name: str, *, new: bool = False) -> str:
        """A name that the module does not use; the same one for the same name, unless it is to be a new one."""
        if not new and name in self._chosen:
            return self._chosen[name]
        chosen = name
        while chosen in self._taken or keyword.iskeyword(chosen) or hasattr(builtins, chosen):
            chosen += "_"
        self._taken.add(chosen)
        if not new:
            self._chosen[name] = chosen
        return chosen

    def _assembled(self, names: ImportedNames, wiring: str, imported: set[str]) -> str:
        used = {name for name, home in _HOMES.items() if home in names.used}
        lines = []
        listed = [
            name if self._chosen.get(name, name) == name else f"{name} as {self._chosen[name]}"
            for name in sorted(imported | used, key=str.lower)
        ]
        if listed:
            joined = f"from kopylite import {', '.join(listed)}"
            lines.append(
                joined if len(joined) <= 110 else "from kopylite import (\n    " + ",\n    ".join(listed) + ",\n)"
            )
        if "bridge" in names.used:
            lines.append(
                "from kopylite.migration import bridge" + ("" if names.bridge == "bridge" else f" as {names.bridge}")
            )
        if lines:
            place = _after_head(self.source)
            self.source.edits.append(TextEdit(place, place, "\n".join(lines) + "\n"))
        text = self.source.result().rstrip("\n") + "\n"
        return f"{text}\n\n{wiring.rstrip()}\n" if wiring else text

    def _kept_whole(self, handlers: int) -> MovedModule:
        """What could not be made is no reason to lose anything."""
        whole = "\n".join(f"# {line}".rstrip() for line in self.source.data.decode().split("\n"))
        remark = Remark(self.source.name, 1, "the file", "could not be moved: all of it is kept as comments",
                        "tell the authors of kopylite what is special about it, and move it by hand")  # fmt: skip
        return MovedModule(whole + "\n", (remark, *self.remarks), handlers)


def _identifiers(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def _after_head(source: ModuleSource) -> int:
    """Where imports may stand: behind the docstring and what is imported from __future__."""
    place = 0
    for number, statement in enumerate(source.tree.body):
        text = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not text and not future:
            return source.lines(min([statement.lineno, *_decorated(statement)]), statement.lineno)[0]
        place = min(source.lines(statement.lineno, statement.end_lineno or statement.lineno)[1] + 1, len(source.data))
    return place


def _decorated(statement: ast.stmt) -> list[int]:
    return [each.lineno for each in getattr(statement, "decorator_list", ())]


def _app_name(file: str) -> str:
    """An App's name, from that of a file; of a file that is called as all are, from its folder's."""
    path = PurePath(file)
    stem = (
        path.parent.name
        if path.stem in ("operator", "main", "__init__", "handlers") and path.parent.name
        else path.stem
    )
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-") or "moved"
