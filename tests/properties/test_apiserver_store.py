"""The store against a model: what a watch tells, and what pages show, is what happened."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopylite.apiserver.storage.history import DELETED, Collection
from kopylite.apiserver.storage.store import HISTORY_BYTES, AlreadyStored, ObjectStore
from tests.sizes import examples

STORAGE = "widgets.example.com"
KEYS = [f"{namespace}/{name}" for namespace in ("a", "a-b", "b") for name in ("x", "y", "z")]

steps = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from(KEYS), st.integers(0, 3)), max_size=40
)


@dataclass
class Model:
    """The state at each version."""

    states: dict[int, dict[str, int]] = field(default_factory=dict)


def play(store: ObjectStore, script: list[tuple[str, str, int]]) -> Model:
    state = values(store.collection(STORAGE), "", "", store.version)
    model = Model({store.version: dict(state)})
    for step, key, value in script:
        record = store.get(STORAGE, key)
        obj = {"metadata": {"name": key}, "value": value}
        if step == "delete":
            if record is None:
                continue
            store.delete(STORAGE, key, record)
            del state[key]
        elif record is None:
            store.create(STORAGE, key, obj, encoding_version="v1")
            state[key] = value
        else:
            store.update(STORAGE, key, obj, record, encoding_version="v1")
            state[key] = value
        model.states[store.version] = dict(state)
    return model


def values(collection: Collection, prefix: str, start: str, version: int) -> dict[str, int]:
    return {r.key: r.decode()["value"] for r in collection.scan(prefix, start, version)}


@given(steps, st.integers(1, 3))
def test_a_watch_from_any_version_leads_from_the_state_then_to_the_state_now(
    script: list[tuple[str, str, int]], step: int
) -> None:
    store = ObjectStore()
    store.step = step
    model = play(store, script)
    for version, then in model.states.items():
        state = dict(then)
        last = version
        for change in store.collection(STORAGE).subscribe(version).take(1000):
            assert change.version > last
            assert change.record.decode()["metadata"]["resourceVersion"] == str(change.version)
            last = change.version
            if change.type == DELETED:
                del state[change.record.key]
            else:
                state[change.record.key] = change.record.decode()["value"]
        assert state == model.states[store.version]


@given(steps, st.sampled_from(["", "a/", "a-b/", "b/"]), st.sampled_from(["", *KEYS]))
def test_a_scan_at_any_version_shows_that_version_in_key_order(
    script: list[tuple[str, str, int]], prefix: str, start: str
) -> None:
    store = ObjectStore()
    model = play(store, script)
    collection = store.collection(STORAGE)
    for version, then in model.states.items():
        wanted = {k: v for k, v in sorted(then.items()) if k.startswith(prefix) and k >= start}
        found = values(collection, prefix, start, version)
        assert list(found.items()) == list(wanted.items())
        assert collection.count(prefix, start, version) == len(wanted)


@given(steps, steps, st.integers(1, 4))
def test_pages_of_one_version_make_up_that_version_whatever_is_written_between_them(
    before: list[tuple[str, str, int]], between: list[tuple[str, str, int]], limit: int
) -> None:
    store = ObjectStore()
    model = play(store, before)
    version, wanted = store.version, dict(model.states[store.version])
    rest = list(between)
    found: dict[str, int] = {}
    start = ""
    while True:
        page = list(values(store.collection(STORAGE), "", start, version).items())[:limit]
        found.update(page)
        if len(page) < limit:
            break
        start = page[-1][0] + "\0"
        play(store, rest[:3])
        rest = rest[3:]
    assert found == wanted


@given(steps, st.integers(0, 20), st.integers(1, 10))
@settings(max_examples=examples(60))
def test_after_trimming_a_version_is_either_whole_or_refused(
    script: list[tuple[str, str, int]], keep: int, compacted_at: int
) -> None:
    store = ObjectStore()
    model = play(store, script)
    collection = store.collection(STORAGE)
    collection.trim(keep, 0.0, HISTORY_BYTES)
    store.compact(1000 + compacted_at)
    for version, then in model.states.items():
        if version < collection.oldest:
            continue
        assert values(collection, "", "", version) == then
        state = dict(then)
        for change in collection.subscribe(version).take(1000):
            if change.type == DELETED:
                del state[change.record.key]
            else:
                state[change.record.key] = change.record.decode()["value"]
        assert state == model.states[store.version]


@given(steps, steps)
def test_a_fork_and_its_origin_do_not_see_each_others_writes(
    before: list[tuple[str, str, int]], after: list[tuple[str, str, int]]
) -> None:
    store = ObjectStore()
    play(store, before)
    version, mine = store.version, values(store.collection(STORAGE), "", "", store.version)
    twin = store.fork()
    play(twin, after)
    assert store.version == version
    assert values(store.collection(STORAGE), "", "", version) == mine
    assert values(twin.collection(STORAGE), "", "", version) == mine


def test_a_taken_key_is_refused_and_names_what_is_there() -> None:
    store = ObjectStore()
    record = store.create(STORAGE, "a/x", {"metadata": {}}, encoding_version="v1")
    with pytest.raises(AlreadyStored) as taken:
        store.create(STORAGE, "a/x", {"metadata": {}}, encoding_version="v1")
    assert taken.value.record is record
