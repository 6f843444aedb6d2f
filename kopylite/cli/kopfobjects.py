"""`kopylite migrate kopf-objects`: what kopf left in the objects of a cluster, and taking it off."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kopylite.cli.connecting import add_connection_options, connection_of, duration_option, played
from kopylite.cli.connecting import namespaces_option as namespaces
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import Forbidden, UsageError

if TYPE_CHECKING:
    from kopylite.doctor.reader import Reader
    from kopylite.migration.cleaning import Cleaned, Cleaning
    from kopylite.objects import Kind

EPILOG = f"""\
examples:
  kopylite migrate kopf-objects pages.example.com                what kopf left in all objects of a kind
  kopylite migrate kopf-objects pages.example.com pods -n shop --yes     take it off, in one namespace
  kopylite migrate kopf-objects pages.example.com --finalizer example.com/kopf --prefix kopf.example.com
                                                                 where its marks have other names

Order: stop the kopf operator; run the moved one until it has seen its objects, since the marks tell it what was done
for them; then this. It takes off kopf's finalizer, the annotations with its prefix, and its part of the status, nothing
else; each write is refused by the server if somebody has written to the object since it was looked at.

An object that is being deleted keeps kopf's finalizer: it may guard something outside that nobody has cleaned up. The
moved operator does that, when it has a cleanup. --release-deleting takes the finalizer off those, too.

exit codes:
    0  done, or shown
    1  a kopf operator still runs, or some objects could not be cleaned, or were left
    {Exit.USAGE.value}  {Exit.USAGE.__doc__}
    {Exit.KUBECONFIG.value}  {Exit.KUBECONFIG.__doc__}
    {Exit.UNREACHABLE.value}  the API server is not reached
"""

LEFT = 1
# Rows that are shown of one kind; the rest is counted.
MOST_ROWS = 200


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `kopf-objects` to the commands of `migrate`."""
    from kopylite.migration.traces import FINALIZER, PREFIX, STATUS_FIELD

    parser = commands.add_parser(
        "kopf-objects",
        help="take kopf's finalizer and annotations off objects",
        description="Show what kopf left in objects, and with --yes take it off.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("resource", metavar="RESOURCE", nargs="+", help="as kubectl takes it: pages.example.com")
    add("-n", "--namespace", metavar="NAME", type=namespaces, action="extend", default=[],
        help="only this namespace; repeatable. Default: all")  # fmt: skip
    add("--yes", action="store_true", help="do it; without, it is only shown")
    add("--release-deleting", action="store_true", help="also take the finalizer off objects that are being deleted")
    add("--finalizer", metavar="NAME", action="append", help=f"kopf's, by another name; default: {FINALIZER}")
    add("--prefix", metavar="DOMAIN", action="append", help=f"of kopf's annotations; default: {PREFIX}")
    add("--status-field", metavar="NAME", action="append", help=f"kopf's in the status; default: {STATUS_FIELD}")
    add("--peering", metavar="NAME", action="append", default=[],
        help="of the operator that was moved: kopf operators of other peerings may run. Default: none may")  # fmt: skip
    add("--timeout", metavar="TIME", type=duration_option, default=10.0, help="of each request; default 10s")
    add_connection_options(parser)


def run_command(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0, 1, or one of `Exit`."""
    return played("migrate", _clean(args), LEFT)


async def _clean(args: argparse.Namespace) -> int:
    from kopylite.client import HttpTransport
    from kopylite.doctor.lookup import find_kind
    from kopylite.doctor.reader import NotAllowed, Reader
    from kopylite.doctor.rights import rule
    from kopylite.migration.cleaning import Cleaning, CleaningState, totals
    from kopylite.migration.traces import Marks

    given = {"finalizers": args.finalizer, "prefixes": args.prefix, "status_fields": args.status_field}
    marks = Marks(**{name: tuple(value) for name, value in given.items() if value})
    async with HttpTransport(connection_of(args)) as transport:
        reader = Reader(transport, tuple(dict.fromkeys(args.namespace)), sys.maxsize, args.timeout)
        kinds = [await find_kind(reader, word) for word in args.resource]
        try:
            await _require_no_peers(reader, args.peering, writing=args.yes)
            cleaning = Cleaning(reader, marks, args.yes, args.release_deleting, args.timeout)
            found = [each for kind in dict.fromkeys(kinds) for each in await _of_kind(cleaning, kind)]
        except NotAllowed as error:
            raise UsageError(f"{error}: needs rule {rule(error.permissions)}") from None
    print(f"\n{totals(found)}" + ("" if args.yes or not found else ". Nothing was changed: add --yes to do it"))
    if found and not args.yes:
        print(
            "The moved operator learns from these marks what was done: let it see its objects before you take them off"
        )
    left = [each for each in found if each.state in (CleaningState.HELD, CleaningState.FAILED)]
    if any(each.state is CleaningState.HELD for each in left):
        print("Let the moved operator clean up what is being deleted; or, when that is done, say --release-deleting")
    return LEFT if left else Exit.STOPPED


async def _require_no_peers(reader: Reader, names: Sequence[str], *, writing: bool) -> None:
    """Refuse to write beside a kopf operator, which would put its marks back; without --yes say so.

    Raises:
        KopfStillRuns: one runs, or that may not be seen.
    """
    from kopylite.clock import SYSTEM_CLOCK
    from kopylite.doctor.reader import NotAllowed, Reader
    from kopylite.doctor.rights import rule
    from kopylite.migration.peers import KopfStillRuns, peers_of, refusal

    everywhere = Reader(reader.transport, (), sys.maxsize, 10.0)

    async def objects(kind: Kind) -> Sequence[Mapping[str, Any]]:
        return (await everywhere.all(kind)).items

    try:
        problem = (
            refusal(found, "--peering NAME") if (found := await peers_of(objects, SYSTEM_CLOCK.now(), names)) else ""
        )
    except (NotAllowed, Forbidden) as error:
        needs = f": needs rule {rule(error.permissions)}" if isinstance(error, NotAllowed) else ""
        problem = f"whether a kopf operator still runs may not be seen ({error}{needs})"
    if problem and writing:
        raise KopfStillRuns(problem)
    if problem:
        print(f"kopylite migrate: --yes would be refused: {problem}", file=sys.stderr)


async def _of_kind(cleaning: Cleaning, kind: Kind) -> list[Cleaned]:
    """Go through the objects of a kind, and show each that has marks, and how far it is."""
    found: list[Cleaned] = []
    seen = 0
    async for seen, each in cleaning.objects(kind):
        if each is not None:
            found.append(each)
            if len(found) <= MOST_ROWS or each.problem:
                _progress("")
                print(_row(each), flush=True)
        if seen % 500 == 0:
            _progress(f"{kind.kind}: {seen} looked at, {len(found)} with marks of kopf")
    _progress("")
    more = f", {len(found) - MOST_ROWS} of them not shown" if len(found) > MOST_ROWS else ""
    print(f"{kind.kind}: {seen} looked at, {len(found)} with marks of kopf{more}")
    return found


def _row(each: Cleaned) -> str:
    from kopylite.doctor.findings import shown

    marks = [*each.traces.finalizers, *each.traces.annotations, *(f"status.{name}" for name in each.traces.status)]
    listed = ", ".join(map(shown, marks[:4])) + (f" and {len(marks) - 4} more" if len(marks) > 4 else "")
    deleting = f" (being deleted since {shown(each.traces.deleting)})" if each.traces.deleting else ""
    problem = f": {shown(each.problem)}" if each.problem else ""
    return f"{each.kind.kind} {each.key}{deleting}: {each.state}{problem}\n    {listed}"


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
