"""What this machine offers to the tests; what is missing skips with a reason, or fails where nothing may be missing."""

from __future__ import annotations

import os

import pytest

from kopylite.testing.envtest import find_assets


def require(condition: object, reason: str) -> None:
    """Skip with a reason; fail where KOPYLITE_REQUIRE_REAL says that nothing may be missing."""
    if condition:
        return
    if os.environ.get("KOPYLITE_REQUIRE_REAL"):
        pytest.fail(f"KOPYLITE_REQUIRE_REAL is set, and: {reason}")
    pytest.skip(reason)


def require_real_server() -> None:
    """The binaries of a real control plane."""
    require(find_assets(), "no kube-apiserver and etcd: let KUBEBUILDER_ASSETS name their folder")


def require_open_files(count: int) -> None:
    """That this process may have so many files open at once; the limit is raised as far as it may be."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(hard, count)
    require(most >= count, f"{count} open files are needed, and ulimit -n allows {most}")
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
