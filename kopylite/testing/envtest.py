"""EnvTest: a real kube-apiserver and etcd for the length of a test.

The binaries come from a folder, by the ecosystem's convention: `KUBEBUILDER_ASSETS`, else
/usr/local/kubebuilder/bin; single ones can be named by TEST_ASSET_KUBE_APISERVER, TEST_ASSET_ETCD and
TEST_ASSET_KUBE_CONTROLLER_MANAGER. `setup-envtest use -p path` fetches such a folder.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kopylite.apiserver.access.kubeconfig import certificate_user, kubeconfig
from kopylite.devcluster.cluster import Cluster, CrdSource
from kopylite.errors import UsageError
from kopylite.serving.authority import CertificateAuthority, signing_key
from kopylite.testing.process import ServerFailed, ServerProcess
from kopylite.wholefiles import write_private

DEFAULT_ASSETS = "/usr/local/kubebuilder/bin"
# Another process may take a free port between its choice and its use; envtest of the Go world tries 5 times too.
_START_ATTEMPTS = 5


def find_assets() -> Path | None:
    """The folder with kube-apiserver and etcd, or None when this machine has none."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS)
    return folder if all(_binary(folder, name).exists() for name in ("etcd", "kube-apiserver")) else None


class EnvTest(Cluster):
    """A real control plane on loopback: etcd and kube-apiserver, with RBAC on.

    Without controllers nothing collects garbage, ends namespaces or runs pods. Everything is stopped and removed
    at the end, also when the test process crashes.

    Args:
        assets: the folder of the binaries; None: see the module's text.
        controllers: also run kube-controller-manager (garbage collector, namespaces, workloads); or only those of
            its controllers that are named here.
        crds: installed, and waited for, at start; see `install_crds`.
        flags: more kube-apiserver flags, e.g. {"max-requests-inflight": "10"}; None leaves a default flag out.
        start_timeout: seconds for each server.
        stop_timeout: seconds between SIGTERM and SIGKILL.

    Raises:
        UsageError: a binary is missing (at start).
        ServerFailed: a server did not start (at start).
    """

    def __init__(
        self,
        *,
        assets: str | Path | None = None,
        controllers: bool | Collection[str] = False,
        crds: Sequence[CrdSource] = (),
        flags: Mapping[str, str | None] | None = None,
        start_timeout: float = 60,
        stop_timeout: float = 20,
    ) -> None:
        self._assets = Path(assets) if assets else find_assets()
        self._controllers = controllers
        self._crds = tuple(crds)
        self._flags = dict(flags or {})
        self._start_timeout = start_timeout
        self._stop_timeout = stop_timeout
        self._servers: dict[str, ServerProcess] = {}
        self._files = ExitStack()
        self._authority: CertificateAuthority | None = None
        self.home = Path()
        self.port = 0

    @property
    def url(self) -> str:
        """https://127.0.0.1:port of the API server; stays the same over its restarts."""
        return f"https://127.0.0.1:{self.port}"

    async def start(self) -> None:
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                await self._start_once()
                break
            except ServerFailed as error:
                await self.stop()
                if attempt == _START_ATTEMPTS or "address already in use" not in str(error):
                    raise

    async def stop(self) -> None:
        for server in reversed(self._servers.values()):
            await server.stop()
        self._servers.clear()
        self._files.close()

    async def kill_api_server(self) -> None:
        """SIGKILL to the API server: connections break, nothing answers until `start_api_server`."""
        server = self._servers["kube-apiserver"]
        os.kill(server.pid, signal.SIGKILL)
        await server.stop()

    async def start_api_server(self) -> None:
        """Start the API server again, on the same port and data."""
        await self._start_api_server()

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for `user`, who may do nothing until RBAC says so."""
        assert self._authority is not None, "start the control plane first"
        path = self.home / f"kubeconfig-{user.replace('/', '-').replace(':', '-')}"
        client = certificate_user(self._authority.client(user, groups))
        write_private(path, kubeconfig(self.url, client, self._authority.certificate))
        return path

    async def _start_once(self) -> None:
        self.home = Path(self._files.enter_context(tempfile.TemporaryDirectory(prefix="kopylite-envtest-")))
        self._authority = CertificateAuthority("kopylite envtest")
        self.port = _free_port()
        self._write_certificates(self._authority)
        await self._start_etcd()
        await self._start_api_server()
        self.kubeconfig = self.home / "kubeconfig"
        admin = certificate_user(self._authority.client("kopylite-admin", ["system:masters"]))
        write_private(self.kubeconfig, kubeconfig(self.url, admin, self._authority.certificate))
        if self._crds:
            await self.install_crds(*self._crds)
        if self._controllers:
            # After the CRDs: the garbage collector looks for new kinds only every 30 seconds.
            await self._start_controller_manager()

    def _write_certificates(self, authority: CertificateAuthority) -> None:
        server = authority.server(["127.0.0.1", "localhost", "kubernetes.default.svc"])
        files = {
            "ca.crt": authority.certificate,
            "server.crt": server.certificate,
            "server.key": server.key,
            "service-account.key": signing_key(),
        }
        for name, content in files.items():
            write_private(self.home / name, content)

    async def _start_etcd(self) -> None:
        client, peer = _free_port(), _free_port()
        self._etcd = f"http://127.0.0.1:{client}"
        server = await self._run(
            "etcd",
            {
                "data-dir": str(self.home / "etcd"),
                "unsafe-no-fsync": "true",
                "listen-client-urls": self._etcd,
                "advertise-client-urls": self._etcd,
                "listen-peer-urls": f"http://127.0.0.1:{peer}",
                "initial-advertise-peer-urls": f"http://127.0.0.1:{peer}",
                "initial-cluster": f"default=http://127.0.0.1:{peer}",
            },
        )
        await server.wait_healthy(client, "/health", context=None, timeout=self._start_timeout)

    async def _start_api_server(self) -> None:
        flags: dict[str, str | None] = {
            "etcd-servers": self._etcd,
            "secure-port": str(self.port),
            "bind-address": "127.0.0.1",
            "cert-dir": str(self.home / "generated"),
            "tls-cert-file": str(self.home / "server.crt"),
            "tls-private-key-file": str(self.home / "server.key"),
            "client-ca-file": str(self.home / "ca.crt"),
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.0.0.0/16",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(self.home / "service-account.key"),
            "service-account-signing-key-file": str(self.home / "service-account.key"),
            "allow-privileged": "true",
            # Without kube-controller-manager nothing would create the accounts that it insists on.
            "disable-admission-plugins": None if self._controllers else "ServiceAccount",
        }
        server = await self._run("kube-apiserver", flags | self._flags)
        context = ssl.create_default_context(cafile=str(self.home / "ca.crt"))
        await server.wait_healthy(self.port, "/readyz", context=context, timeout=self._start_timeout)

    async def _start_controller_manager(self) -> None:
        port = _free_port()
        flags = {
            "kubeconfig": str(self.kubeconfig),
            "service-account-private-key-file": str(self.home / "service-account.key"),
            "root-ca-file": str(self.home / "ca.crt"),
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": str(port),
            "cert-dir": str(self.home / "generated"),
            "kube-api-qps": "500",
            "kube-api-burst": "1000",
        }
        if not isinstance(self._controllers, bool):
            flags["controllers"] = ",".join(self._controllers)
        server = await self._run("kube-controller-manager", flags)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it makes its own certificate
        await server.wait_healthy(port, "/healthz", context=context, timeout=self._start_timeout)

    async def _run(self, name: str, flags: Mapping[str, str | None]) -> ServerProcess:
        binary = _binary(self._assets, name)
        if not binary.exists():
            raise UsageError(
                f"EnvTest needs {name}, and {binary} is not there: let KUBEBUILDER_ASSETS name a folder with etcd "
                "and kube-apiserver (for controllers=True also kube-controller-manager), or use EmbeddedCluster, "
                "which needs none"
            )
        command = [str(binary), *(f"--{flag}={value}" for flag, value in flags.items() if value is not None)]
        server = ServerProcess(name, command, self.home / f"{name}.log", stop_timeout=self._stop_timeout)
        self._servers[name] = server
        await server.start()
        return server


def _binary(assets: Path | None, name: str) -> Path:
    single = os.environ.get(f"TEST_ASSET_{name.upper().replace('-', '_')}")
    return Path(single) if single else (assets or Path(DEFAULT_ASSETS)) / name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
