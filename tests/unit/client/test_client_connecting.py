"""A client in one line: which server it asks, and under which name it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kopylite.client import connect, load_config
from kopylite.client.live import FIELD_MANAGER
from kopylite.errors import KubeconfigError, UsageError
from kopylite.objects import Kind, ObjectKey
from kopylite.observers import ClientObserver
from kopylite.testing import EmbeddedCluster

NAMESPACE = Kind("v1", "Namespace")
KEY = ObjectKey("", "default")


@pytest.mark.parametrize("options", [{}, {"field_manager": "a-script"}])
async def test_a_kubeconfig_is_enough_and_the_name_of_the_writer_is_ours_or_the_one_given(
    embedded_cluster: EmbeddedCluster, options: dict[str, Any]
) -> None:
    async with connect(embedded_cluster.kubeconfig, **options) as client:
        assert client.field_manager == client.live.field_manager == options.get("field_manager", FIELD_MANAGER)
        assert (await client.get(NAMESPACE, KEY))["metadata"]["name"] == "default"


async def test_the_settings_themselves_go_before_a_file_and_all_is_closed_and_told(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    told: list[str] = []

    class Observer(ClientObserver):
        def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
            told.append(method)

    config = load_config(str(embedded_cluster.kubeconfig))
    async with connect(tmp_path / "none", config=config, observer=Observer()) as client:
        await client.live.get(NAMESPACE, KEY)
    assert told == ["GET"]
    with pytest.raises(UsageError, match="is closed"):
        await client.live.get(NAMESPACE, KEY)


async def test_a_file_that_is_not_there_or_has_no_such_context_is_told_by_its_name(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    with pytest.raises(KubeconfigError, match="nowhere"):
        async with connect(tmp_path / "nowhere"):
            raise AssertionError
    with pytest.raises(KubeconfigError, match="other-cluster"):
        async with connect(embedded_cluster.kubeconfig, "other-cluster"):
            raise AssertionError
