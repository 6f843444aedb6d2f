"""Kubernetes' own end-to-end tests against the embedded control plane.

    E2E_TEST=/path/to/e2e.test python -m tests.conformance.upstream

e2e.test is the test binary that Kubernetes builds from test/e2e. Of it run the conformance tests of
sig-api-machinery that need no real container. Which of them are known to fail, and why, is in upstream_known.yaml.
The last line printed is the count; the exit code is 1 if a test fails that is not listed, or a listed one passes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import anyio
import anyio.to_thread
import yaml

from kopylite.testing import EmbeddedCluster

KNOWN = Path(__file__).parent / "upstream_known.yaml"
FOCUS = r"\[sig-api-machinery\].*\[Conformance\]"
# They need webhooks or an aggregated API server in a container, or an etcd to compact.
SKIP = "[Ww]ebhook|Aggregator|compacted|CustomResourceFieldSelectors"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--focus", default=FOCUS, help="run the tests whose name matches (default: %(default)s)")
    parser.add_argument("--skip", default=SKIP, help="leave out those whose name matches (default: %(default)s)")
    parser.add_argument("--kubeconfig", help="test this cluster instead of an embedded one")
    parser.add_argument("--log", type=Path, help="where the output of e2e.test goes (default: nowhere)")
    args = parser.parse_args()
    binary = os.environ.get("E2E_TEST")
    if not binary:
        print("E2E_TEST names no e2e.test: build it from Kubernetes' test/e2e, and let E2E_TEST be its path")
        return 2
    results = anyio.run(_run, binary, args)
    return report(results, yaml.safe_load(KNOWN.read_text()) or {} if KNOWN.exists() else {})


async def _run(binary: str, args: argparse.Namespace) -> dict[str, str]:
    if args.kubeconfig:
        return await anyio.to_thread.run_sync(run_tests, binary, args.kubeconfig, args.focus, args.skip, args.log)
    async with EmbeddedCluster(simulator=True) as cluster:
        kubeconfig = str(cluster.kubeconfig)
        return await anyio.to_thread.run_sync(run_tests, binary, kubeconfig, args.focus, args.skip, args.log)


def run_tests(binary: str, kubeconfig: str, focus: str, skip: str, log: Path | None) -> dict[str, str]:
    """Run e2e.test. Returns what became of each test that ran: "" if it passed, else why not."""
    with tempfile.TemporaryDirectory() as folder, (log or Path(os.devnull)).open("w") as output:
        command = [
            binary,
            f"--kubeconfig={kubeconfig}",
            "--provider=skeleton",
            "--disable-log-dump",
            "--allowed-not-ready-nodes=10",
            "--kube-api-content-type=application/json",
            f"--ginkgo.focus={focus}",
            f"--ginkgo.skip={skip}",
            "--ginkgo.no-color",
            "--ginkgo.timeout=50m",
            f"--report-dir={folder}",
        ]
        subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder)
        return results_of(Path(folder) / "junit_01.xml")


def results_of(report: Path) -> dict[str, str]:
    """By test, from a JUnit file; those that were skipped are left out."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["name"]
        if not name.startswith("[It] ") or case.find("skipped") is not None:
            continue
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        found[name.removeprefix("[It] ")] = "" if failure is None else failure.attrib.get("message") or "failed"
    return found


def report(results: Mapping[str, str], known: Mapping[str, str]) -> int:
    """Print what was not to be expected, and the count. Returns the exit code."""
    failed = {name: why for name, why in results.items() if why}
    surprises = {name: why for name, why in failed.items() if not _reason(name, known)}
    recovered = [name for name, why in results.items() if not why and _reason(name, known)]
    for name, why in surprises.items():
        print(f"FAILED {name}\n    {why[:500]}")
    for name in recovered:
        print(f"PASSES, though listed in {KNOWN.name}: {name}")
    for name in failed.keys() - surprises.keys():
        print(f"known: {name}\n    {_reason(name, known)}")
    print(f"{len(results) - len(failed)} of {len(results)} passed")
    return 1 if surprises or recovered or not results else 0


def _reason(name: str, known: Mapping[str, str]) -> str:
    return next((reason for part, reason in known.items() if part in name), "")


if __name__ == "__main__":
    sys.exit(main())
