"""A Store against a plain dict, for any sequence of changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kopylite.cache.record import Record
from kopylite.cache.store import Delta, Store
from kopylite.objects import ObjectKey
from tests.unit.cache.things import spaces

names = st.sampled_from("abc")
namespaces = st.sampled_from(["", "n1", "n2"])
records = st.builds(
    lambda namespace, name, uid, version, tier, apps: Record(
        namespace=namespace,
        name=name,
        uid=uid,
        resource_version=version,
        generation=1,
        labels={"tier": tier} if tier else None,
        owner_references=(),
        finalizers=(),
        deletion_timestamp=None,
        body=b'{"spec":{"apps":[' + b",".join(b'"%b"' % app.encode() for app in apps) + b"]}}",
    ),
    namespaces,
    names,
    st.sampled_from(["u1", "u2"]),
    st.integers(1, 5).map(str),
    st.sampled_from(["", "web", "db"]),
    st.lists(st.sampled_from("xyz"), max_size=3),
)
puts = records.map(lambda record: ("put", record))
removes = records.map(lambda record: ("remove", record))
replaces = st.lists(records, max_size=5).map(lambda some: ("replace", some))
index = st.just(("index", None))


def apps_of(record: Record) -> set[str]:
    return {chr(byte) for byte in record.body.removeprefix(b'{"spec"') if chr(byte) in "xyz"}


@given(st.lists(puts | removes | replaces | index, max_size=20))
def test_any_sequence_of_changes_gives_the_same_as_a_dict(steps: list[tuple[str, object]]) -> None:
    store, model, mirror = Store(), dict[ObjectKey, Record](), dict[ObjectKey, Record]()
    for word, what in steps:
        deltas: list[Delta] = []
        if word == "put" and isinstance(what, Record):
            deltas += store.put(what)
            model[what.key] = keep(model.get(what.key), what)
        elif word == "remove" and isinstance(what, Record):
            deltas += store.remove(what.key, what)
            model.pop(what.key, None)
        elif word == "replace" and isinstance(what, list):
            wanted = {record.key: record for record in what}
            steps_taken = list(store.replace(spaces(wanted.values()), initial=False))
            deltas += [delta for some in steps_taken for delta in some]
            model = {key: keep(model.get(key), record) for key, record in wanted.items()}
        elif word == "index":
            store.add_index("spec.apps")
        for delta in deltas:
            follow(mirror, delta)
        check(store, model)
        assert mirror == model, "who follows the deltas knows the store"


def keep(old: Record | None, new: Record) -> Record:
    """A state that is stored already is not replaced by its equal."""
    same = old is not None and (old.uid, old.resource_version) == (new.uid, new.resource_version)
    return old if same and old is not None else new


def follow(mirror: dict[ObjectKey, Record], delta: Delta) -> None:
    record = delta.new or delta.old
    assert record is not None
    known = mirror.get(record.key)
    if delta.old is None:
        assert known is None, "a create is of something new"
    else:
        assert known is not None
        assert known.uid == delta.old.uid, "another uid is a delete and a create"
    if delta.new is None:
        del mirror[record.key]
    else:
        mirror[record.key] = delta.new


def check(store: Store, model: dict[ObjectKey, Record]) -> None:
    assert len(store) == len(model)
    assert {record.key: record for record in store.list()} == model
    assert store.body_bytes == sum(len(record.body) for record in model.values())
    for namespace in ("n1", "n2"):
        inside = {key for key in model if key.namespace == namespace}
        assert {record.key for record in store.list(namespace)} == inside
        for app in "xyz":
            found = {record.key for record in store.list(namespace, index={"spec.apps": app})}
            assert found == {key for key in inside if app in apps_of(model[key])}
    both = {record.key for record in store.list(labels="tier=web", index={"spec.apps": "x"})}
    assert both == {k for k, r in model.items() if "x" in apps_of(r) and (r.labels or {}).get("tier") == "web"}
    for key, record in model.items():
        assert store.get(key) is record


@given(st.lists(records, max_size=5), st.lists(records, max_size=5))
def test_a_replace_deletes_before_it_creates(before: list[Record], after: list[Record]) -> None:
    store = Store()
    for record in before:
        store.put(record)
    deltas = [d for some in store.replace(spaces(after), initial=True) for d in some]
    gone = [delta.new is None for delta in deltas if (delta.old or delta.new).key not in {r.key for r in after}]  # type: ignore[union-attr]
    assert all(gone)
    assert [delta.new is None for delta in deltas][: len(gone)] == gone
