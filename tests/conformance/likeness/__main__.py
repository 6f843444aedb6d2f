"""Play the corpus against a real control plane and the embedded server, and report.

    python -m tests.conformance.likeness [--only TEXT] [--kinds] [--known] [--texts]

Needs KUBEBUILDER_ASSETS. Ends with one line, `N of M equal (P %)`; exit code 1 when a difference is not listed in
known_differences.yaml, or when fewer than 99.5 % are equal.
"""

from __future__ import annotations

import argparse

import anyio

from kopylite.testing.envtest import find_assets
from tests.conformance.likeness.run import run, run_kinds

REQUIRED_PERCENT = 99.5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.likeness", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="only scripts whose section or name contains it")
    parser.add_argument("--known", action="store_true", help="also show the differences that are listed as known")
    parser.add_argument("--texts", action="store_true", help="also show where only texts for people differ")
    parser.add_argument("--kinds", action="store_true", help="requests made from the schemas of all built-in kinds")
    arguments = parser.parse_args()
    if find_assets() is None:
        parser.error("no kube-apiserver and etcd to compare with: let KUBEBUILDER_ASSETS name their folder")
    report = anyio.run(run_kinds if arguments.kinds else run, arguments.only)
    shown = [c for c in report.comparisons if not c.equal] if arguments.known else report.surprises()
    for comparison in shown:
        print(f"{comparison.script.section}: {comparison.id}: {comparison.step.method} {comparison.step.path}")
        print(comparison.difference())
    if arguments.texts:
        for comparison in report.comparisons:
            if comparison.equal and not comparison.same_text:
                print(f"text only: {comparison.id}")
                print(comparison.difference())
    print(report.table())
    if not arguments.only:
        for identifier in report.outdated():
            print(f"listed as different, but equal now: {identifier}")
    print(report.verdict())
    enough = arguments.kinds or report.percent >= REQUIRED_PERCENT
    return 0 if enough and not report.surprises() else 1


if __name__ == "__main__":
    raise SystemExit(main())
