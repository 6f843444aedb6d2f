"""`kopylite models`: pydantic models for the kinds of other people's CustomResourceDefinitions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kopylite.cli.commands import COMMANDS
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError

EPILOG = """\
examples:
  kopylite models certificates.yaml > certificates.py      the classes of the version that is stored
  kopylite models certificates.yaml --version v1beta1      of another one
  kopylite models bundle.yaml --kind Issuer --kind Certificate     two of the kinds of a file
  kubectl get crd -o yaml | kopylite models -              all that a cluster has, in one module
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `models` and its options."""
    parser = subparsers.add_parser(
        "models",
        help=COMMANDS["models"],
        description="Print Python source with pydantic models for CustomResourceDefinitions: one module for all.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a YAML or JSON file with CustomResourceDefinitions; - is stdin")
    parser.add_argument("--kind", metavar="NAME", action="append", help="only this kind of the file; may be repeated")
    parser.add_argument("--version", metavar="NAME", help="of the CRDs; default: the version that is stored")
    parser.add_argument(
        "--no-descriptions", dest="descriptions", action="store_false", help="leave docstrings and descriptions out"
    )


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0 or one of `Exit`."""
    from kopylite.codegen.models import models_of

    try:
        print(models_of(_read(args.file, args.kind), args.version, descriptions=args.descriptions), end="")
    except UsageError as error:
        print(f"kopylite models: {error}", file=sys.stderr)
        return Exit.USAGE
    return Exit.STOPPED


def _read(name: str, kinds: list[str] | None) -> list[dict[str, Any]]:
    """The CRDs of a file, or those of some kinds."""
    from kopylite.objects.yamlread import read_documents

    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from error
    found = [
        item
        for document in read_documents(data, "standard input" if name == "-" else name)
        for item in _items(document)
        if isinstance(item, dict) and item.get("kind") == "CustomResourceDefinition"
    ]
    if not found:
        raise UsageError(f"{name} has no CustomResourceDefinition")
    if not kinds:
        return found
    there = [_kind(crd) for crd in found]
    if missing := [kind for kind in kinds if kind not in there]:
        raise UsageError(f"{name} has no kind {missing[0]}; it has {', '.join(there)}")
    return [crd for crd in found if _kind(crd) in kinds]


def _kind(crd: dict[str, Any]) -> str:
    try:
        return str(crd["spec"]["names"]["kind"])
    except (KeyError, TypeError):
        return "(no kind)"


def _items(document: Any) -> list[Any]:
    """The objects of a List, as kubectl prints several; else the document itself."""
    items = document.get("items") if isinstance(document, dict) else None
    return items if isinstance(items, list) else [document]
