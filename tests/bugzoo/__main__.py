"""python -m tests.bugzoo [NAME ...]: sweep the zoo; a table of what was found, in Markdown.

Each bug has to be found and no twin. The exit code is 1 if that is not so.
"""

from __future__ import annotations

import argparse
import sys

from tests.bugzoo.catalogue import ANIMALS, Animal
from tests.bugzoo.sweeping import swept


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bugzoo", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a bug")
    parser.add_argument("--seeds", type=int, default=1, help="so many, from 0 on")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    parser.add_argument("--quick", action="store_true", help="of each only the fault that shows the bug")
    parser.add_argument("--bugs", action="store_true", help="the bugs alone")
    parser.add_argument("--twins", action="store_true", help="the twins alone")
    options = parser.parse_args(arguments)
    print("| bug | flagged by | plans | seconds | twin |\n|---|---|---:|---:|---|", flush=True)
    wrong = 0
    for animal in ANIMALS:
        for seed in range(options.seeds if animal.name in (options.names or [animal.name]) else 0):
            wrong += not row(animal, seed, options)
    return 1 if wrong else 0


def row(animal: Animal, seed: int, options: argparse.Namespace) -> bool:
    """One line of the table; whether all is as it should be."""
    name = animal.name + (f" (seed {seed})" if seed else "")
    sentence, plans, seconds, well, twin = "", 0, 0.0, True, ""
    faults = [animal.fault] if options.quick else None
    if not options.twins:
        report = swept(animal, "bug", seed=seed, jobs=options.jobs, faults=faults)
        sentence = report.findings[0].sentence if report.findings else "NOT FOUND"
        plans, seconds, well = report.plans, report.seconds, bool(report.findings)
    if not options.bugs:
        report = swept(animal, "twin", seed=seed, jobs=options.jobs, faults=faults)
        found = [finding.sentence for finding in report.findings]
        twin = (
            f"FALSE ALARM: {'; '.join(found)}" if found else f"nothing in {report.plans} plans, {report.seconds:.0f} s"
        )
        well = well and not found
    print(f"| {name} | {sentence} | {plans} | {seconds:.0f} | {twin} |", flush=True)
    return well


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
