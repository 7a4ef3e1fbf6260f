from prometheus_client.parser import text_string_to_metric_families

from modelyard.config.routes import Deadlines
from modelyard.telemetry import families
from modelyard.telemetry.families import FAMILIES
from modelyard.telemetry.family import LABELS, PREFIX
from modelyard.telemetry.histogram import Histogram


def test_names_are_unique_and_say_their_unit() -> None:
    names = [family.full_name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family.full_name.startswith(PREFIX)
        assert not family.name.endswith("_total")  # a counter's samples get it
        if family.kind == "histogram":
            assert family.name.endswith("_seconds")


def test_labels_are_the_agreed_ones() -> None:
    for family in FAMILIES:
        assert set(family.labels) <= LABELS, family.name


def test_only_one_family_names_tenants() -> None:
    assert [one.name for one in FAMILIES if "tenant" in one.labels] == ["tenant_tokens"]


def test_every_histogram_can_tell_whether_a_deadline_was_met() -> None:
    deadlines = Deadlines()
    for family in FAMILIES:
        if family.kind == "histogram":
            for name in ("first_token_s", "idle_s", "total_s", "early_status_s"):
                assert getattr(deadlines, name) in family.edges, family.name
            assert list(family.edges) == sorted(set(family.edges))


def test_a_histogram_is_exported_as_prometheus_wants_it() -> None:
    held = Histogram(families.TTFT_EDGES)
    held.observe(0.2)
    held.observe(1000.0)
    metric = families.FIRST_TOKEN.histogram([(("m", "m@1", "stable", "paid"), held)])
    samples = {(one.name, one.labels.get("le")): one.value for one in metric.samples}
    name = families.FIRST_TOKEN.full_name
    assert samples[f"{name}_bucket", "0.25"] == 1
    assert samples[f"{name}_bucket", "0.15"] == 0
    assert samples[f"{name}_bucket", "+Inf"] == samples[f"{name}_count", None] == 2
    assert samples[f"{name}_sum", None] == 1000.2


def test_the_text_of_a_family_can_be_read_back() -> None:
    from prometheus_client import generate_latest
    from prometheus_client.registry import Collector

    class One(Collector):
        def collect(self):  # type: ignore[no-untyped-def]
            yield families.TENANT_TOKENS.metric([(('a"b', "input"), 3)])

    [family] = text_string_to_metric_families(generate_latest(One()).decode())
    [sample] = family.samples
    assert sample.name == "modelyard_tenant_tokens_total"
    assert sample.labels == {"tenant": 'a"b', "direction": "input"}
