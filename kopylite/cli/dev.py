"""The cluster of `kopylite run --dev`: an embedded API server with workloads, in a thread of this process."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopylite.cli.kubeconfigs import is_replaceable
from kopylite.cli.streams import announce
from kopylite.errors import UsageError
from kopylite.wholefiles import write_private

if TYPE_CHECKING:
    from kopylite.app import App

KUBECONFIG = Path("kopylite.kubeconfig")


@contextmanager
def dev_cluster(
    apps: Sequence[App], *, data: Path | None, port: int, simulate: bool, crds: Sequence[Path] = ()
) -> Iterator[Path]:
    """A cluster with CRDs installed, the Apps' and those of files; yields its kubeconfig, which goes with it.

    It runs in a thread, so that kubectl is answered also while the operator's code blocks its own event loop.

    Raises:
        UsageError: the address, a file or the kubeconfig cannot be had, or a package is missing.
    """
    from anyio.from_thread import start_blocking_portal

    from kopylite.devcluster.appcrds import crds_of_app
    from kopylite.devcluster.cluster import crds_in
    from kopylite.devcluster.embedded import EmbeddedCluster

    own = list({crd["metadata"]["name"]: crd for app in apps for crd in crds_of_app(app, foreign=True)}.values())
    others = [crd for path in crds for crd in crds_in(path)]  # a bad one is told before anything is served
    cluster = EmbeddedCluster(crds=[*own, *crds], simulator=simulate, data=data, port=port)
    kubeconfig = KUBECONFIG.absolute()
    with start_blocking_portal() as portal:
        thread = portal.call(threading.get_ident)
        with _quiet(thread), portal.wrap_async_context_manager(cluster), _published(cluster.kubeconfig, kubeconfig):
            _introduce(cluster.url, kubeconfig, [*own, *others])
            yield kubeconfig


def _introduce(url: str, kubeconfig: Path, crds: list[dict[str, Any]]) -> None:
    """Say where it is, and one thing to try."""
    announce(
        f"development cluster at {url}; it ends with this process. In another terminal:\n",
        f"    export KUBECONFIG={kubeconfig}",
        f"    {try_line(crds)}\n",
    )


def try_line(crds: list[dict[str, Any]]) -> str:
    """A kubectl command that creates an object of the first of these kinds; without any, one that looks around."""
    if not crds:
        return "kubectl get all -A"
    return f"kubectl create -f - <<< '{json.dumps(example_of(crds[0]))}'"


def example_of(crd: dict[str, Any]) -> dict[str, Any]:
    """A small object of a CRD: what its schema requires, with values that make no sense but fit most schemas."""
    spec = crd["spec"]
    version = next(version for version in spec["versions"] if version["storage"])
    example = {"apiVersion": f"{spec['group']}/{version['name']}", "kind": spec["names"]["kind"]}
    schema = version["schema"]["openAPIV3Schema"]
    parts = {name: part for name, part in schema["properties"].items() if name in schema.get("required", ())}
    return {**example, "metadata": {"name": "demo"}, **{name: _value(name, part) for name, part in parts.items()}}


def _value(name: str, schema: dict[str, Any]) -> Any:
    if "default" in schema or schema.get("enum"):
        return schema.get("default", (schema.get("enum") or [None])[0])
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            return {key: _value(key, part) for key, part in schema.get("properties", {}).items() if key in required}
        case "array":
            return [_value(name, schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return name


@contextmanager
def _published(source: Path, target: Path) -> Iterator[None]:
    """A copy of the kubeconfig where it is easy to name, as long as it is of use."""
    text = source.read_text()
    if not is_replaceable(target, "kopylite"):
        raise UsageError(f"{target} holds more than a cluster of --dev, and would be overwritten: move it away")
    write_private(target, text)
    try:
        yield
    finally:
        # A second `--dev` in this folder has put its own there, or somebody has taken it away.
        with suppress(OSError):
            if target.read_bytes() == text.encode():
                target.unlink()


@contextmanager
def _quiet(thread: int) -> Iterator[None]:
    """Leave what the cluster's own controllers tell out of the operator's log, but not what goes wrong."""

    def matters(record: logging.LogRecord) -> bool:
        return record.thread != thread or record.levelno >= logging.WARNING

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(matters)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(matters)
