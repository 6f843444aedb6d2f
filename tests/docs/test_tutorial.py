"""The tutorial, as a reader does it: all pages in order, in one empty folder, with kubectl."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kopylite.testing import Cluster
from tests.docs.walk import Walk

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
PAGES = sorted(TUTORIAL.glob("[1-9]*.md"))

TESTS, RECORDED = "python -m pytest -q", "python -m pytest -q --kopylite-rbac rbac.json"

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


@pytest.fixture(scope="module")
def environment(kubectl: str, repository: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(kubectl).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(repository),
        "KOPYLITE_METRICS_ADDRESS": "off",
        "KOPYLITE_HEALTH_ADDRESS": "off",
        "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:xdist",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's; what the first test leaves, the second finds."""
    return tmp_path_factory.mktemp("tutorial")


def test_from_nothing_to_tests(environment: dict[str, str], folder: Path) -> None:
    walk = Walk(folder, environment)
    for page in PAGES[:2]:
        walk.page(page)
    assert "Traceback" not in walk.log
    assert "ERROR" not in walk.log
    walk.page(PAGES[2], instead={TESTS: RECORDED})  # one run of the tests is enough for both pages
    assert walk.commands == 13


def test_into_a_cluster(cluster: Cluster, environment: dict[str, str], folder: Path) -> None:
    if not (folder / "rbac.json").exists():  # asked for alone
        for page in PAGES[1:3]:
            Walk(folder, environment).files(page)
        Walk(folder, environment).page(PAGES[2], instead={TESTS: RECORDED})
    walk = Walk(folder, environment | {"KUBECONFIG": str(cluster.kubeconfig)})
    walk.page(PAGES[3], instead={RECORDED: ""})
    assert walk.commands == 9
