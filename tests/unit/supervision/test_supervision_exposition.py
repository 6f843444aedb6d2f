"""The metrics of several processes as one text, which Prometheus' own parsers read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse
from prometheus_client.samples import Sample

from kopylite.supervision.exposition import merged


def registry(value: float, label: str = "a") -> CollectorRegistry:
    found = CollectorRegistry()
    Counter("jobs", "Jobs that were done", ["queue"], registry=found).labels(label).inc(value)
    Gauge("depth", "How deep", registry=found).set(value)
    Histogram("seconds", "How long", ["process"], registry=found, buckets=(1, 2)).labels(label).observe(value)
    return found


def samples(text: str) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    return {key_of(sample) for family in parse(text) for sample in family.samples}


def key_of(sample: Sample) -> tuple[str, frozenset[tuple[str, str]], float]:
    return sample.name, frozenset(sample.labels.items()), sample.value


# No line ends: the format escapes them, and its own parser splits at all that Python calls a line.
VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=12) | st.sampled_from(
    ["}", "{", '",process="', 'process="', "\\", '\\"', ",", "# EOF", " 1"]
)


@given(VALUES, st.floats(0, 1e6), st.floats(0, 1e6))
def test_each_sample_is_there_with_the_number_of_its_process(label: str, one: float, two: float) -> None:
    texts = {"1": generate_latest(registry(one, label)).decode(), "2": generate_latest(registry(two, label)).decode()}
    expected = set()
    for process, text in texts.items():
        for name, labels, value in samples(text):
            renamed = {("exported_process" if key == "process" else key): text for key, text in labels}
            expected.add((name, frozenset({**renamed, "process": process}.items()), value))
    assert samples(merged(texts)) == expected


def test_each_family_is_described_once_and_its_samples_stand_together() -> None:
    text = merged({name: generate_latest(registry(1)).decode() for name in ("1", "2", "parent")})
    assert text.count("# TYPE depth gauge") == text.count("# HELP depth How deep") == 1
    families = [family.name for family in parse(text)]
    assert len(families) == len(set(families))


def test_openmetrics_stays_openmetrics() -> None:
    text = merged({name: generate_openmetrics(registry(1)).decode() for name in ("1", "2")})
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    depth = next(family for family in parse_openmetrics(text) if family.name == "depth")
    assert {sample.labels["process"] for sample in depth.samples} == {"1", "2"}


def test_a_quoted_name_stays_in_its_braces() -> None:
    assert merged({"1": '# TYPE "my.depth" gauge\n{"my.depth",a="b"} 1\n{"my.depth"} 2\n'}).splitlines() == [
        '# TYPE "my.depth" gauge',
        '{"my.depth",a="b",process="1"} 1',
        '{"my.depth",process="1"} 2',
    ]


def test_without_any_process_there_is_nothing() -> None:
    assert merged({}) == ""
    assert merged({"1": ""}) == ""
