"""Report: what was done with each construct of kopf, and what a person has to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kopylite.boundary import printable


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """About one construct.

    Args:
        file, line: where it stood.
        construct: of kopf, as "@kopf.on.field".
        done: what became of it.
        todo: what a person has to do; "": nothing.
    """

    file: str
    line: int
    construct: str
    done: str
    todo: str = ""


def rendered(remarks: Sequence[Remark]) -> str:
    """For people, and for grep: what needs a person first."""
    needing = sorted({each for each in remarks if each.todo})
    others = sorted({each for each in remarks if not each.todo})
    lines = [f"{len(needing)} {'place needs' if len(needing) == 1 else 'places need'} a person:" if needing else
             "Nothing needs a person."]  # fmt: skip
    for each in needing:
        lines += [_head(each), f"    done: {each.done}", f"    to do: {each.todo}"]
    if others:
        lines += ["", "Done:", *(f"{_head(each)}: {each.done}" for each in others)]
    return "\n".join(lines) + "\n"


def _head(each: Remark) -> str:
    return printable(f"{each.file}:{each.line}: {each.construct}", 500)
