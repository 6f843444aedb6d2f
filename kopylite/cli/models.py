"""`kopylite models`: pydantic models for the kinds of other people's CustomResourceDefinitions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError

EPILOG = """\
examples:
  kopylite models certificates.yaml > certificates.py      the classes of the version that is stored
  kopylite models certificates.yaml --version v1beta1      of another one
  kubectl get crd issuers.cert-manager.io -o yaml | kopylite models -
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `models` and its options."""
    parser = subparsers.add_parser(
        "models",
        help="print pydantic models for a foreign CRD",
        description="Print Python source with pydantic models for the kind of a CustomResourceDefinition.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a YAML or JSON file with a CustomResourceDefinition; - is stdin")
    parser.add_argument("--kind", metavar="NAME", help="which CRD of the file, by its kind, if there are several")
    parser.add_argument("--version", metavar="NAME", help="of the CRD; default: the version that is stored")
    parser.add_argument(
        "--no-descriptions", dest="descriptions", action="store_false", help="leave docstrings and descriptions out"
    )


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0 or one of `Exit`."""
    from kopylite.objects.modelsource import models_of

    try:
        print(models_of(_read(args.file, args.kind), args.version, descriptions=args.descriptions), end="")
    except UsageError as error:
        print(f"kopylite models: {error}", file=sys.stderr)
        return Exit.USAGE
    return Exit.STOPPED


def _read(name: str, kind: str | None) -> dict[str, Any]:
    """The CRDs of a file, or the one of a kind."""
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
    kinds = {crd["spec"]["names"]["kind"]: crd for crd in found}
    if kind is None and len(kinds) > 1:
        raise UsageError(f"{name} has several CustomResourceDefinitions; name one: --kind {' | '.join(kinds)}")
    if kind is not None and kind not in kinds:
        raise UsageError(f"{name} has no kind {kind}; it has {', '.join(kinds)}")
    return kinds[kind] if kind else next(iter(kinds.values()))


def _items(document: Any) -> list[Any]:
    """The objects of a List, as kubectl prints several; else the document itself."""
    items = document.get("items") if isinstance(document, dict) else None
    return items if isinstance(items, list) else [document]
