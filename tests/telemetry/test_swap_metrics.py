"""What control exports of swap areas."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from modelyard.telemetry.swap_metrics import SwapMetrics


def test_an_area_shows_its_loads_its_evictions_and_who_waits() -> None:
    registry = CollectorRegistry()
    shown = {"d1": {"loads": 3, "evictions": 2, "waiting": ["b@1.0.0"]}}
    registry.register(SwapMetrics(lambda: shown))
    text = generate_latest(registry).decode()
    for line in (
        'modelyard_swap_loads_total{area="d1"} 3.0',
        'modelyard_swap_evictions_total{area="d1"} 2.0',
        'modelyard_swap_waiting{area="d1"} 1.0',
    ):
        assert line in text


def test_a_platform_without_areas_has_no_figures() -> None:
    registry = CollectorRegistry()
    registry.register(SwapMetrics(dict))
    assert "modelyard_swap_waiting{" not in generate_latest(registry).decode()
