"""What the documents show is true: their Python compiles and type-checks, their commands, links and manifests exist."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kopylite import App
from kopylite.cli import make_parser
from kopylite.objects import Unstructured
from kopylite.starter import files_of, names_of
from kopylite.testing import EmbeddedCluster

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference")  # that one is made
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *sorted(ROOT.glob("samples/*/*.md"))]
# Of the pages, those whose blocks are fragments, and those that are run by a test of their own.
FRAGMENTS = {"docs/how-to/other-libraries.md", "docs/how-to/typed-resources.md", "docs/how-to/webhooks.md"}
README = ROOT / "README.md"


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(language: str) -> Iterator[Block]:
    for document in DOCUMENTS:
        text = document.read_text()
        for found in re.finditer(r"^( *)```(\w+)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
            if found[2] == language:
                yield Block(document, text[: found.start()].count("\n") + 2, language, textwrap.dedent(found[3]))


def commands() -> Iterator[tuple[Block, str]]:
    """The commands of the shell blocks, without comments; a pipeline is several."""
    for block in blocks("sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            for command in re.split(r"\s*[|;&]+\s*", re.sub(r"(^|\s)#.*", "", line)):
                if command:
                    yield block, command


def programs_of_pages() -> list[str]:
    """The documents whose blocks, read from top to bottom, are a program; in the others they are fragments."""
    found = {"README.md": None, "docs/from-kopf.md": None}
    for block in blocks("python"):
        name = block.document.relative_to(ROOT).as_posix()
        if re.match(r"docs/(concepts|how-to)/", name) and name not in FRAGMENTS and not is_file(block):
            found[name] = None
    return list(found)


def is_file(block: Block) -> bool:
    """Whether it is a file of its own, with its name in the first line, and no part of its page's program."""
    return re.match(r"# \w+\.py\b", block.text) is not None and block.document != README


@pytest.mark.parametrize("block", list(blocks("python")), ids=str)
def test_python_blocks_compile(block: Block) -> None:
    compile(block.text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def as_module(document: str) -> str:
    """The Python of a document as one module: what awaits at the top level becomes a function of its own."""
    parts = []
    for number, block in enumerate(blocks("python")):
        if block.document == ROOT / document and not is_file(block):
            awaits = any(isinstance(node, ast.AsyncWith) for node in ast.parse(block.text).body)
            body = (
                f"async def block_{number}() -> None:\n{textwrap.indent(block.text, '    ')}" if awaits else block.text
            )
            parts.append(body)
    return "\n\n".join(parts)


def pasted() -> dict[str, str]:
    """The blocks that are files of their own, by the name in their first line."""
    found = {}
    for block in blocks("python"):
        if name := re.match(r"# (\w+\.py)\b", block.text):
            found[name[1]] = block.text
    return found


@pytest.fixture
def programs(tmp_path: Path) -> list[Path]:
    """The documents that are programs as Python files, beside the files that they show."""
    for name, text in pasted().items():
        (tmp_path / name).write_text(text)
    files = [tmp_path / (re.sub(r"\W", "_", document) + ".py") for document in programs_of_pages()]
    for document, file in zip(programs_of_pages(), files, strict=True):
        file.write_text(as_module(document))
    return files


def test_programs_run(programs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(programs[0].parent)
    assert len(programs) > 10
    apps = [runpy.run_path(str(file)).get("app") for file in programs]
    assert all(isinstance(app, App) for app in apps if app is not None)
    sys.modules.pop("shop")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_has_nothing_to_say_about_files_as_pasted(tmp_path: Path) -> None:
    for name, text in pasted().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"include": ["*.py"], "extraPaths": [str(ROOT)]}))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {done.stderr[-200:]}")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(pasted())
    assert report["generalDiagnostics"] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_python_blocks_have_right_types(programs: list[Path], tmp_path: Path) -> None:
    # An example may have the name of an earlier one.
    options = ["--strict", "--disable-error-code", "no-redef", "--cache-dir", str(tmp_path / "cache")]
    files = [*programs, *(tmp_path / name for name in pasted())]
    command = [sys.executable, "-m", "mypy", *options, *map(str, files)]
    environment = os.environ | {"MYPYPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_first_operator_is_the_hello_sample() -> None:
    first = next(block for block in blocks("python") if block.document == ROOT / "README.md")
    sample = (ROOT / "samples/hello/operator.py").read_text()
    assert ast.unparse(ast.parse(first.text)) == ast.unparse(without_docstring(ast.parse(sample)))


def without_docstring(module: ast.Module) -> ast.Module:
    if ast.get_docstring(module) is not None:
        del module.body[0]
    return module


@pytest.mark.parametrize(
    ("block", "command"),
    [pytest.param(b, c, id=f"{b}: {c}") for b, c in commands() if re.match(r"(python -m )?kopylite ", c)],
)
def test_command_lines_are_understood(block: Block, command: str) -> None:
    arguments = shlex.split(command.partition("kopylite ")[2].split(">")[0])
    with contextlib.suppress(SystemExit) if "--help" in arguments else contextlib.nullcontext():
        make_parser().parse_args(arguments)


@pytest.mark.parametrize(
    ("block", "target"),
    [pytest.param(b, t, id=f"{b}: {t}") for b, c in commands() if c.startswith("make ") for t in c.split()[1:]],
)
def test_make_targets_exist(block: Block, target: str) -> None:
    # What leads from a laptop to a cluster is done in the project that `kopylite init` has made.
    makefile = "kopylite/starter/files/Makefile.txt" if block.document.name == "deploy.md" else "Makefile"
    assert "=" in target or re.search(rf"^{target}:", (ROOT / makefile).read_text(), re.MULTILINE)


def test_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for document in DOCUMENTS for found in re.findall(r"kopylite\[([\w,]+)\]", document.read_text())
             for extra in found.split(",")}  # fmt: skip
    assert named
    assert named <= set(extras)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if not re.match(r"\w+:", link):
            path, _, anchor = link.partition("#")
            target = document.parent / path if path else document
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text()), link


def test_links_of_the_readme_lead_somewhere_from_the_package_index_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [change] = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    files = f"{project['project']['urls']['Source']}/blob/main/"
    shown = re.sub(change["pattern"], change["replacement"], README.read_text())
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", shown) if not link.startswith("#")]
    assert links
    for link in links:
        assert re.match(r"https?://", link), link
        assert not link.startswith(files) or (ROOT / link.removeprefix(files).partition("#")[0]).exists(), link


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


async def test_manifests_are_accepted_by_the_api_server(embedded_cluster: EmbeddedCluster) -> None:
    plain = [block for block in blocks("yaml") if block.document.parent.name != "tutorial"]  # that is walked
    objects = [Unstructured(wire) for block in plain for wire in yaml.safe_load_all(block.text)]
    assert objects
    async with embedded_cluster.client() as client:
        for obj in objects:
            if namespace := obj.namespace:
                metadata = {"name": namespace}
                await client.apply(Unstructured(apiVersion="v1", kind="Namespace", metadata=metadata))
            stored = await client.create(obj, dry_run=True)
            assert stored.uid


def test_the_way_to_a_cluster_names_the_files_of_a_new_project() -> None:
    text = (ROOT / "docs/how-to/deploy.md").read_text()
    [command] = re.findall(r"kopylite (init .*)", text)
    args = make_parser().parse_args(shlex.split(command))
    names = names_of(args.name, args.kind, args.group)
    made = {*files_of(names, "1"), "deploy/00-namespace.yaml", "tests/", "deploy/", ".github/"}
    table = text[: text.index("## 2.")]
    named = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)]
    named += re.findall(r"-f ([\w./-]+/?[\w.-]*\.yaml)", text)
    assert len(named) > 8
    assert set(named) <= made
    assert f"kubectl get {names.plural}" in text


def test_what_readmes_name_in_code_font_exists() -> None:
    for document in DOCUMENTS:
        for path in re.findall(r"`((?:samples|docs|tests|kopylite)/[\w./-]+)`", document.read_text()):
            assert (ROOT / path).exists(), f"{document.name}: {path}"
