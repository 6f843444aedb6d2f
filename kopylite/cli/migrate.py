"""`kopylite migrate`: the way over from kopf, of the program's text and of the objects in the cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopylite.cli.commands import COMMANDS
from kopylite.cli.exitcodes import Exit
from kopylite.cli.kopfobjects import add_command, run_command
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.migration.converter import MovedModule

EPILOG = """\
examples:
  kopylite migrate kopf operator.py --output moved.py      the moved operator, and on stderr what needs a person
  kopylite migrate kopf src/*.py --output moved/ --report report.txt     an operator of several files
  kopylite migrate kopf operator.py --crds crd.yaml        where its CRDs are not beside it
  kopylite migrate kopf operator.py --check                only the report; exit code 1 if something needs a person
  kopylite migrate kopf-objects pages.example.com          what kopf left in these objects; add --yes to take it off

Then stop the kopf operator, run the moved one, and when it has seen its objects, take kopf's marks off. The whole way:
docs/from-kopf.md.
"""

NEEDED = 1
# Of a folder that is searched for CRDs: files, and bytes of each.
MOST_FILES = 500
LARGEST = 8 * 1024 * 1024


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `migrate` and its commands."""
    form = argparse.RawDescriptionHelpFormatter
    parser = subparsers.add_parser(
        "migrate",
        help=COMMANDS["migrate"],
        description="Move an operator over from kopf.",
        epilog=EPILOG,
        formatter_class=form,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True)
    text = commands.add_parser(
        "kopf",
        help="write the kopylite operator for one of kopf",
        description="Read a kopf operator (it is never imported or run), and write a kopylite operator that runs, with "
        "the bodies of the handlers as they are, and a report of what needs a person and why.",
        epilog=EPILOG,
        formatter_class=form,
        allow_abbrev=False,
    )
    add = text.add_argument
    add("file", metavar="FILE", nargs="+", type=Path, help="a module of the operator")
    add("--output", metavar="FILE|DIR", help="where to; default: standard output. A folder for several files, whose "
        "places below their common folder are kept")  # fmt: skip
    add("--report", metavar="FILE", type=Path, help="where the report goes; default: standard error")
    add("--crds", metavar="FILE|DIR", type=Path, action="append", default=[],
        help="YAML with the CRDs, which say the kinds; repeatable. Default: what lies beside the files, and one folder "
        "above")  # fmt: skip
    add("--check", action="store_true", help="write nothing but the report, to standard output; exit code 1 if "
        "something needs a person")  # fmt: skip
    add("--force", action="store_true", help="replace files that are there")
    add_command(commands)


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0, 1 for what needs a person (--check), or one of `Exit`."""
    if args.action == "kopf-objects":
        return run_command(args, signals)
    try:
        return _move(args)
    except UsageError as error:
        print(f"kopylite migrate: {error}", file=sys.stderr)
        return Exit.USAGE


def _move(args: argparse.Namespace) -> int:
    from kopylite.migration.converter import move
    from kopylite.migration.neighbours import imported_constants
    from kopylite.migration.report import rendered
    from kopylite.migration.sources import read_source

    targets = _targets(args.file, args.output, check=args.check, force=args.force)
    sources = [read_source(path) for path in args.file]
    near = [imported_constants(path, source.tree) for path, source in zip(args.file, sources, strict=True)]
    moved = move(sources, _crds(args.crds, args.file), near)
    if not any(each.handlers for each in moved) and not args.check:
        names = ", ".join(map(str, args.file))
        raise UsageError(f"{names}: no handler of kopf was found. Name the files that have @kopf.on... in them")
    remarks = [remark for each in moved for remark in each.remarks]
    report, needed = rendered(remarks), any(remark.todo for remark in remarks)
    if args.check:
        print(report, end="")
        return NEEDED if needed else Exit.STOPPED
    _write(moved, targets)
    if args.report is not None:
        from kopylite.wholefiles import write_whole

        write_whole(args.report, report)
        print(f"{report.splitlines()[0].rstrip(':')} (see {args.report})", file=sys.stderr)
    else:
        print(report, end="", file=sys.stderr)
    if targets:
        run = " ".join(str(path) for path, each in zip(targets, moved, strict=True) if each.handlers)
        print(f"\nTry it on a cluster of its own: python -m kopylite run {run} --dev", file=sys.stderr)
    return Exit.STOPPED


def _targets(files: Sequence[Path], output: str | None, *, check: bool, force: bool) -> list[Path]:
    """Where each file goes; none: to standard output. Raises UsageError."""
    if check and output is not None:
        raise UsageError("--check writes nothing: leave --output out")
    if output is None:
        if len(files) > 1 and not check:
            raise UsageError("several files need a folder to go to: --output DIR")
        return []
    place = Path(output)
    if len(files) == 1 and not place.is_dir() and not output.endswith("/"):
        targets = [place]
    else:
        resolved = [path.resolve() for path in files]
        top = Path(*_common([path.parent.parts for path in resolved]))
        targets = [place / path.relative_to(top) for path in resolved]
    for target, path in zip(targets, files, strict=True):
        if target.resolve() in {each.resolve() for each in files}:
            raise UsageError(f"{path} would be written over: name another --output")
        if target.exists() and not force:
            raise UsageError(f"{target} is there already: name another --output, or say --force")
    if len(set(targets)) < len(targets):
        raise UsageError("a file is named twice")
    return targets


def _common(parts: Sequence[tuple[str, ...]]) -> list[str]:
    shared: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return shared


def _write(moved: Sequence[MovedModule], targets: Sequence[Path]) -> None:
    from kopylite.wholefiles import write_whole

    if not targets:
        print(moved[0].text, end="")
    for target, each in zip(targets, moved, strict=bool(targets)):
        write_whole(target, each.text)


def _crds(named: Sequence[Path], files: Sequence[Path]) -> list[Mapping[str, Any]]:
    """The CRDs of files and folders that were named; else of those that lie near, as far as they can be read."""
    from kopylite.boundary import say
    from kopylite.objects.yamlread import read_documents

    paths: list[Path] = []
    for place in named:
        if not place.exists():
            raise UsageError(f"--crds {place}: there is no such file or folder")
        paths += _yaml_in(place, "**/*") if place.is_dir() else [place]
    if not named:
        folders = dict.fromkeys(
            folder for path in files for folder in (path.resolve().parent, path.resolve().parent.parent)
        )
        paths = [path for folder in folders for pattern in ("*", "*/*") for path in _yaml_in(folder, pattern)]
    found: list[Mapping[str, Any]] = []
    for path in list(dict.fromkeys(paths))[:MOST_FILES]:
        try:
            if path.stat().st_size > LARGEST:
                continue
            documents = read_documents(path.read_bytes(), str(path))
        except (OSError, UsageError, ValueError) as error:
            if path in named:
                raise UsageError(f"--crds {path}: {say(error)}") from error
            continue  # templates of charts and the like
        for document in documents:
            items = document.get("items") if isinstance(document, dict) else None
            each = items if isinstance(items, list) else [document]
            found += [i for i in each if isinstance(i, dict) and i.get("kind") == "CustomResourceDefinition"]
    return found


def _yaml_in(folder: Path, pattern: str) -> list[Path]:
    import itertools

    ends = (".yaml", ".yml", ".json")
    try:
        listed = itertools.islice(folder.glob(pattern), 20 * MOST_FILES)
        return sorted(path for path in listed if path.suffix in ends and path.is_file())
    except OSError:
        return []
