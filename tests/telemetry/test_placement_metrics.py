from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from modelyard.telemetry.placement_metrics import PlacementFigures, PlacementMetrics

FIGURES = PlacementFigures(
    {"missing": 0, "wrong_place": 2}, {("gen@1.0.0", "fragmentation"): 61.5}, planned=7, used=6
)


def value(name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(PlacementMetrics(FIGURES))
    return registry.get_sample_value(f"modelyard_placement_{name}", labels)


def test_each_kind_of_mismatch_has_its_count_and_none_is_a_zero() -> None:
    assert value("mismatches", kind="wrong_place") == 2
    assert value("mismatches", kind="missing") == 0


def test_waits_have_their_app_and_reason() -> None:
    assert value("pending_seconds", app="gen@1.0.0", reason="fragmentation") == 61.5


def test_places_are_planned_and_used() -> None:
    assert (value("places", kind="planned"), value("places", kind="used")) == (7, 6)


def test_the_text_is_prometheus_and_of_no_one_process() -> None:
    text = PlacementMetrics(FIGURES).scrape().text
    names = {family.name for family in text_string_to_metric_families(text)}
    assert names == {
        f"modelyard_placement_{n}" for n in ("mismatches", "pending_seconds", "places")
    }
