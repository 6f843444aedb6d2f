"""`kopylite webhooks`: what the API server is told of an App's webhooks; and the options that `run` has for them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kopylite.cli.commands import COMMANDS
from kopylite.cli.environment import OptionGroup
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError

EPILOG = """\
examples:
  kopylite webhooks shop.operator:app -n shop | kubectl apply -f -     configurations and Service, in YAML
  kopylite webhooks shop.operator:app --url https://192.0.2.7:9443     the operator runs outside of the cluster

The caBundle is left out: `kopylite run --webhook-manage` fills it in, and so does cert-manager's cainjector by its
annotation. Webhooks leave out kube-system and the operator's own namespace, so that a cluster without the operator
can start it again.
"""

DEFAULT_ADDRESS = "127.0.0.1:9443"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `webhooks` and its options."""
    parser = subparsers.add_parser(
        "webhooks",
        help=COMMANDS["webhooks"],
        description="Print the webhook configurations of an App, and the Service that leads to it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="MODULE[:APP]", help="package.module:attribute or path/to/file.py:attribute")
    parser.add_argument("-n", "--namespace", default="default", metavar="NAME", help="where the operator runs")
    parser.add_argument("--url", default="", metavar="URL", help="https://HOST:PORT in place of a Service")


def run(args: argparse.Namespace, signals: StopSignals) -> int:
    """Run the command; the exit code is 0 or one of `Exit`."""
    from kopylite.cli.target import load_app
    from kopylite.objects.yamlwrite import to_yaml

    try:
        documents = documents_of(load_app(args.target), args.namespace, args.url)
    except UsageError as error:
        print(f"kopylite webhooks: {error}", file=sys.stderr)
        return Exit.USAGE
    print(to_yaml(documents), end="")
    return Exit.STOPPED


def documents_of(app: Any, namespace: str, url: str) -> list[dict[str, Any]]:
    """What is printed.

    Raises:
        UsageError: the App has no webhooks, or the URL is none.
    """
    from kopylite.webhooks.configurations import (
        WebhookPlace,
        check_url,
        configurations_of,
        endpoints_of,
        service_name,
        service_of,
    )

    if not app.hooks and not app.converters:
        raise UsageError(
            f"app {app.name!r} has no webhooks; declare one with @app.validator, @app.mutator or @app.converter"
        )
    place = WebhookPlace(namespace, service_name(app.name), check_url(url) if url else "")
    found = configurations_of(app.name, endpoints_of(app.hooks), place)
    return found if url else [*found, service_of(app.name, place, 9443)]


def add_webhook_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`, as a group."""
    group = parser.add_argument_group("webhooks")
    options = OptionGroup(group)
    options.add(
        "--webhook-address", parse=_address, default=DEFAULT_ADDRESS, metavar="ADDRESS",
        help="where webhooks are served, over TLS; 0.0.0.0:9443 in a pod; with --dev a free port",
    )  # fmt: skip
    options.add(
        "--webhook-certs", parse=str, default="auto", metavar="auto|DIR",
        help="the folder of tls.crt and tls.key, read again when they change; auto: made here, and shared by all "
        "replicas in the Secret APP-webhooks-certs (needs kopylite[webhooks])",
    )  # fmt: skip
    options.add(
        "--webhook-url", parse=_url, default="", metavar="URL",
        help="https://HOST[:PORT] by which the API server reaches this process, in place of the Service APP-webhooks",
    )  # fmt: skip
    options.add_switch(
        "--webhook-manage",
        help="tell the API server of the webhooks: apply their configurations, and the conversion of the CRDs",
    )


def webhook_options(args: argparse.Namespace) -> dict[str, Any]:
    """The manager's options that they stand for. With --dev, nothing is needed: the embedded server is told."""
    address, url = args.webhook_address, args.webhook_url
    if args.dev:
        address = "127.0.0.1:0" if address == DEFAULT_ADDRESS else address
        url = url or "https://127.0.0.1"
    return {
        "webhook_address": address,
        "webhook_certs": args.webhook_certs,
        "webhook_url": url,
        "webhook_manage": args.dev if args.webhook_manage is None else args.webhook_manage,
    }


def _address(text: str) -> str:
    from kopylite.serving import parse_address

    if parse_address(text) is None:
        raise ValueError("webhooks that are declared are served; there is no off")
    return text


def _url(text: str) -> str:
    from kopylite.webhooks.configurations import check_url

    return check_url(text) if text else ""
