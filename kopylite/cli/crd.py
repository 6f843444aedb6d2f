"""`kopylite crd`: CustomResourceDefinitions from Python classes, printed, written or compared."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from kopylite.cli.commands import COMMANDS
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.target import AttributeNotFound, ModuleNotLoaded, load_module
from kopylite.devcluster.appcrds import all_versions, classes_in, kinds_named_by, own_of
from kopylite.errors import UsageError

EPILOG = """\
examples:
  kopylite crd shop.operator                          every CustomResource of the module
  kopylite crd shop.operator:app                      those that the App uses
  kopylite crd shop.models:Order --output-dir crds    into crds/orders.shop.example.com.yaml
  kopylite crd shop.operator --output-dir crds --check    in CI: are the files up to date?

--check writes nothing. It ends with code 1 when a file differs from the classes, is missing, or has a kind that no
class declares any more, and says which differences are dangerous for objects that are stored already.
"""

DIFFERENT = 1

_GroupKind = tuple[str, str]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `crd` and its options."""
    parser = subparsers.add_parser(
        "crd",
        help=COMMANDS["crd"],
        description="Print the CustomResourceDefinitions of an App, of a class, or of every class of a module.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "target", metavar="MODULE[:NAME]", help="package.module or path/to/file.py, with the name of an App or a class"
    )
    parser.add_argument(
        "-n", "--namespace", default="default", metavar="NAME",
        help="where the operator runs, whose @app.converter the API server is to call; default: default",
    )  # fmt: skip
    parser.add_argument("--output-dir", metavar="DIR", type=Path, help="write one file a kind into this folder")
    parser.add_argument("--check", action="store_true", help="compare with the files of --output-dir (default: crds)")


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0, 1 for a difference under --check, or one of `Exit`."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            crds = _crds(args.target, args.namespace)
    except UsageError as error:
        print(f"kopylite crd: {error}", file=sys.stderr)
        return _exit_code(error)
    for warning in caught:
        print(f"kopylite crd: note: {warning.message}", file=sys.stderr)
    try:
        if args.check:
            declared = _declared_beside(args.target)
            return _check(crds, args.output_dir or Path("crds"), declared)
        if args.output_dir:
            return _write(crds, args.output_dir)
    except (UsageError, OSError) as error:
        print(f"kopylite crd: {error}", file=sys.stderr)
        return Exit.USAGE
    print(_text(crds), end="")
    return Exit.STOPPED


def _crds(target: str, namespace: str) -> list[dict[str, Any]]:
    from kopylite.app import App
    from kopylite.crds.crd import crds_of
    from kopylite.deploy.hooks import converted

    place, _, name = target.partition(":")
    module = load_module(place)
    if not name:
        found = classes_in(vars(module).values())
    elif hasattr(module, name):
        found = all_versions(classes_in(kinds_named_by(getattr(module, name))))
    else:
        raise AttributeNotFound(f"{place} has no attribute {name!r}")
    apps = [app for app in ([getattr(module, name)] if name else vars(module).values()) if isinstance(app, App)]
    if apps and found and not (found := own_of(found)):
        raise AttributeNotFound(f"{target}: the CRDs of its kinds are installed by somebody else (foreign=True)")
    if not found:
        raise AttributeNotFound(
            f"{target} has no CustomResource; declare one: "
            "class MyApp(CustomResource[Spec, Status], group=..., version=...)"
        )
    crds = crds_of(found)
    for app in apps:
        crds = converted(crds, [app], namespace)
    return crds


def _exit_code(error: UsageError) -> int:
    if isinstance(error, ModuleNotLoaded):
        return Exit.MODULE
    return Exit.ATTRIBUTE if isinstance(error, AttributeNotFound) else Exit.REGISTRATION


def _text(crds: list[dict[str, Any]]) -> str:
    from kopylite.objects.yamlwrite import to_yaml

    return to_yaml(crds)


def _file(folder: Path, crd: dict[str, Any]) -> Path:
    return folder / f"{crd['metadata']['name']}.yaml"


def _write(crds: list[dict[str, Any]], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for crd in crds:
        _file(folder, crd).write_text(_text([crd]), encoding="utf-8")
        print(_file(folder, crd))
    return Exit.STOPPED


def _check(crds: list[dict[str, Any]], folder: Path, declared: set[_GroupKind] | None) -> int:
    """Compare with the files of a folder, which shall have no kinds but the declared ones (None: that is not asked)."""
    different = False
    told: set[Path | None] = set()
    for crd in crds:
        path = _file(folder, crd)
        if path.is_file():
            committed = _read(path)
            if committed == crd:
                continue
            print(f"{path}: differs from the classes")
        else:
            earlier, committed = _under_another_name(folder, crd)
            told.add(earlier)
            print(f"{path}: missing" + (f"; {earlier} has this kind under another name" if earlier else ""))
        different = True
        for change in _changes(committed, crd, path) if committed else ():
            print(f"  {change}")
    for path in _left_over(crds, folder, declared) if declared is not None else ():
        if path not in told:
            different = True
            print(f"{path}: no class declares this kind any more")
            print("  DANGEROUS: without its CRD all objects of the kind are gone; delete the file if that is meant")
    if different:
        print(f"run again with --output-dir {folder} and without --check to bring the files up to date")
    return DIFFERENT if different else Exit.STOPPED


def _read(path: Path) -> dict[str, Any]:
    """The CRD in a file."""
    from kopylite.objects.yamlread import read_documents

    found = [document for document in read_documents(path.read_bytes(), str(path)) if _is_crd(document)]
    if len(found) != 1:
        raise UsageError(f"{path} holds {len(found) or 'no'} CustomResourceDefinition{'s' * (len(found) > 1)}, not one")
    return dict(found[0])


def _is_crd(document: Any) -> bool:
    """Whether a document has the parts of a CRD that are compared."""
    try:
        spec = document["spec"]
        return (
            document["kind"] == "CustomResourceDefinition"
            and isinstance(document["metadata"], dict)
            and isinstance(spec["names"], dict)
            and isinstance(spec["versions"], list)
            and all(isinstance(version["name"], str) for version in spec["versions"])
        )
    except (KeyError, TypeError, IndexError):
        return False


def _changes(committed: dict[str, Any], crd: dict[str, Any], path: Path) -> list[Any]:
    from kopylite.crds.changes import compare_crds

    try:
        return compare_crds(committed, crd)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} holds no valid CustomResourceDefinition ({type(error).__name__})") from None


def _declared_beside(target: str) -> set[_GroupKind] | None:
    """The kinds of all classes beside the target: in its module, and in what is loaded of its package. None: the target
    is one class, and says nothing about others."""
    place, _, name = target.partition(":")
    module = load_module(place)
    if name and isinstance(getattr(module, name, None), type):
        return None
    package, dot, _ = module.__name__.partition(".")
    near = {
        id(found): found
        for loaded, found in list(sys.modules.items())
        if dot and (loaded == package or loaded.startswith(f"{package}."))
    }
    near[id(module)] = module
    for cls in classes_in(kinds_named_by(getattr(module, name)) if name else vars(module).values()):
        near[id(sys.modules[cls.__module__])] = sys.modules[cls.__module__]
    classes = classes_in(thing for found in near.values() for thing in list(vars(found).values()))
    return {(cls.declaration.group, cls.declaration.kind) for cls in classes if cls.declaration}


def _left_over(crds: list[dict[str, Any]], folder: Path, declared: set[_GroupKind]) -> list[Path]:
    """The files that this command wrote for kinds of the same groups which no class declares."""
    groups = {crd["spec"]["group"] for crd in crds}
    found = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            crd = _read(path)
        except UsageError:
            continue  # somebody else's file
        spec = crd["spec"]
        kind = (spec.get("group"), spec["names"].get("kind"))
        if spec.get("group") in groups and kind not in declared and path.name == f"{crd['metadata'].get('name')}.yaml":
            found.append(path)
    return found


def _under_another_name(folder: Path, crd: dict[str, Any]) -> tuple[Path | None, dict[str, Any]]:
    """The file of a kind whose plural was another one, and its CRD."""
    for path in sorted(folder.glob("*.yaml")):
        try:
            found = _read(path)
        except UsageError:
            continue  # somebody else's file
        if (found["spec"].get("group"), found["spec"]["names"].get("kind")) == (
            crd["spec"]["group"],
            crd["spec"]["names"]["kind"],
        ):
            return path, found
    return None, {}
