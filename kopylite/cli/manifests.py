"""`kopylite manifests`: all that brings an operator into a cluster, with the rights that it needs and no others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kopylite.cli.commands import COMMANDS
from kopylite.cli.connecting import exit_code, option
from kopylite.cli.environment import count, globs, names, positive_int, selector
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.cli.target import load_apps
from kopylite.devcluster.appcrds import crds_of_app
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.app import App
    from kopylite.deploy.needs import Needs
    from kopylite.deploy.recording import Recording

EPILOG = """\
examples:
  kopylite manifests shop.operator:app --image registry.example.com/shop:1 --output-dir deploy
  kubectl apply -f deploy                               bring it into the cluster
  pytest --kopylite-rbac recording.json                 record what the operator does while its tests run, and
  kopylite manifests shop.operator:app --image registry.example.com/shop:1 --rbac-from recording.json \\
      --output-dir deploy                               allow that, and no more
  kopylite manifests ... --check deploy                 in CI: does the folder fit the code? Names each rule

Without --rbac-from, what is read is taken from the declarations, and what is written is assumed: patches of the own
kind and its status, and every write of the kinds in owns=. --check writes nothing; its code is 1 for a difference.
--helm writes a chart in place of the manifests; but for the Namespace it renders to the same objects.
Files that this command did not make, or that were edited since, are never replaced without --force.
"""

DIFFERENT = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `manifests` and its options."""
    parser = subparsers.add_parser(
        "manifests",
        help=COMMANDS["manifests"],
        description="Print or write CRDs, RBAC, Deployment and all that belongs to it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("target", metavar="MODULE[:APP]", nargs="+", help="as `kopylite run` takes it, in the image")
    add("--image", required=True, metavar="IMAGE", help="of the container")
    add("--namespace", metavar="NAME", type=option(names), help="where the operator lives; default: the App's name")
    add("--watch-namespace", metavar="NAME", type=option(globs), action="extend", default=[],
        help="limit it to this namespace, with Roles instead of a ClusterRole; repeatable. A glob, 'team-*', is "
        "followed, and needs a ClusterRole")  # fmt: skip
    add("--watch-namespaces-labelled", metavar="SELECTOR", type=option(selector), default="",
        help="instead: limit it to namespaces with these labels, as in tier=prod; needs a ClusterRole")  # fmt: skip
    add("--replicas", metavar="N", type=option(positive_int),
        help="without shards, more than one switch leader election on; default: 2 with either, else 1")  # fmt: skip
    add(
        "--shards",
        metavar="N",
        type=option(count),
        help="let all replicas work, each at its part; default: as the App says",
    )
    add("--rbac-from", metavar="FILE", type=Path, action="append", default=[],
        help="a recording of `pytest --kopylite-rbac FILE`; repeatable")  # fmt: skip
    add("--service-monitor", action="store_true", help="add a ServiceMonitor for the Prometheus operator")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--kustomize", action="store_true", help="add a kustomization.yaml")
    form.add_argument("--helm", action="store_true", help="write a Helm chart; its values have the above as defaults")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--output-dir", metavar="DIR", type=Path, help="write files, instead of printing them")
    where.add_argument("--check", metavar="DIR", type=Path, help="compare with the files of a folder")
    add("--force", action="store_true", help="of --output-dir: replace files that are not this command's too")


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0, 1 for a difference under --check, or one of `Exit`."""
    from kopylite.deploy.drift import differences
    from kopylite.deploy.folder import made_files, write_files

    try:
        if args.helm and not args.output_dir and not args.check:
            raise UsageError("a chart is a folder: name it by --output-dir, or by --check")
        files = _files(load_apps(args.target), args)
        if args.check:
            found = list(differences(made_files(args.check), files))
            for text in found:
                print(f"{args.check}/{text}")
            return DIFFERENT if found else Exit.STOPPED
        if args.output_dir:
            for path in write_files(args.output_dir, files, force=args.force):
                print(path)
            return Exit.STOPPED
    except UsageError as error:
        print(f"kopylite manifests: {error}", file=sys.stderr)
        return exit_code(error)
    print("".join(files[name].partition("\n")[2] for name in sorted(files)), end="")
    return Exit.STOPPED


def _files(apps: list[App], args: argparse.Namespace) -> dict[str, str]:
    from kopylite.deploy import needs_of
    from kopylite.deploy.chart import NAMESPACE, chart
    from kopylite.deploy.folder import marked
    from kopylite.deploy.hooks import converted, webhook_service
    from kopylite.deploy.manifests import Shipment, kustomization, manifests
    from kopylite.deploy.recording import Recording
    from kopylite.manager import Options, check_apps
    from kopylite.manager.elections import elects, shards_of

    check_apps(apps)
    namespace = args.namespace[0] if args.namespace else apps[0].name
    home = NAMESPACE if args.helm else namespace
    watched = tuple(dict.fromkeys(home if name == namespace else name for name in args.watch_namespace))
    webhooks = webhook_service(apps)
    options = Options(
        namespaces=watched, namespaces_labelled=args.watch_namespaces_labelled, shards=args.shards,
        webhook_manage=bool(webhooks),
    )  # fmt: skip
    elected = any(elects(app, options) for app in apps)
    replicas = args.replicas or (2 if elected else 1)
    elect = replicas > 1 and any(not shards_of(app, options) for app in apps)
    options = replace(options, leader_election=elect or None)
    recording = Recording()
    for path in args.rbac_from:
        recording.merge(Recording.read(path))
    needs = needs_of(apps, options, home, recording)
    _note(needs, recording, [] if args.check else apps)
    deployment = Shipment(
        name=apps[0].name, targets=tuple(args.target), image=args.image, namespace=home, watched=watched,
        labelled=args.watch_namespaces_labelled, replicas=replicas,
        elect=elect or any(app.leader_election for app in apps), shards=args.shards,
        several=elect or elected, webhooks=webhooks,
    )  # fmt: skip
    crds = {crd["metadata"]["name"]: crd for app in apps for crd in crds_of_app(app)}
    shipped = converted(list(crds.values()), apps, namespace)
    make = chart if args.helm else manifests
    files = make(deployment, needs, shipped, monitor=args.service_monitor)
    if args.kustomize:
        files["kustomization.yaml"] = kustomization(deployment, files)
    return {name: marked(name, text) for name, text in files.items()}


def _note(needs: Needs, recording: Recording, shipped: Sequence[App]) -> None:
    """Say what the rights leave open."""
    notes = [
        f"{app.name} was seen to create {', '.join(made)}, and never to change them, so it will not be allowed to; "
        "if it does, let a test do that, and record it"
        for app in shipped
        if (made := recording.never_changed(app.name))
    ]
    if needs.assumed:
        notes.append(
            f"writes of {', '.join(needs.assumed)} are assumed, for none were recorded; `pytest --kopylite-rbac FILE` "
            "records them for --rbac-from FILE"
        )
    for note in notes:
        print(f"kopylite manifests: note: {note}", file=sys.stderr)
