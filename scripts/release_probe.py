"""A user's first minutes with an installed kopylite; run by scripts/release_check.py in an environment of its own.

Nothing of the checkout is on its path: what it needs has to be in the wheel and its dependencies.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HELLO = """
from kopylite import App, Context, Kind, Request

ConfigMap = Kind("v1", "ConfigMap")
app = App("hello")


@app.reconciler(ConfigMap)
async def reconcile(ctx: Context, request: Request) -> None:
    config_map = await ctx.client.find(ConfigMap, request)
    if config_map is not None and "name" in config_map.get("data", {}):
        await ctx.client.patch(config_map, {"data": {"greeting": f"Hello, {config_map['data']['name']}!"}})
"""

GREET = """
import anyio
from kopylite import Kind, Unstructured
from kopylite.client import connect

async def main():
    async with connect("kopylite.kubeconfig") as client:
        metadata = {"name": "world", "namespace": "default"}
        wanted = Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"name": "World"})
        made = await client.create(wanted)
        with anyio.fail_after(60):
            while made["data"].get("greeting") != "Hello, World!":
                await anyio.sleep(0.05)
                made = await client.get(Kind("v1", "ConfigMap"), "world", namespace="default")

anyio.run(main)
"""
# Of each extra: what it is there for, and an option that needs it.
MODULES = {"socks": ["python_socks"], "webhooks": ["cryptography"], "fast": ["uvloop"], "dev": ["cryptography", "re2"]}
LIMIT = 60.0
KUBECONFIG = "kopylite.kubeconfig"


def main(version: str, extras: list[str]) -> None:
    import kopylite

    home = Path(kopylite.__file__)
    if "site-packages" not in home.parts:
        raise SystemExit(f"kopylite came from {home}, which is not what was installed")
    for name in kopylite.__all__:
        getattr(kopylite, name)
    for name in ("kopylite.testing", "kopylite.sweep", "kopylite.errors", "kopylite.objects", "kopylite.client"):
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)
    for extra, modules in MODULES.items():
        for module_name in modules if extra in extras else ():
            importlib.import_module(module_name)
    command = str(Path(sys.executable).with_name("kopylite"))
    told = run(command, "--version")
    if f"kopylite {version} " not in told:
        raise SystemExit(f"`kopylite --version` says {told!r}, the project {version}")
    for arguments in (["--help"], ["run", "--help"], ["sweep", "--help"]):
        run(command, *arguments)
    with tempfile.TemporaryDirectory() as folder:
        operate(command, Path(folder), ["--loop", "uvloop"] if "fast" in extras else [])


def operate(command: str, folder: Path, options: list[str]) -> None:
    """The README's operator on the built-in server, until it has greeted and gone."""
    (folder / "hello.py").write_text(HELLO)
    options = ["-A", "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", *options]
    if importlib.util.find_spec("cryptography"):
        with serving(folder, command, "run", "hello.py", "--dev", *options):
            greet(folder)
        return
    refused = subprocess.run(
        [command, "run", "hello.py", "--dev"], cwd=folder, capture_output=True, text=True, check=False
    )
    if "pip install 'kopylite[" not in refused.stderr or "Traceback" in refused.stderr:
        raise SystemExit(f"`run --dev` does not say which extra it needs:\n{refused.stdout}{refused.stderr}")
    with (
        serving(folder, command, "apiserver", "--no-tls", "--port", "0", "--write-kubeconfig", KUBECONFIG),
        serving(folder, command, "run", "hello.py", "--kubeconfig", KUBECONFIG, *options),
    ):
        greet(folder)


@contextmanager
def serving(folder: Path, *command: str) -> Iterator[None]:
    """A process that serves until SIGTERM, and then ends with 0; from when the server's kubeconfig is there."""
    log = folder / f"{command[1]}.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + LIMIT
        while not (folder / KUBECONFIG).exists():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{' '.join(command)} did not begin:\n{log.read_text()}")
            time.sleep(0.05)
        try:
            yield
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"no greeting:\n{error.stderr}\n{log.read_text()}") from None
        process.terminate()
        if code := process.wait(LIMIT):
            raise SystemExit(f"{' '.join(command)} ended with {code} after SIGTERM:\n{log.read_text()}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def greet(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", GREET], cwd=folder, capture_output=True, text=True, check=True)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
