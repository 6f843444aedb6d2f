from __future__ import annotations

import pytest

from kopylite.client.caches import NoCache, no_index, whole
from kopylite.errors import RequestTimeout, UsageError
from kopylite.objects import Kind
from tests.unit.client.memcache import MemoryStore

SECRET = Kind("v1", "Secret")


def test_a_store_of_a_part_is_no_store_of_all() -> None:
    store = MemoryStore()
    assert whole(store) is store
    store.partial = True
    assert whole(store) is None
    assert whole(None) is None


def test_without_caches_nothing_is_followed() -> None:
    assert NoCache().store_for(SECRET, "") is None
    assert not NoCache().follows(SECRET, "shop")


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_a_list_by_an_index_says_whether_it_is_too_early_or_was_never_declared(namespace: str) -> None:
    early, never = (no_index(SECRET, namespace, followed=followed) for followed in (True, False))
    assert isinstance(early, RequestTimeout)  # it is tried again
    assert "not in sync yet" in str(early)
    assert ("namespace shop" in str(early)) == bool(namespace)
    assert isinstance(never, UsageError)
    assert "app.cache(...)" in str(never)
