"""`kopylite doctor`: what is wrong with a cluster and with an operator in it, and what mends it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kopylite.cli.commands import COMMANDS
from kopylite.cli.connecting import (
    add_connection_options,
    connection_of,
    count_option,
    duration_option,
    exit_code,
    namespaces_option,
    option,
)
from kopylite.cli.environment import globs, selector
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.target import load_apps
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.client import ClientConfig
    from kopylite.doctor import Diagnosis
    from kopylite.doctor.subject import Subject
    from kopylite.manager import Options

EPILOG = f"""\
examples:
  kopylite doctor                                  the way to the cluster, and the cluster
  kopylite doctor shop.operator:app                the App too: its CRDs, rights, Leases, objects, its Deployment
  kopylite doctor shop.operator:app --as-service-account shop/shop
                                                   may the deployed operator do what it needs? For an admin to ask
  kopylite doctor shop.operator:app --rbac-from recording.json -n shop
                                                   with the calls that its tests made, and in one namespace
  kopylite doctor --output json | jq .findings     in CI

It writes nothing to the cluster; each finding comes with commands or YAML that mend it. What these credentials may not
read is told as "not checked", with the rule that is missing. All findings: docs/how-to/operate.md.

exit codes:
    0  nothing found, or warnings only
    1  an error was found; with --strict, also a warning, or what could not be checked
    {Exit.USAGE.value}  {Exit.USAGE.__doc__}
    3, 4, 5  the target: see `kopylite run --help`
    {Exit.KUBECONFIG.value}  {Exit.KUBECONFIG.__doc__}
    {Exit.UNREACHABLE.value}  the API server is not reached; the finding says at which step
"""

FOUND = 1
_ACCOUNT = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `doctor` and its options."""
    parser = subparsers.add_parser(
        "doctor",
        help=COMMANDS["doctor"],
        description="Look at the way to the API server, at the cluster, and at an operator in it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("target", metavar="MODULE[:APP]", nargs="*", help="as `kopylite run` takes it; none: the cluster alone")
    add("-n", "--namespace", metavar="NAME", type=option(globs), action="extend", default=[],
        help="look into this namespace only, as an operator with the same option; repeatable. With a glob, 'team-*', "
        "look into all, and ask for the rights of an operator that follows it")  # fmt: skip
    add("--namespaces-labelled", metavar="SELECTOR", type=option(selector), default="",
        help="ask for the rights of an operator with the same option")  # fmt: skip
    add("--as-service-account", metavar="NAMESPACE/NAME", type=_account,
        help="ask for the rights of the deployed operator, instead of your own")  # fmt: skip
    add("--operator-namespace", metavar="NAME", type=namespaces_option,
        help="where the operator and its Leases are; default: that of --as-service-account")  # fmt: skip
    add("--rbac-from", metavar="FILE", type=Path, action="append", default=[],
        help="a recording of `pytest --kopylite-rbac FILE`: the rights that it uses, not the usual")  # fmt: skip
    add("--lease-name", metavar="NAME", default="", help="of the operator's Lease, if it has that option")
    add("--leader-elect", action="store_true", default=None, help="the operator runs with that option")
    add("--output", choices=("table", "json"), default="table", help="default: table")
    add("--strict", action="store_true", help="end with code 1 for warnings, and for what could not be checked, too")
    add(
        "--limit",
        metavar="N",
        type=count_option,
        default=1000,
        help="objects of a kind that are looked at; default 1000",
    )
    add("--timeout", metavar="TIME", type=duration_option, default=10.0,
        help="of each request; all together take at most 30 times as long; default 10s")  # fmt: skip
    add_connection_options(parser)


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0, 1 for findings, or one of `Exit`."""
    from kopylite.doctor import Patient, as_json, as_table, examine

    logging.getLogger("kopylite").setLevel(logging.ERROR)  # what there is to say is in the report
    try:
        config = connection_of(args)
        subject = _subject(args, config)
        # Nobody knows here which namespaces an operator follows: it may be all of them.
        names = () if _scope(args).scope.live else _distinct(args.namespace)
        patient = Patient(config, subject, names, args.limit, args.timeout, _progress)
        diagnosis = asyncio.run(examine(patient))
    except UsageError as error:
        _clear_line()
        print(f"kopylite doctor: {error}", file=sys.stderr)
        return exit_code(error)
    _clear_line()
    width = shutil.get_terminal_size((100, 24)).columns
    print(as_json(diagnosis) if args.output == "json" else as_table(diagnosis, width).rstrip("\n"))
    return _verdict(diagnosis, strict=args.strict)


def _subject(args: argparse.Namespace, config: ClientConfig) -> Subject | None:
    if not args.target:
        if args.as_service_account or args.rbac_from:
            raise UsageError("--as-service-account and --rbac-from are about an App: name it, as in MODULE:APP")
        return None
    from kopylite.deploy import Recording
    from kopylite.devcluster.appcrds import crds_of_app
    from kopylite.doctor.access import service_account
    from kopylite.doctor.examination import shown_by
    from kopylite.doctor.subject import Subject
    from kopylite.manager import check_apps

    apps = load_apps(args.target)
    check_apps(apps)
    recording = Recording()
    for path in args.rbac_from:
        recording.merge(Recording.read(path))
    me = service_account(shown_by(config).authorization)
    account = args.as_service_account or ""
    home = args.operator_namespace[0] if args.operator_namespace else account.partition("/")[0]
    crds = {crd["metadata"]["name"]: crd for app in apps for crd in crds_of_app(app)}
    return Subject(
        apps,
        list(crds.values()),
        " ".join(args.target),
        replace(_scope(args), lease_name=args.lease_name, leader_election=args.leader_elect),
        home or (me.split(":")[2] if me else ""),
        f"system:serviceaccount:{account.replace('/', ':')}" if account else "",
        me,
        recording if args.rbac_from else None,
    )


def _scope(args: argparse.Namespace) -> Options:
    """The namespaces that are asked for, as `kopylite run` takes them."""
    from kopylite.manager import Options

    return Options(namespaces=_distinct(args.namespace), namespaces_labelled=args.namespaces_labelled)


def _verdict(diagnosis: Diagnosis, *, strict: bool) -> int:
    from kopylite.doctor import FindingSeverity

    if diagnosis.unreachable:
        return Exit.KUBECONFIG if diagnosis.unreachable == "auth" else Exit.UNREACHABLE
    bad = diagnosis.count(FindingSeverity.ERROR) or (strict and (diagnosis.findings or diagnosis.unchecked))
    return FOUND if bad else Exit.STOPPED


def _progress(name: str, number: int, count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[Kchecking {number} of {count}: {name}", end="", file=sys.stderr, flush=True)


def _clear_line() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _distinct(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAMESPACE/NAME of a ServiceAccount")
    return text
