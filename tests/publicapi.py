"""What programs may count on: the public names with their signatures, and the command line, one line each.

`python -m tests.publicapi` says how the code differs from tests/public_api.txt; `--write` (`make api`) writes the list
anew. docs/releases.md has the policy that the words of a difference are about.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
from pydantic import BaseModel

LIST = Path(__file__).parent / "public_api.txt"
# From where the documentation imports. What else a room shows to other rooms is the library's own business.
MODULES = ("kopylite", "kopylite.errors", "kopylite.objects", "kopylite.client", "kopylite.testing", "kopylite.sweep")
# Handed to programs, never made by them: their constructors may change.
HANDED_OUT = {"Context", "SyncContext", "Review", "Snapshot", "RequestLog", "LoggedRequest", "Scene", "Stored"}
EMPTY = inspect.Parameter.empty
HEADER = "# What programs may count on; see docs/releases.md. Written by `make api`: read what it changes.\n"


class Difference(NamedTuple):
    breaking: bool
    text: str


def public_api() -> dict[str, str]:
    """Each public name, and what it looks like; equal on every Python that is supported."""
    found: dict[str, str] = {}
    homes: dict[int, str] = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", None) or own_names(module):
            value, path = getattr(module, name), f"{module_name}.{name}"
            if isinstance(value, type) or callable(value):
                if first := homes.get(id(value)):
                    found[path] = f" is {first}"
                    continue
                homes[id(value)] = path
            found.update(lines_of(path, value))
    return found | dict(sorted(command_lines()))


def own_names(module: Any) -> list[str]:
    """For a module without __all__: the classes and functions that are written in it."""
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def lines_of(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, type):
        yield path, signature(value) if callable(value) and hasattr(value, "__name__") else f": {shown(value)}"
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base not in (object, msgspec.Struct))
    yield path, f" class({bases})"
    if issubclass(value, enum.Enum):
        yield from ((f"{path}.{member.name}", f" = {member.value!r}") for member in value)
        return
    made = "__init__" in vars(value) or "__new__" in vars(value) or issubclass(value, msgspec.Struct)
    if made and not issubclass(value, BaseModel) and value.__name__ not in HANDED_OUT:
        yield f"{path}.__init__", signature(value)
    yield from sorted(members(path, value))


def members(path: str, cls: type) -> Iterator[tuple[str, str]]:
    """Fields, properties and methods, its own and those of bases that are the library's."""
    for name, annotation in fields(cls).items():
        yield f"{path}.{name}", f": {annotation}"
    for base in cls.__mro__:
        if not base.__module__.startswith("kopylite"):
            continue
        yield from ((f"{path}.{name}", ": attribute") for name in attributes(base) if name not in fields(cls))
        for name, member in vars(base).items():
            if name.startswith("_") or getattr(cls, name, None) is None:
                continue
            if isinstance(member, property):
                yield f"{path}.{name}", f" property -> {annotation_of(inspect.signature(member.fget or len))}"
            elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
                kind = {classmethod: "class ", staticmethod: "static "}.get(type(member), "")
                yield f"{path}.{name}", f"{kind and ' '}{kind}{signature(getattr(member, '__func__', member))}"


def attributes(cls: type) -> set[str]:
    """What a constructor that is written out puts into the object for all to see."""
    if "__init__" not in vars(cls) or dataclasses.is_dataclass(cls):
        return set()
    return {
        node.attr
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls.__init__))))  # type: ignore[misc]
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and not node.attr.startswith("_")
    }


def fields(cls: type) -> dict[str, str]:
    if issubclass(cls, BaseModel):
        return {
            name: f"{text_of(field.annotation)}{'' if field.is_required() else ' = ' + shown(field.default)}"
            for name, field in cls.model_fields.items()
            if not name.startswith("_")
        }
    if issubclass(cls, msgspec.Struct):
        written = inspect.get_annotations(cls)  # msgspec has other words for the same
        return {field.name: text_of(written.get(field.name, field.type)) for field in msgspec.structs.fields(cls)}
    if dataclasses.is_dataclass(cls):
        return {field.name: text_of(field.type) for field in dataclasses.fields(cls) if not field.name.startswith("_")}
    return {}


def signature(function: Any) -> str:
    """As it is written behind `def name`, options by TypedDict one by one; "(...)" where Python knows none."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    if isinstance(function, type) and issubclass(function, msgspec.Struct):
        own = [one.replace(annotation=fields(function)[one.name]) for one in found.parameters.values()]
        found = found.replace(parameters=own, return_annotation="None")
    given: list[inspect.Parameter] = []
    for parameter in found.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and (options := options_of(function, parameter)):
            given += options
        elif not parameter.name.startswith("_") or parameter.kind is parameter.VAR_KEYWORD:
            given.append(
                parameter.replace(
                    default=EMPTY if parameter.default is EMPTY else Shown(shown(parameter.default)),
                    annotation=Shown(text_of(parameter.annotation)) if parameter.annotation is not EMPTY else EMPTY,
                )
            )
    text = str(found.replace(parameters=given, return_annotation=EMPTY))
    result = annotation_of(found)
    word = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{word and ' '}{word}{text}" + (f" -> {result}" if result else "")


def options_of(function: Any, parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """The keywords that `**options: Unpack[Name]` stands for."""
    match = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
    options = getattr(function, "__globals__", {}).get(match[1]) if match else None
    return [
        inspect.Parameter(name, parameter.KEYWORD_ONLY, default=Shown("..."), annotation=Shown(text_of(annotation)))
        for name, annotation in getattr(options, "__annotations__", {}).items()
    ]


def annotation_of(found: inspect.Signature) -> str:
    return "" if found.return_annotation is EMPTY else text_of(found.return_annotation)


class Shown:
    """A default or an annotation, in words that no version of Python changes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def text_of(annotation: Any) -> str:
    """Of an annotation, which may be a text, a class or a reference."""
    text = getattr(annotation, "__forward_arg__", None) or annotation
    return (
        text
        if isinstance(text, str)
        else annotation.__name__
        if isinstance(annotation, type) and not get_args(annotation)
        else str(annotation)
    )


def shown(value: Any) -> str:
    """Of a default. What cannot be written as it is becomes "..."."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return "..." if text.startswith("<") or " at 0x" in text or text == "PydanticUndefined" else text


def command_lines() -> Iterator[tuple[str, str]]:
    from kopylite.cli import make_parser
    from kopylite.cli.exitcodes import Exit

    def walk(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
        yield f"$ {name}", ""
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command, sub in action.choices.items():
                    yield from walk(f"{name} {command}", sub)
                continue
            takes = "" if action.nargs == 0 else f" {action.metavar or action.dest}"
            choices = f" of {', '.join(map(str, action.choices))}" if action.choices else ""
            for option in action.option_strings or [action.dest]:
                yield f"$ {name} {option}", takes + choices

    yield from walk("kopylite", make_parser())
    yield from ((f"$ exit code {code.value}", f" {code.name}") for code in Exit)


def differences(listed: Mapping[str, str], found: Mapping[str, str]) -> list[Difference]:
    """What has changed, in words; `breaking` where a program that was right may be wrong now."""
    gone = [
        Difference(True, f"removed {path}: needs a deprecation, and lives for two more minor versions")
        for path in listed
        if path not in found
    ]
    changed = [
        Difference(*compare(path, listed[path], found[path]))
        for path in listed
        if path in found and listed[path] != found[path]
    ]
    added = [Difference(False, f"added {path}{found[path]}") for path in found if path not in listed]
    return gone + changed + added


def compare(path: str, before: str, after: str) -> tuple[bool, str]:
    both = f"\n    listed: {path}{before}\n    now:    {path}{after}"
    if before.replace(" property -> ", ": ") == after.replace(" property -> ", ": ") and after[:1] == ":":
        return False, f"changed {path}, which is read as before{both}"
    old, new = parameters_of(before), parameters_of(after)
    if old is None or new is None:
        return True, f"changed {path}: needs a deprecation if a program can notice it{both}"
    reasons = [f"parameter {name} is gone" for name in old if name not in new]
    reasons += [f"new parameter {name} has no default" for name in new if name not in old and not new[name][1]]
    reasons += [f"{name} must be given now" for name in old.keys() & new.keys() if old[name][1] and not new[name][1]]
    for name in old.keys() & new.keys():
        place = old[name][0]
        if place is not None and new[name][0] != place:
            reasons.append(f"{name} is not the argument no. {place + 1} any more")
    if before.startswith(" async") != after.startswith(" async"):
        reasons.append("it is to be awaited" if after.startswith(" async") else "it is not to be awaited any more")
    if reasons:
        return True, f"changed {path}: {', '.join(sorted(reasons))}: needs a deprecation{both}"
    return False, f"changed {path}, and calls that were right still are{both}"


def parameters_of(shape: str) -> dict[str, tuple[int | None, bool]] | None:
    """name -> position (None: by name only), has a default; None: this is no signature."""
    text = re.sub(r"<[^<>]*>", "...", shape.removeprefix(" async ").removeprefix(" class ").removeprefix(" static "))
    try:
        [function] = ast.parse(f"def f{text.strip()}: ...").body
    except SyntaxError:
        return None
    if not isinstance(function, ast.FunctionDef):
        return None
    arguments = function.args
    placed = arguments.posonlyargs + arguments.args
    first_default = len(placed) - len(arguments.defaults)
    found: dict[str, tuple[int | None, bool]] = {arg.arg: (at, at >= first_default) for at, arg in enumerate(placed)}
    found |= {
        arg.arg: (None, default is not None)
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    }
    rest = [arg.arg for arg in (arguments.vararg, arguments.kwarg) if arg]
    return found | {f"*{name}": (None, True) for name in rest}


def read_list(text: str) -> dict[str, str]:
    """The list, back from its lines: a path ends where its shape begins."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            path, _, shape = line.partition("\t")
            found[path] = shape
    return found


def write_list(found: Mapping[str, str]) -> str:
    return HEADER + "".join(f"{path}\t{shape}\n".rstrip("\t\n") + "\n" for path, shape in found.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.publicapi", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {LIST.name} anew")
    write = parser.parse_args().write
    found = public_api()
    told = differences(read_list(LIST.read_text()) if LIST.exists() else {}, found)
    for difference in told:
        print("BREAKING" if difference.breaking else "fine    ", difference.text)
    breaking = sum(difference.breaking for difference in told)
    print(f"{len(found)} lines, {len(told)} different, {breaking} of them breaking")
    if write:
        LIST.write_text(write_list(found))
        print(f"written to {LIST}" + ("; docs/releases.md says what a breaking change needs" if breaking else ""))
    return 0 if write or not told else 1


if __name__ == "__main__":
    sys.exit(main())
