"""A route's versions and the options of its overload."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.config.overload import Overload
from modelyard.config.routes import Route, RouteLimits


def test_every_version_that_may_answer_is_a_version_of_the_route() -> None:
    route = Route.model_validate(
        {
            "stable": "m@1.0.0",
            "canary": "m@2.0.0",
            "overload": {"fallback": "s@1.0.0"},
            "constraints": [{"failover": "f@1.0.0"}],
        }
    )
    assert route.versions() == {"m@1.0.0", "m@2.0.0", "s@1.0.0", "f@1.0.0"}
    assert Route(stable="m@1.0.0").versions() == {"m@1.0.0"}


def test_left_out_nothing_is_bounded_by_hand_and_nothing_is_degraded() -> None:
    assert Route(stable="m@1.0.0").overload == Overload()
    limits = RouteLimits()
    assert (limits.max_queued_requests, limits.max_queued_tokens) == (None, None)
    overload = Overload()
    assert (overload.order, overload.cap_output_tokens, overload.fallback) == (
        "deadline",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"overload": {"fallback": "m@1.0.0"}},
            "overload.fallback 'm@1.0.0' is the stable version: name another version",
        ),
        (
            {"canary": "m@2.0.0", "overload": {"fallback": "m@2.0.0"}},
            "overload.fallback 'm@2.0.0' is the canary: name another version",
        ),
        ({"overload": {"fallback": "m"}}, "String should match pattern"),
        ({"overload": {"cap_output_tokens": 0}}, "greater than 0"),
        ({"overload": {"age_cap_s": 1}}, "age_cap_s is of no use without `order: shortest`"),
        ({"overload": {"order": "shortest", "age_cap_s": 0}}, "greater than 0"),
        ({"overload": {"cap_at_percent": 10}}, "of no use without cap_output_tokens: add it"),
        ({"overload": {"fall_back": "s@1.0.0"}}, "Extra inputs are not permitted"),
        ({"limits": {"max_queued_requests": 0}}, "greater than 0"),
        ({"limits": {"max_queued_tokens": -1}}, "greater than 0"),
    ],
)
def test_a_wrong_option_is_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Route.model_validate({"stable": "m@1.0.0"} | changes)
    assert expected in str(caught.value)
