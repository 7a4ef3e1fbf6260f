import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from modelyard.telemetry.exposition import Scrape, merged

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def text_of(model: str, value: float, other: str = "other") -> str:
    registry = CollectorRegistry()
    counter = Counter("things", "Things.", ["model"], registry=registry)
    counter.labels(model).inc(value)
    Gauge("bare", "No labels.", registry=registry).set(value)
    Histogram("waits_seconds", "Waits.", buckets=(1.0, 2.0), registry=registry).observe(1.5)
    Gauge(other, "Of one process alone.", registry=registry).set(1)
    return generate_latest(registry).decode()


def samples_of(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def test_every_sample_says_where_it_is_from() -> None:
    text = merged([Scrape(text_of("m", 3), "app", "r1"), Scrape(text_of("m", 5), "app", "r2")])
    samples = samples_of(text)
    for replica, value in (("r1", 3), ("r2", 5)):
        own = (("app", "app"), ("replica", replica))
        assert samples["things_total", (("app", "app"), ("model", "m"), own[1])] == value
        assert samples["bare", own] == value
        assert samples["waits_seconds_bucket", (own[0], ("le", "2.0"), own[1])] == 1


def test_a_family_has_one_head_however_many_processes_have_it() -> None:
    text = merged([Scrape(text_of("m", 1), "a", "r1"), Scrape(text_of("m", 1, "more"), "b", "r2")])
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert len(heads) == len(set(heads))
    families = [family.name for family in text_string_to_metric_families(text)]
    assert len(families) == len(set(families))
    assert {"things", "bare", "waits_seconds", "other", "more"} <= set(families)


def test_a_scrape_of_no_process_keeps_its_own_labels() -> None:
    registry = CollectorRegistry()
    Gauge("phase", "Phase.", ["replica"], registry=registry).labels("r9").set(1)
    text = merged([Scrape(generate_latest(registry).decode())])
    assert samples_of(text) == {("phase", (("replica", "r9"),)): 1.0}


def test_a_family_without_samples_is_left_out() -> None:
    registry = CollectorRegistry()
    Gauge("empty", "Nothing yet.", ["replica"], registry=registry)
    assert merged([Scrape(generate_latest(registry).decode(), "a", "r")]) == ""
    assert merged([]) == ""


@pytest.mark.parametrize("empty", ["x{} 1", "x 1"])
def test_no_labels_are_written_in_two_ways(empty: str) -> None:
    text = merged([Scrape(f"# TYPE x gauge\n{empty}\n", "a", "r")])
    assert samples_of(text) == {("x", (("app", "a"), ("replica", "r"))): 1.0}


@settings(max_examples=100)
@given(
    label=st.text(st.characters(codec="utf-8", exclude_characters="\r")),
    app=st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1),
    value=st.floats(0, 1e12),
)
def test_any_text_and_number_survive(label: str, app: str, value: float) -> None:
    text = merged([Scrape(text_of(label, value), app, "r")])
    key = "things_total", (("app", app), ("model", label), ("replica", "r"))
    assert samples_of(text)[key] == value
