"""`kopylite models`: pydantic models for the kinds of other people's CustomResourceDefinitions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kopylite.cli.exitcodes import Exit
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
    )
    parser.add_argument("file", metavar="FILE", help="a YAML or JSON file with a CustomResourceDefinition; - is stdin")
    parser.add_argument("--kind", metavar="NAME", help="which CRD of the file, by its kind, if there are several")
    parser.add_argument("--version", metavar="NAME", help="of the CRD; default: the version that is stored")
    parser.add_argument(
        "--no-descriptions", dest="descriptions", action="store_false", help="leave docstrings and descriptions out"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; the exit code is 0 or one of `Exit`."""
    from kopylite.objects.modelsource import models_of

    try:
        print(models_of(_read(args.file, args.kind), args.version, descriptions=args.descriptions), end="")
    except UsageError as error:
        print(f"kopylite models: {error}", file=sys.stderr)
        return Exit.USAGE
    return Exit.STOPPED


def _read(name: str, kind: str | None) -> dict[str, Any]:
    import yaml

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{name} cannot be read: {error}") from error
    found = {
        document["spec"]["names"]["kind"]: document
        for document in documents
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    }
    if not found:
        raise UsageError(f"{name} has no CustomResourceDefinition")
    if kind is None and len(found) > 1:
        raise UsageError(f"{name} has several CustomResourceDefinitions; name one: --kind {' | '.join(found)}")
    if kind is not None and kind not in found:
        raise UsageError(f"{name} has no kind {kind}; it has {', '.join(found)}")
    return found[kind] if kind else next(iter(found.values()))
