"""Cluster: what every control plane offers that is started from Python, the embedded one or a real one (EnvTest)."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread

from kopylite.errors import AlreadyExists, ApiError, KindNotFound, KopyliteError, UsageError
from kopylite.objects import Kind, Unstructured
from kopylite.objects.yamlread import read_documents

if TYPE_CHECKING:
    from kopylite.app import App
    from kopylite.client import Client
    from kopylite.client.selecting import SelectorLike
    from kopylite.manager import Manager
    from kopylite.webhooks.registration import Registration

logger = logging.getLogger("kopylite.devcluster")

# What is left of a cluster that was killed need not answer.
WITHDRAW_SECONDS = 5.0

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False)

_SUFFIXES = (".yaml", ".yml", ".json")

CrdSource = str | Path | Mapping[str, Any] | type


class Cluster(ABC):
    """A control plane that lives as long as its `async with` block.

    Attributes:
        kubeconfig: the path of a kubeconfig with every right; valid while the cluster runs.
    """

    kubeconfig: Path

    @abstractmethod
    async def start(self) -> None:
        """Start it and wait until it answers."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop it and remove its files. May be called again."""

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @asynccontextmanager
    async def client(self, kubeconfig: str | Path | None = None) -> AsyncIterator[Client]:
        """A client for this cluster, with every right or as the user of `kubeconfig`."""
        from kopylite.client import connect

        async with connect(kubeconfig=str(kubeconfig or self.kubeconfig)) as client:
            yield client

    @asynccontextmanager
    async def running(
        self,
        app: App,
        *,
        namespaces: Sequence[str] = (),
        namespaces_labelled: SelectorLike = "",
        timeout: float = 10,
        kubeconfig: str | Path | None = None,
    ) -> AsyncIterator[Manager]:
        """Run an app here, in this event loop, with every right or as the user of `kubeconfig`, until the block ends.

        Entered when all that it watches is in its caches; its CRDs have to be installed before. Its webhooks are called
        as long as the block lasts.

        Args:
            app: has the reconcilers.
            namespaces: to which it is limited, names or globs; none: all.
            namespaces_labelled: to which it is limited instead: those with these labels.
            timeout: seconds for its start, and for reconciles that still run at the end.

        Raises:
            TimeoutError: its caches were not complete in time; it says which, and which CRD or right is missing.
            KopyliteError: it could not run, or stopped running.
        """
        from kopylite.client import load_config
        from kopylite.manager import Manager, Options
        from kopylite.webhooks.registration import Registration

        options = Options(
            namespaces=tuple(namespaces),
            namespaces_labelled=namespaces_labelled,
            metrics_address="off",
            health_address="off",
            grace_period=timeout,
            connect_timeout=timeout * 0.8,  # so that it says itself why it could not connect
            webhook_address="127.0.0.1:0",
            webhook_url="https://127.0.0.1",  # also a real API server runs on this machine
            webhook_manage=True,
            leader_election=False,  # nobody else runs it here
        )
        manager = Manager(app, load_config(str(kubeconfig or self.kubeconfig)), options)
        failures: list[Exception] = []  # raised below, as themselves: the task group would wrap them
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_run, manager, failures, tasks.cancel_scope)
                try:
                    with anyio.move_on_after(timeout) as limit:
                        await manager.wait_synced()
                    if limit.cancelled_caught:
                        why = "\n".join(f"- {reason}" for reason in manager.waiting())
                        raise TimeoutError(f"app {app.name!r} was not in sync after {timeout:g} s:\n{why}")
                    yield manager
                except Exception as error:
                    failures.append(error)
                finally:
                    await self._forget(app, Registration.withdraw)
                manager.stop()
        finally:
            await self._forget(app, Registration.withdraw_conversion)
        if failures:
            raise failures[0]

    async def _forget(self, app: App, withdraw: Callable[[Registration], Awaitable[None]]) -> None:
        """Have no webhook of an app called any more; also when the test was cancelled, or the cluster is gone."""
        from kopylite.webhooks.service import registration_of

        if not app.hooks and not app.converters:
            return
        with anyio.move_on_after(WITHDRAW_SECONDS, shield=True):
            try:
                async with self.client() as client:
                    await withdraw(registration_of(app, client))
            except (KopyliteError, OSError) as error:
                logger.warning("the webhooks of app %s stay configured: %s", app.name, error)

    async def install_crds(self, *sources: CrdSource, timeout: float = 10) -> list[str]:
        """Create or update CRDs and wait until each is Established and served.

        Args:
            sources: YAML or JSON files, folders of them (not recursive), CRD objects, CustomResource classes (of each
                kind all versions). None is modified.
            timeout: seconds for all of them.

        Returns:
            The names of the CRDs.

        Raises:
            UsageError: a source holds no CRD, or is no YAML; the server refuses one of a file.
            TimeoutError: a CRD was not served in time.
        """
        return await install_crds(self.kubeconfig, *sources, timeout=timeout)


async def _run(manager: Manager, failures: list[Exception], scope: anyio.CancelScope) -> None:
    try:
        await manager.run()
    except Exception as error:
        failures.append(error)
        scope.cancel()


async def install_crds(kubeconfig: Path, *sources: CrdSource, timeout: float = 10) -> list[str]:
    """As `Cluster.install_crds`, for the cluster of a kubeconfig."""
    from kopylite.client import connect
    from kopylite.crds.crd import crds_of

    # The versions of a kind are one CRD.
    crds = [Unstructured(crd) for crd in crds_of(source for source in sources if isinstance(source, type))]
    files: dict[str, str] = {}
    for source in sources:
        if isinstance(source, type):
            continue
        if isinstance(source, Mapping):
            crds.append(Unstructured(source))
        else:  # in a thread: bundles of CRDs are megabytes of YAML
            found = await anyio.to_thread.run_sync(crds_in, Path(source))
            crds += found
            files |= {crd.name: str(source) for crd in found}
    async with connect(kubeconfig=str(kubeconfig)) as client:
        for crd in crds:
            try:
                await _put(client, crd)
            except ApiError as error:
                if crd.name in files:
                    raise UsageError(f"{files[crd.name]}: {crd.kind} {crd.name}: {error}") from error
                raise
        with anyio.fail_after(timeout):
            for crd in crds:
                await _wait_served(client, crd)
    return [crd.name for crd in crds]


async def _put(client: Client, crd: Unstructured) -> None:
    try:
        await client.create(crd)
    except AlreadyExists:
        stored = await client.live.get(CRD, crd.name)
        metadata = {**crd.metadata, "resourceVersion": stored.resource_version}
        await client.update(Unstructured({**crd, "metadata": metadata}))


async def _wait_served(client: Client, crd: Unstructured) -> None:
    """Until the CRD is Established and a list of each served version works; a poll, limited by the caller."""
    while True:
        stored = await client.live.get(CRD, crd.name)
        conditions = {c["type"]: c["status"] for c in stored.get("status", {}).get("conditions") or ()}
        if conditions.get("Established") == "True" and await _lists(client, crd):
            return
        await anyio.sleep(0.05)


async def _lists(client: Client, crd: Unstructured) -> bool:
    spec = crd["spec"]
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    for version in spec["versions"]:
        if version["served"]:
            kind = Kind(f"{spec['group']}/{version['name']}", names["kind"], names["plural"], namespaced)
            try:
                await client.live.list(kind)
            except KindNotFound:
                return False
    return True


def crds_in(path: Path) -> list[Unstructured]:
    """The CRDs in a YAML or JSON file, or in the files of a folder (not recursive); of a List, those in it.

    Raises:
        UsageError: it cannot be read, is no YAML (with its line), or has no CRD in it.
    """
    try:
        files = sorted(p for p in path.iterdir() if p.suffix in _SUFFIXES) if path.is_dir() else [path]
        documents = [document for file in files for document in read_documents(file.read_bytes(), str(file))]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    objects = [document for document in documents if isinstance(document, dict)]
    lists = [obj["items"] for obj in objects if isinstance(obj.get("items"), list)]
    objects += [item for items in lists for item in items if isinstance(item, dict)]
    found = [Unstructured(obj) for obj in objects if obj.get("kind") == CRD.kind]
    if not found:
        raise UsageError(f"{path}: no CustomResourceDefinition in it; name a YAML or JSON file, or a folder, with some")
    return found
