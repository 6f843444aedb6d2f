"""Writes docs/reference from the program itself: names, options, variables, metrics, exit codes, log events.

`make docs` calls it; what it writes is not kept in the repository, so nothing in it can be out of date.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.publicapi import MODULES, public_api

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "kopylite"
SECTIONS = ("Args", "Attributes", "Raises", "Returns", "Yields", "Guarantees", "Example", "Examples")
LEVELS = ("debug", "info", "warning", "error", "exception", "critical")
# Not of an option: read by the program, or by the tools that it starts.
OTHER_VARIABLES = {
    "KUBECONFIG": "the kubeconfig, or several, as for kubectl",
    "KUBEBUILDER_ASSETS": "of tests: the folder with kube-apiserver and etcd, for `EnvTest` and the fixture `envtest`",
    "HTTPS_PROXY, NO_PROXY": "the proxy to the API server, where its kubeconfig names none",
}


def pages() -> dict[str, str]:
    """The text of each page, by its name."""
    found = {f"python-{module.replace('.', '-')}": python_page(module) for module in MODULES}
    return found | {
        "command-line": command_line_page(),
        "environment": environment_page(),
        "metrics": metrics_page(),
        "exit-codes": exit_codes_page(),
        "log-events": log_page(),
    }


def write(folder: Path) -> None:
    """Write all pages, and their index, into a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    texts = pages()
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    titles = {name: text.partition("\n")[0].lstrip("# ") for name, text in texts.items()}
    links = [f"- [{title}]({name}.md)" for name, title in titles.items()]
    contents = ["```{toctree}", ":hidden:", ":titlesonly:", "", *texts, "```"]
    (folder / "index.md").write_text(
        "\n".join(["# Reference", "", "Made from the program.", "", *links, "", *contents, ""])
    )


# Python


def python_page(module_name: str) -> str:
    """The public names of a module, each with its signature and docstring, its members below it."""
    module = importlib.import_module(module_name)
    lines = [f"# Python: `{module_name}`", "", *text_of(inspect.getdoc(module) or ""), ""]
    for path, looks in public_api().items():
        owner, _, name = path.rpartition(".")
        if path.startswith("$") or not (owner == module_name or owner.rpartition(".")[0] == module_name):
            continue
        if owner != module_name and (owner in MODULES or not hasattr(module, owner.rpartition(".")[2])):
            continue
        lines += entry(module, path.removeprefix(f"{module_name}."), name, looks)
    return "\n".join(lines) + "\n"


def entry(module: Any, inner: str, name: str, looks: str) -> Iterator[str]:
    value = module
    for part in inner.split("."):
        value = inspect.getattr_static(value, part, None) if value is not module else getattr(module, part)
    value = getattr(value, "__func__", value)
    member = "." in inner
    shown = f"{inner.partition('.')[0]}{looks}" if name == "__init__" else f"{name}{looks}"
    yield from ("", f"{'###' if member else '##'} `{'' if not member else inner.partition('.')[0] + '.'}{name}`", "")
    yield from ("```text", shown.replace("class(", "(class of ") if " class(" in looks else shown, "```", "")
    if isinstance(value, type) or callable(value) or isinstance(value, property):
        doc = inspect.getdoc(value) or ""
        yield from text_of("" if doc.startswith("Initialize self.") else doc)


def text_of(doc: str) -> Iterator[str]:
    """A docstring as Markdown: its sections become lists."""
    section = False
    for line in doc.splitlines():
        if line.rstrip(":") in SECTIONS and line.endswith(":"):
            section = True
            yield from ("", f"**{line}**", "")
        elif section and re.match(r"    \S", line):
            term, colon, rest = line.strip().partition(": ")
            yield f"- `{term}`: {rest}" if colon and re.fullmatch(r"[\w*, .|\[\]]+", term) else f"- {line.strip()}"
        elif section and line.startswith("     "):
            yield f"  {line.strip()}"
        else:
            section = section and not line
            yield line
    yield ""


# The command line


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command with its parser, those of commands too."""
    from kopylite.cli import make_parser

    def walk(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        yield name, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command, inner in action.choices.items():
                    yield from walk(f"{name} {command}", inner)

    return walk("kopylite", make_parser())


def command_line_page() -> str:
    lines = ["# The command line", ""]
    for name, parser in parsers():
        lines += [f"## `{name}`", "", "```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


def environment_page() -> str:
    rows = {}
    for _, parser in parsers():
        for action in parser._actions:
            for variable in re.findall(r"\[(KOPYLITE_[A-Z_]+)", action.help or ""):
                words = re.sub(r"\s*\[KOPYLITE_.*", "", action.help or "").replace("%%", "%")
                rows[variable] = f"| `{variable}` | `{action.option_strings[0]}` | {words} |"
    others = [f"| `{name}` | | {what} |" for name, what in OTHER_VARIABLES.items()]
    return "\n".join(
        ["# Environment variables", "", "A flag wins over its variable.", "", "| variable | is | |", "|---|---|---|"]
        + [rows[name] for name in sorted(rows)]
        + [*others, ""]
    )


def exit_codes_page() -> str:
    from kopylite.cli.exitcodes import Exit

    rows = [f"| {code.value} | `{code.name}` | {code.__doc__} |" for code in Exit]
    return "\n".join(["# Exit codes", "", "| code | name | the process ended because |", "|---|---|---|", *rows, ""])


# Metrics


class _Zero:
    """Stands for statistics of any kind: there is something, and it counts 0."""

    def __getattr__(self, name: str) -> int:
        return 0


def metrics_page() -> str:
    """Every family that a Manager and the parent of several processes can show."""
    from kopylite import collectors, metrics, registry

    rows: dict[str, str] = {}
    originals = {name: getattr(collectors, name) for name in ("counter", "gauge", "histograms")}

    def noting(kind: str) -> Any:
        def note(name: str, text: str, labels: tuple[str, ...], values: Any) -> Any:
            shown = ", ".join(f"`{label}`" for label in labels)
            rows[name] = f"| `{name}` | {kind.rstrip('s')} | {shown} | {text} |"
            return originals[kind](name, text, labels, values)

        return note

    used = [(module, kind) for module in (collectors, metrics, registry) for kind in originals if hasattr(module, kind)]
    for module, kind in used:
        setattr(module, kind, noting(kind))
    try:
        numbers = metrics.Metrics()
        numbers.webhooks.in_flight = lambda: {"/path": 0}
        numbers.elections.memberships = lambda: [("app", _Zero())]  # type: ignore[list-item,return-value]
        list(numbers.collect())
        list(registry.ProcessMetrics(lambda: [("1", True, 0)]).collect())  # type: ignore[list-item,arg-type,return-value]
    finally:
        for module, kind in used:
            setattr(module, kind, originals[kind])
    head = ["# Metrics", "", "Names that controller-runtime or client-go have too mean what they mean there.", ""]
    table = ["| name | type | labels | |", "|---|---|---|---|", *(rows[name] for name in sorted(rows))]
    process = "Beside them those of the process: `process_*`, `python_*`."
    return "\n".join([*head, *table, "", process, ""])


# Log events


def log_events() -> Iterator[tuple[str, str, str]]:
    """Logger, level and text of each line that the operator's side can write; %s and … stand for what is put in."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "apiserver" in path.relative_to(PACKAGE).parts:
            continue
        text = path.read_text()
        if "logging" not in text:
            continue
        tree = ast.parse(text)
        names = re.findall(r'^logger = logging\.getLogger\("?([\w.]+)"?\)', text, re.MULTILINE)
        module = ".".join(["kopylite", *path.relative_to(PACKAGE).with_suffix("").parts])
        logger = names[0] if names and names[0] != "__name__" else module
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                method, of = node.func.attr, ast.unparse(node.func.value)
                if method not in (*LEVELS, "log") or not of.endswith(("logger", "getLogger(__name__)")):
                    continue
                argument = node.args[1] if method == "log" else node.args[0]
                level = "any" if method == "log" else {"exception": "error"}.get(method, method)
                yield logger, level.upper(), words_of(argument, tree)


def words_of(node: ast.expr, tree: ast.Module) -> str:
    """A text as it is written, of a name what is assigned to it in that module."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp):
        return words_of(node.left, tree) + words_of(node.right, tree)
    if isinstance(node, ast.Name):
        for other in ast.walk(tree):
            if isinstance(other, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == node.id for t in other.targets
            ):
                return words_of(other.value, tree)
    return "…"


def log_page() -> str:
    rows = []
    for logger, level, text in sorted(set(log_events())):
        shown = text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
        rows.append(f"| {level} | `{logger}` | `` {shown} `` |")
    lead = [
        "# Log events",
        "",
        "Each line of the log has a time, a level, a logger and a text; with `--log-format json` these are fields, as",
        "are `controller`, `namespace`, `name`, `reconcile_id` and `reasons` where a reconcile is meant. `%s` and …",
        "stand for what is put in; a text that is `%s` alone is made elsewhere, from an error.",
        "[Troubleshooting](../troubleshooting/index.md) has pages about the worst.",
        "",
    ]
    return "\n".join([*lead, "| level | logger | text |", "|---|---|---|", *rows, ""])
