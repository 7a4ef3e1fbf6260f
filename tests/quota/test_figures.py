from __future__ import annotations

from modelyard.config.quotas import Limits, Quota
from modelyard.control.published import Override
from modelyard.quota.bucket import RATE, UNITS
from modelyard.quota.figures import Figures, Key, figures_of

QUOTA = Quota(input_tokens_per_min=6000, input_burst_tokens=500, max_active_sequences=4)


def limit(target: str, value: float | None) -> Override:
    return Override("limit", target, value, "key", "a test", 60.0)


def test_small_models_have_buckets_of_their_own_with_the_generators_figures() -> None:
    figures = figures_of({"acme": QUOTA})
    tokens, permits = Figures(6000 * RATE, 500 * UNITS), Figures(0, 4)
    assert figures == {
        Key("acme", "generator", "input"): tokens,
        Key("acme", "generator", "sequences"): permits,
        Key("acme", "small", "input"): tokens,
        Key("acme", "small", "sequences"): permits,
    }


def test_small_limits_stand_alone() -> None:
    quota = Quota(input_tokens_per_min=6000, small=Limits(requests_per_min=30))
    assert set(figures_of({"acme": quota})) == {
        Key("acme", "generator", "input"),
        Key("acme", "small", "requests"),
    }


def test_a_burst_left_out_is_a_minutes_amount() -> None:
    figures = figures_of({"acme": Quota(requests_per_min=30)})
    assert figures[Key("acme", "generator", "requests")] == Figures(30 * RATE, 30 * UNITS)


def test_overrides_beat_the_file() -> None:
    figures = figures_of(
        {"acme": QUOTA},
        [
            limit("acme/input_tokens_per_min", 60.0),
            limit("acme/max_active_sequences", None),
            limit("acme/small.requests_per_min", 5.0),
            limit("new/requests_per_min", 0.0),
        ],
    )
    assert figures[Key("acme", "generator", "input")].rate == 60 * RATE
    assert Key("acme", "generator", "sequences") not in figures
    assert Key("acme", "generator", "requests") not in figures
    assert figures[Key("acme", "small", "requests")].rate == 5 * RATE
    assert figures[Key("new", "generator", "requests")] == Figures(RATE, UNITS)


def test_a_limit_of_a_route_is_no_tenants() -> None:
    plain = figures_of({"acme": QUOTA})
    of_route = [
        limit("route:acme/max_queued_requests", 3.0),
        limit("route:a/b/requests_per_min", 1),
    ]
    assert figures_of({"acme": QUOTA}, of_route) == plain
