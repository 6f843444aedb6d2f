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
    parser.add_argument(
        "file", metavar="FILE", help="a YAML or JSON file with one CustomResourceDefinition; - is stdin"
    )
    parser.add_argument("--version", metavar="NAME", help="of the CRD; default: the version that is stored")
    parser.add_argument(
        "--no-descriptions", dest="descriptions", action="store_false", help="leave docstrings and descriptions out"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; the exit code is 0 or one of `Exit`."""
    from kopylite.objects.modelsource import models_of

    try:
        print(models_of(_read(args.file), args.version, descriptions=args.descriptions), end="")
    except UsageError as error:
        print(f"kopylite models: {error}", file=sys.stderr)
        return Exit.USAGE
    return Exit.STOPPED


def _read(name: str) -> dict[str, Any]:
    import yaml

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{name} cannot be read: {error}") from error
    crds = [found for found in documents if isinstance(found, dict) and found.get("kind") == "CustomResourceDefinition"]
    if len(crds) != 1:
        raise UsageError(f"{name} has {len(crds)} CustomResourceDefinitions; give it one at a time")
    return crds[0]
