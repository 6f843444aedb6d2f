"""`kopylite finalizers`: which objects wait for whom, and taking a finalizer off that nobody else will."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kopylite.cli.commands import COMMANDS
from kopylite.cli.connecting import add_connection_options, connection_of, count_option, duration_option, played
from kopylite.cli.connecting import namespaces_option as namespaces
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.target import load_apps
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.doctor.cluster import Ward
    from kopylite.doctor.reader import Object, Reader
    from kopylite.objects import Kind

EPILOG = """\
examples:
  kopylite finalizers list shop.operator:app            objects of the App's kinds, and who is to remove what
  kopylite finalizers list -n shop --deleting           what keeps a namespace from its end, of whatever kind
  kopylite finalizers clear orders.shop.example.com o1 -n shop --finalizer shop.example.com/refund
                                                        what that would do; add --yes to do it

A finalizer stands for something outside of the object: an account, a disk, a DNS record. Its operator cleans that up,
and then removes it. Removed by hand, that stays behind, so: start the operator if you can. `clear` removes the one you
name, from just the object that it showed, never another's; it refuses while the operator runs.

exit codes: 0 done, or shown; 1 refused; others as of `kopylite doctor`
"""

REFUSED = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `finalizers` and its two commands."""
    form = argparse.RawDescriptionHelpFormatter
    parser = subparsers.add_parser(
        "finalizers",
        help=COMMANDS["finalizers"],
        description="Objects that carry finalizers.",
        epilog=EPILOG,
        formatter_class=form,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True)
    listing = commands.add_parser("list", help="list them", epilog=EPILOG, formatter_class=form, allow_abbrev=False)
    listing.add_argument("target", metavar="MODULE[:APP]", nargs="*", help="only the kinds of this App")
    listing.add_argument("--kind", metavar="RESOURCE", action="append", default=[], help="only this one; repeatable")
    listing.add_argument("-n", "--namespace", metavar="NAME", type=namespaces, action="extend", default=[],
                         help="only this namespace; repeatable")  # fmt: skip
    listing.add_argument("--deleting", action="store_true", help="only objects that are being deleted")
    listing.add_argument("--output", choices=("table", "json"), default="table", help="default: table")
    listing.add_argument(
        "--limit", metavar="N", type=count_option, default=1000, help="objects of a kind; default 1000"
    )
    clearing = commands.add_parser(
        "clear", help="remove one from an object", epilog=EPILOG, formatter_class=form, allow_abbrev=False
    )
    clearing.add_argument("resource", metavar="RESOURCE", help="as kubectl takes it: orders.shop.example.com")
    clearing.add_argument("name", metavar="NAME", help="of the object")
    clearing.add_argument("-n", "--namespace", metavar="NAME", type=namespaces, help="of the object")
    which = clearing.add_mutually_exclusive_group(required=True)
    which.add_argument("--finalizer", metavar="NAME", action="append", help="the one to remove; repeatable")
    which.add_argument("--all-finalizers", action="store_true", help="all that it has now")
    clearing.add_argument("--yes", action="store_true", help="do it; without, it is only shown")
    clearing.add_argument("--not-deleting", action="store_true", help="also if the object is not being deleted")
    clearing.add_argument("--force", action="store_true", help="also if its operator runs, or it is Kubernetes' own")
    for each in (listing, clearing):
        each.add_argument(
            "--timeout", metavar="TIME", type=duration_option, default=10.0, help="of each request; default 10s"
        )
        add_connection_options(each)


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0, 1 for a refusal, or one of `Exit`."""
    return played("finalizers", _list(args) if args.action == "list" else _clear(args), REFUSED)


async def _list(args: argparse.Namespace) -> int:
    from kopylite.client import HttpTransport
    from kopylite.clock import SYSTEM_CLOCK
    from kopylite.doctor.cluster import Ward, scan
    from kopylite.doctor.findings import Unchecked
    from kopylite.doctor.lookup import find_kind
    from kopylite.doctor.reader import Reader
    from kopylite.doctor.subject import kinds_of

    apps = load_apps(args.target)
    async with HttpTransport(connection_of(args)) as transport:
        reader = Reader(transport, tuple(args.namespace), args.limit, args.timeout)
        kinds = [*kinds_of(apps), *[await find_kind(reader, word) for word in args.kind]]
        ward = Ward(reader, SYSTEM_CLOCK.now(), kinds, only=bool(kinds))
        async for problem in scan(ward):
            if isinstance(problem, Unchecked):
                needs = f"; needs rule {problem.needs}" if problem.needs else ""
                print(f"kopylite finalizers: not checked: {problem.what}{needs}", file=sys.stderr)
    rows = list(_rows(ward, deleting=args.deleting))
    if args.output == "json":
        print(json.dumps({"kopyliteFinalizers": 1, "objects": rows}, indent=2))
        return Exit.STOPPED
    for row in rows:
        state = f"being deleted for {row['deletingFor']}" if row["deletingFor"] else "not being deleted"
        print(f"{row['object']}: {state}")
        for each in row["finalizers"]:
            print(f"    {each['name']}: of {each['owner']}")
    print(f"objects that carry finalizers: {len(rows)}")
    return Exit.STOPPED


def _rows(ward: Ward, *, deleting: bool) -> Iterable[dict[str, Any]]:
    from kopylite.doctor.deletions import managers, owner_of
    from kopylite.doctor.findings import shown
    from kopylite.doctor.wire import age, span, text, texts, title

    for kind, (_, listing) in ward.scanned.items():
        for obj in listing.items:
            finalizers, since = (
                texts(obj, "metadata", "finalizers"),
                age(text(obj, "metadata", "deletionTimestamp"), ward.now),
            )
            if not finalizers or (deleting and since is None):
                continue
            by = managers(obj)
            owners = [(each, *owner_of(each, by.get(each, ""), ward.alive)) for each in finalizers]
            yield {
                "object": shown(title(obj, kind.kind)),
                "deletingFor": "" if since is None else span(max(since, 0.0)),
                "finalizers": [{"name": shown(n), "owner": shown(who), "alive": lives} for n, who, lives in owners],
            }


async def _clear(args: argparse.Namespace) -> int:
    from kopylite.client import HttpTransport
    from kopylite.doctor.clearing import clear, consequences, refusals
    from kopylite.doctor.findings import shown
    from kopylite.doctor.lookup import find_kind
    from kopylite.doctor.reader import Reader
    from kopylite.doctor.wire import texts, title

    config = connection_of(args)
    async with HttpTransport(config) as transport:
        reader = Reader(transport, (), 1000, args.timeout)
        kind = await find_kind(reader, args.resource)
        where = (args.namespace[0] if args.namespace else config.namespace) if kind.namespaced else ""
        obj = await _found(reader, kind, args.name, where)
        if obj is None:
            print(f"{kind.kind} {f'{where}/' if where else ''}{args.name}: is not there, so it waits for nothing")
            return Exit.STOPPED
        present = texts(obj, "metadata", "finalizers")
        wanted = present if args.all_finalizers else [each for each in present if each in args.finalizer]
        if not wanted:
            print(f"{title(obj, kind.kind)}: has no such finalizer; it has {', '.join(map(shown, present)) or 'none'}")
            return Exit.STOPPED
        print(f"{title(obj, kind.kind)}, uid {obj['metadata'].get('uid')}:")
        for line in consequences(obj, wanted):
            print(f"  {line}")
        alive = None if args.force else await _alive(reader)
        refused = refusals(obj, wanted, alive, force=args.force, not_deleting=args.not_deleting)
        for line in refused:
            print(f"  REFUSED: {line}")
        if refused:
            return REFUSED
        resource = await reader.resource(kind)
        left = await clear(reader, resource, obj, wanted, dry_run=not args.yes, timeout=args.timeout)
        if not args.yes:
            print("  nothing was changed; the server would take it. Add --yes to do it")
        else:
            print(
                "  done: "
                + ("the object is gone" if left is None or not _stays(left) else "the finalizers are removed")
            )
    return Exit.STOPPED


def _stays(obj: Object) -> bool:
    from kopylite.doctor.wire import text, texts

    return bool(texts(obj, "metadata", "finalizers")) or not text(obj, "metadata", "deletionTimestamp")


async def _found(reader: Reader, kind: Kind, name: str, namespace: str) -> Object | None:
    from kopylite.doctor.reader import NotAllowed
    from kopylite.doctor.rights import rule

    try:
        return await reader.find(kind, name, namespace)
    except NotAllowed as error:
        raise UsageError(f"{error}: needs rule {rule(error.permissions)}") from None


async def _alive(reader: Reader) -> set[str] | None:
    """Who runs; None: that may not be seen."""
    from kopylite.clock import SYSTEM_CLOCK
    from kopylite.doctor.cluster import Ward, look_who_lives

    ward = Ward(reader, SYSTEM_CLOCK.now())
    return None if await look_who_lives(ward) else ward.alive
