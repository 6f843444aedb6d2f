from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from kopylite.cache import Record
from kopylite.cache.indexer import Indexer, path_values
from kopylite.errors import RegistrationError
from kopylite.objects import ObjectKey
from tests.unit.cache.things import thing


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.config", ["c1"]),
        ("spec.replicas", ["3"]),
        ("spec.on", ["true"]),
        ("spec.volumes.name", ["v1", "v2"]),
        ("spec.tags", ["x", "y"]),
        ("spec.nothing", []),
        ("spec.none", []),
        ("spec.volumes", []),
        ("spec.config.deeper", []),
        ("absent.path", []),
        ("kind", ["Thing"]),
    ],
)
def test_a_dotted_path_reads_scalars_and_goes_through_lists(path: str, values: list[str]) -> None:
    record = thing(
        spec={"config": "c1", "replicas": 3, "on": True, "none": None, "tags": ["x", "y"],
              "volumes": [{"name": "v1"}, {"name": "v2"}, {"other": 1}]},
    )  # fmt: skip
    assert list(path_values(path)(record)) == values


def by_config(record: Record) -> Iterable[str]:
    return path_values("spec.config")(record)


def test_records_that_were_there_before_are_indexed_too() -> None:
    indexer = Indexer()
    indexer.add("config", by_config, [thing("a", spec={"config": "c"})])
    assert indexer.find("config", "c") == {ObjectKey("ns", "a")}


def test_a_name_stands_for_one_function() -> None:
    indexer = Indexer()
    indexer.add("config", by_config, [])
    indexer.add("config", by_config, [])
    with pytest.raises(RegistrationError, match="config"):
        indexer.add("config", None, [])


def test_a_function_that_fails_leaves_out_its_object_only(caplog: pytest.LogCaptureFixture) -> None:
    def picky(record: Record) -> Iterable[str]:
        if record.name == "bad":
            raise ValueError("no")
        return ["v"]

    indexer = Indexer()
    indexer.add("picky", picky, [])
    with caplog.at_level(logging.ERROR):
        indexer.put(thing("bad"))
    indexer.put(thing("good"))
    assert indexer.find("picky", "v") == {ObjectKey("ns", "good")}
    assert "ns/bad" in caplog.text


@pytest.mark.parametrize("odd", ["config", None, 7, [1], [None], [["a"]]])
def test_what_is_no_list_of_texts_is_told_and_not_taken_for_letters(odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    indexer = Indexer()
    indexer.add("odd", lambda record: odd, [])
    indexer.put(thing("a"))
    assert indexer.find("odd", "c") == set()
    assert "ns/a" in caplog.text


def test_a_function_that_changes_its_mind_leaves_nothing_behind() -> None:
    answers = iter([["x"], ["y"]])
    indexer = Indexer()
    indexer.add("moody", lambda record: next(answers), [])
    indexer.put(thing("a"))
    indexer.put(thing("a"))
    assert indexer.find("moody", "x") == set()
    indexer.remove(ObjectKey("ns", "a"))
    assert indexer.find("moody", "y") == set()
    assert indexer.find("moody", "y", "ns") == set()
    assert indexer._found == {"moody": {}}, "values that nothing has any more would pile up for ever"
