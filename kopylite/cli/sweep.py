"""`kopylite sweep`: run an operator through crashes, lost events and API faults, and say which line is wrong."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

from kopylite.cli.commands import COMMANDS
from kopylite.cli.connecting import exit_code
from kopylite.cli.environment import positive_int, seconds
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.target import load_app
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.sweep.plans import FaultPlan
    from kopylite.sweep.report import Report

BAR_LENGTH = 24
FOUND = 1

EPILOG = """\
A scenario says what people do; after each step the cluster comes to rest, in virtual time:

  crds: [thing.crd.yaml]      # of kinds without a CustomResource class in the App; paths are relative to the file
  steps:
    - apply: {apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: default}, spec: {size: 1}}
    - patch: {apiVersion: example.com/v1, kind: Thing, name: a, namespace: default, patch: {spec: {size: 2}}}
    - delete: {apiVersion: example.com/v1, kind: Thing, name: a, namespace: default}

It is played three times without faults, then once for each plan: a fault at a place. What a plan leaves has to be what
the runs without faults leave.

examples:
  kopylite sweep shop.operator:app --scenario shop.yaml                 all faults, for a minute
  kopylite sweep hello.py --scenario hello.yaml --faults crash,response --budget 5m
  kopylite sweep hello.py --scenario hello.yaml --json found.json       for programs
  kopylite sweep hello.py --scenario hello.yaml --replay found.json     only the plans that found something
  kopylite sweep hello.py --scenario hello.yaml --real kind-dev         the same plans on a real API server, too

exit codes:
  0  nothing was found
  1  something was found, or is otherwise on the real server; or without any fault the operator fails, does
     nothing, or never comes to rest
  2  wrong command line or scenario
  3  the module cannot be found or imported
  4  the module has no such attribute, or it is no App
  5  the App declares something wrongly
  6  the kubeconfig of --real cannot be read or used
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sweep` and its options."""
    parser = subparsers.add_parser(
        "sweep",
        help=COMMANDS["sweep"],
        description="Run the App of a module through a scenario, with a fault at each place where one can be.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="MODULE[:APP]", help="package.module:attribute or path/to/file.py:attribute")
    parser.add_argument("--scenario", metavar="FILE", type=Path, required=True, help="what people do; see below")
    parser.add_argument("--faults", metavar="NAME,...", help=f"only these of {_fault_names()}; default: all")
    parser.add_argument("--budget", metavar="TIME", type=seconds, default=60.0, help="for the plans; default 60s")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all that is random; default 0")
    parser.add_argument(
        "--jobs", metavar="N", type=positive_int, help="processes at the same time; default: one a core"
    )
    parser.add_argument("--replay", metavar="FILE", type=Path, help="only the plans of a file that --json wrote")
    parser.add_argument(
        "--real",
        metavar="CONTEXT",
        help="play each plan on the API server of this kubeconfig context, too, and tell where it ends otherwise; only "
        "in namespaces that are made for it, and taken away at the end",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="which has the CONTEXT; default: as kubectl finds it")
    parser.add_argument("--real-remote", action="store_true", help="the server of CONTEXT may be on another machine")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the findings there, for programs")


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Sweep, tell, and return the exit code."""
    from kopylite.sweep.engine import Settings, sweep_source
    from kopylite.sweep.patience import FIRST, import_patience
    from kopylite.sweep.plans import FAULTS, parse_faults
    from kopylite.sweep.scenario import read_scenario
    from kopylite.sweep.source import source_of

    def asked() -> bool:
        signals.nothing_to_end = False  # from here on there is something to take away
        return bool(signals.asked)

    try:
        faults = parse_faults(args.faults) if args.faults is not None else tuple(FAULTS)
        plans = plans_in(args.replay) if args.replay else ()
        scenario = read_scenario(args.scenario)
        with import_patience(FIRST, lambda text: print(f"kopylite sweep: {args.target} {text}", file=sys.stderr)):
            app = load_app(args.target)
        source = source_of(app, args.target)
        jobs = args.jobs or os.cpu_count() or 1
        settings = Settings(faults, args.budget, args.seed, jobs, plans, SweepBar().show)
        if args.real:
            from kopylite.sweep.real import sweep_on_real

            report = sweep_on_real(
                source, scenario, settings, args.kubeconfig, args.real, remote=args.real_remote, stopped=asked
            )
            if signals.asked:
                print(
                    f"kopylite sweep: stopped by {signals.asked}; what it made on the server is gone", file=sys.stderr
                )
                return 128 + Signals[signals.asked]
        else:
            report = sweep_source(source, scenario, settings)
    except UsageError as error:
        print(f"kopylite sweep: {error}", file=sys.stderr)
        return exit_code(error)
    print(report)
    if args.json:
        return _write(report, args.json)
    return FOUND if report.findings or report.differences else Exit.STOPPED


def plans_in(path: Path) -> tuple[FaultPlan, ...]:
    """The plans of a report, or of one finding or plan, that `--json` wrote. Raises UsageError."""
    from kopylite.sweep.plans import FaultPlan

    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"--replay {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"--replay {path}: it is no JSON: {error}") from error
    found = content.get("findings", [content]) if isinstance(content, dict) else content
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"--replay {path}: no findings in it; name a file that `kopylite sweep --json FILE` wrote")
    plans = [FaultPlan.of_wire(each.get("plan", each)) for each in found]
    if not plans:
        raise UsageError(f"--replay {path}: it has no findings, so there is nothing to play again")
    return tuple(plans)


class SweepBar:
    """A bar at the end of a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._began = SYSTEM_CLOCK.monotonic()

    def show(self, done: int, total: int, found: int) -> None:
        if not self._shown:
            return
        full = BAR_LENGTH * done // max(total, 1)
        rate = 60 * done / max(SYSTEM_CLOCK.monotonic() - self._began, 0.001)
        text = f"[{'#' * full}{'.' * (BAR_LENGTH - full)}] {done}/{total} plans, {found} found, {rate:.0f} a minute"
        print(f"\r\x1b[K{text}" if done < total else "\r\x1b[K", end="", file=sys.stderr, flush=True)


def _write(report: Report, path: Path) -> int:
    try:
        path.write_text(json.dumps(report.to_wire(), indent=2) + "\n")
    except OSError as error:
        print(f"kopylite sweep: --json {path}: {error.strerror or error}", file=sys.stderr)
        return Exit.USAGE
    return FOUND if report.findings or report.differences else Exit.STOPPED


def _fault_names() -> str:
    return (
        "rerun, crash, response, effect, missed, meanwhile, recreate, writer, stale, leader, children, refused, "
        "outage, watch, specs, pairs"
    )
