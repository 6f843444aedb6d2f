"""Kubernetes' own end-to-end tests against the embedded control plane.

    E2E_TEST=/path/to/e2e.test python -m tests.conformance.upstream

e2e.test is the test binary that Kubernetes builds from test/e2e. Of it run the conformance tests of
sig-api-machinery that need no real container. Those that are known to fail, with the reason, are in
upstream_known.yaml; they wait for minutes before they give up, so they run with --all only, and count as failed.
The last line printed is the count; the exit code is 1 if a test fails that is not listed, or a listed one passes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
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
    parser.add_argument("--all", action="store_true", help="also run those that are known to fail")
    parser.add_argument("--kubeconfig", help="test this cluster instead of an embedded one")
    parser.add_argument("--log", type=Path, help="where the output of e2e.test goes (default: nowhere)")
    args = parser.parse_args()
    binary = os.environ.get("E2E_TEST")
    if not binary:
        print("E2E_TEST names no e2e.test: build it from Kubernetes' test/e2e, and let E2E_TEST be its path")
        return 2
    known: dict[str, str] = yaml.safe_load(KNOWN.read_text())
    left_out = {} if args.all or args.kubeconfig else known
    run = Run(binary, args.focus, "|".join([SKIP, *map(re.escape, left_out)]), args.log)
    return report(anyio.run(on_cluster, run, args.kubeconfig), known)


async def on_cluster(run: Run, kubeconfig: str | None) -> dict[str, str | None]:
    """Run it on a cluster: the one of the kubeconfig, or an embedded one."""
    if kubeconfig:
        return await anyio.to_thread.run_sync(run.results, kubeconfig)
    async with EmbeddedCluster(simulator=True, own_warnings=False) as cluster:
        return await anyio.to_thread.run_sync(run.results, str(cluster.kubeconfig))


@dataclass(frozen=True, slots=True)
class Run:
    """Which tests of e2e.test to run; `focus` and `skip` are regular expressions for their names."""

    binary: str
    focus: str
    skip: str
    log: Path | None

    def results(self, kubeconfig: str) -> dict[str, str | None]:
        """What became of each test in focus: "" if it passed, else why not; None if it was left out as known."""
        with tempfile.TemporaryDirectory() as folder, (self.log or Path(os.devnull)).open("w") as output:
            command = [
                self.binary,
                f"--kubeconfig={kubeconfig}",
                "--provider=skeleton",
                "--disable-log-dump",
                "--allowed-not-ready-nodes=10",
                f"--ginkgo.focus={self.focus}",
                f"--ginkgo.skip={self.skip}",
                "--ginkgo.no-color",
                "--ginkgo.timeout=50m",
                f"--report-dir={folder}",
            ]
            subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder)
            cases = ElementTree.parse(Path(folder) / "junit_01.xml").iter("testcase")
            named = {case.attrib["name"].removeprefix("[It] "): case for case in cases}
        return {name: _outcome(case) for name, case in named.items() if self._selects(name)}

    def _selects(self, name: str) -> bool:
        return bool(re.search(self.focus, name)) and not re.search(SKIP, name)


def _outcome(case: ElementTree.Element) -> str | None:
    if case.find("skipped") is not None:
        return None
    failures = [*case.iter("failure"), *case.iter("error")]
    return next(((f.attrib.get("message") or f.text or "failed").strip() for f in failures), "")


def report(results: Mapping[str, str | None], known: Mapping[str, str]) -> int:
    """Print what was not to be expected, what is known, and the count. Returns the exit code."""
    wrong = 0
    for name, why in sorted(results.items()):
        reason = next((reason for part, reason in known.items() if part in name), "")
        if why == "" and reason:
            print(f"PASSES, though it is listed in {KNOWN.name}: {name}")
        elif why != "" and reason:
            print(f"known: {name}\n    {reason}")
        elif why != "":
            print(f"FAILED: {name}\n    {(why or 'it did not run')[:1000]}")
        wrong += (why == "") == bool(reason)
    passed = sum(why == "" for why in results.values())
    print(f"{passed} of {len(results)} passed ({100 * passed / max(1, len(results)):.0f} %)")
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main())
