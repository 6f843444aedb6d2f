"""The functions of Kubernetes' own test/cmd, kubectl against a server, on the real one and on the embedded one.

    python -m tests.conformance.testcmd [--only TEXT] [--begin TEXT] [--limit SECONDS]

The sources are read where Go keeps its modules (`go mod download k8s.io/kubernetes@v1.37.2`), or where KUBE_ROOT says;
kubectl and the real server are those of KUBEBUILDER_ASSETS. Without them nothing runs, and the reason is printed. Each
function has its own process, home and time limit; functions run one after the other, on both servers at once. Every
function that passes on the real server has to pass on the embedded one: the exit code is 1 if one does not. What has
not begun when the time is up is counted as left out. Functions that need what is not here are in testcmd_known.yaml.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import yaml

from kopylite import Unstructured
from kopylite.apiserver.controllers import NAMES
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.errors import Conflict
from kopylite.testing import Cluster, EmbeddedCluster, EnvTest, Simulation

SCRIPT = Path(__file__).with_name("testcmd.sh")
KNOWN = Path(__file__).with_name("testcmd_known.yaml")
VERSION = "v1.37.2"
FUNCTION_SECONDS = 150.0
# What test-cmd.sh starts the real server with; ServiceAccount admission would wait for accounts.
FLAGS = {
    "enable-admission-plugins": "LimitRanger,ResourceQuota",
    "disable-admission-plugins": "ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,"
    "MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection",
}
# Of the administrator; functions have it in their text.
TOKEN = "admin-token"
# Its part on the embedded server is also the admission of service accounts, which FLAGS turns off.
PUBLISHER = "namespace-publisher"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}},
    "status": {"capacity": {"memory": "1Gi"}},
}


def sources() -> Path | None:
    """The root of Kubernetes' sources; None if they are not at hand."""
    root = os.environ.get("KUBE_ROOT")
    if not root:
        try:
            found = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        root = f"{found.stdout.strip()}/k8s.io/kubernetes@{VERSION}"
    path = Path(root)
    return path if (path / "test/cmd/legacy-script.sh").is_file() else None


def functions(root: Path) -> list[str]:
    """In the order in which upstream runs them."""
    text = (root / "test/cmd/legacy-script.sh").read_text()
    found = re.findall(r"^ +record_command (run_\w+)$", text, re.MULTILINE)
    return list(dict.fromkeys(found))


# Upstream's server allows everything, by a flag that would also turn anonymous requests off: of whom functions ask.
ALLOWED = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "test-cmd-allowed"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
}


class Runner:
    """Runs functions on one server."""

    def __init__(self, root: Path, cluster: Cluster, logs: Path | None, until: float) -> None:
        self._root = root
        self._cluster = cluster
        self._logs = logs
        self._until = until

    async def results(self, names: list[str]) -> dict[str, bool]:
        """Whether each passed; what had no time to begin is not in it."""
        found: dict[str, bool] = {}
        async with self._cluster:
            await self._prepare()
            for name in names:
                if anyio.current_time() > self._until:
                    break
                found[name] = await self._passes(name)
        return found

    async def _prepare(self) -> None:
        async with self._cluster.client() as client:
            for obj in (NODE, ALLOWED):
                await client.create(Unstructured(obj))

    async def _passes(self, name: str) -> bool:
        config = yaml.safe_load(self._cluster.kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]
        environment = {
            "PATH": f"{os.environ['KUBEBUILDER_ASSETS']}:{os.environ['PATH']}",
            "TERM": "xterm",
            "KUBE_ROOT": str(self._root),
            "SECURE_API_PORT": server["server"].rpartition(":")[2],
            "SERVER_CERTIFICATE": server["certificate-authority-data"],
            "ADMIN_TOKEN": TOKEN,
            "TEST_KUBECONFIG": str(self._cluster.kubeconfig),
        }
        with tempfile.TemporaryDirectory(prefix="testcmd-", ignore_cleanup_errors=True) as folder:
            command = ["timeout", "--kill-after=5", str(FUNCTION_SECONDS), "bash", str(SCRIPT), name]
            done = await anyio.run_process(
                command, env=environment, cwd=folder, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
            )
        if self._logs:
            kind = type(self._cluster).__name__
            (self._logs / f"{name}-{kind}.log").write_bytes(done.stdout)
        return done.returncode == 0 and f"FUNCTION PASSED: {name}".encode() in done.stdout


async def no_scheduler(request: HttpRequest) -> Response | None:
    """Upstream's runner has none, and its functions count on pods that stay where they are."""
    if not request.path.endswith("/binding"):
        return None
    return Response(409, msgspec.json.encode(Conflict("nothing is scheduled here").to_status()))


async def compare(root: Path, names: list[str], logs: Path | None, limit: float) -> tuple[dict[str, bool], ...]:
    """The results on the real server and on the embedded one."""
    results: list[dict[str, bool]] = [{}, {}]
    tokens = root / "hack/testdata/auth-tokens.csv"
    until = anyio.current_time() + limit

    async def fill(index: int, cluster: Cluster) -> None:
        results[index] = await Runner(root, cluster, logs, until).results(names)

    async with anyio.create_task_group() as group:
        group.start_soon(fill, 0, EnvTest(controllers=True, flags={**FLAGS, "token-auth-file": str(tokens)}))
        controllers = [name for name in NAMES if name != PUBLISHER]
        embedded = EmbeddedCluster(
            controllers=controllers, simulator=Simulation(nodes=0), rbac=False, token=TOKEN, own_warnings=False
        )
        embedded.hooks.before.append(no_scheduler)
        group.start_soon(fill, 1, embedded)
    return tuple(results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only functions whose name contains it")
    parser.add_argument("--begin", default="", help="leave out the functions before the first whose name contains it")
    parser.add_argument("--limit", type=float, default=2400, help="begin nothing after so many seconds (%(default)s)")
    parser.add_argument("--logs", type=Path, help="keep the output of each function in this folder")
    args = parser.parse_args()
    root = sources()
    if root is None:
        print(
            f"skipped: Kubernetes' sources are not at hand: go mod download k8s.io/kubernetes@{VERSION}, or KUBE_ROOT"
        )
        return 0
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        print("skipped: KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kubectl")
        return 0
    if args.logs:
        args.logs.mkdir(parents=True, exist_ok=True)
    known = functions(root)
    first = next((index for index, name in enumerate(known) if args.begin in name), 0)
    left_out: dict[str, str] = yaml.safe_load(KNOWN.read_text())
    names = [name for name in known[first:] if args.only in name and name not in left_out]
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")
    real, embedded = anyio.run(compare, root, names, args.logs and args.logs.absolute(), args.limit)
    return report(names, real, embedded)


def report(names: list[str], real: dict[str, bool], embedded: dict[str, bool]) -> int:
    """Print what differs and the count. Returns the exit code."""
    both = [name for name in names if name in real and name in embedded]
    wanted = [name for name in both if real[name]]
    missing = [name for name in wanted if not embedded[name]]
    for name in missing:
        print(f"FAILED on the embedded server only: {name}")
    for name in both:
        if not real[name]:
            print(f"fails on the real server{' alone' if embedded[name] else ' too'}: {name}")
    left = len(names) - len(both)
    print(f"{len(wanted) - len(missing)} of {len(wanted)} that pass on the real server pass; {left} had no time to run")
    return 1 if missing or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
