"""Each module outside of the embedded server has a test file of its name, or is imported by a test itself."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "kopylite"

# Tested through other modules only. This list gets shorter.
WITHOUT = frozenset(
    {
        "client.socks",
        "codegen.annotations",
        "codegen.crdinput",
        "crds.jsonschema",
        "devcluster.embedded",
        "devcluster.simulator.claims",
        "devcluster.simulator.cronjobs",
        "devcluster.simulator.daemonsets",
        "devcluster.simulator.deployments",
        "devcluster.simulator.endpoints",
        "devcluster.simulator.jobs",
        "devcluster.simulator.kubelet",
        "devcluster.simulator.nodes",
        "devcluster.simulator.replicasets",
        "devcluster.simulator.simulation",
        "devcluster.simulator.simulator",
        "devcluster.simulator.statefulsets",
        "diagnostics.loopreport",
        "reconcile.owners",
        "serving.routes",
        "sweep.calls",
        "sweep.incarnation",
        "sweep.injection",
        "sweep.plugin",
        "sweep.runs",
        "sweep.scene",
        "sweep.world",
        "testing.envtest",
        "testing.plugin",
        "testing.supervise",
    }
)  # fmt: skip


def modules() -> set[str]:
    """room.module of all, without the embedded server."""
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")]
    return {".".join(path.with_suffix("").parts) for path in paths if path.parts[0] != "apiserver"}


def named_by_tests() -> set[str]:
    """What tests import, and what their files are named after."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        found |= set(re.findall(r"kopylite\.([a-z_]+(?:\.[a-z_]+)*)", text))
        for room, names in re.findall(r"from kopylite\.([\w.]+) import \(?([^)\n]*)", text):
            found |= {f"{room}.{name}" for name in re.findall(r"\w+", names)}
        parts = path.stem.split("_")[1:]
        found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return found


def test_each_module_has_a_test_that_names_it() -> None:
    missing = modules() - named_by_tests() - WITHOUT
    assert not missing, f"no tests/unit/ROOM/test_ROOM_MODULE.py, and no test that imports: {sorted(missing)}"
    assert not WITHOUT - modules(), f"these are gone; take them from the list: {sorted(WITHOUT - modules())}"
