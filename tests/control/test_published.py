"""What control publishes, and which of two words counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modelyard.control.published import (
    Override,
    OverrideKind,
    Published,
    RouteLimit,
    aged,
    newer,
)

FREEZE = Override("freeze", "gen@1.0.0", None, "ops-1", "a release", 10.0)


def test_a_later_epoch_counts_whatever_its_revision() -> None:
    old, new = Published(1, 9), Published(2, 1)
    assert newer(old, new) is new
    assert newer(new, old) is new
    assert newer(None, old) is old
    assert newer(old, None) is old
    assert newer(None, None) is None


def test_of_the_same_revision_the_one_that_came_last_counts() -> None:
    first = Published(1, 1, overrides=(FREEZE,))
    second = Published(1, 1, overrides=(replace(FREEZE, left_s=9.0),))
    assert newer(first, second) is second


def test_only_a_rollout_that_began_has_a_weight() -> None:
    word = Published(1, 1, (("a", 0.0), ("b", 25.0)))
    assert (word.weight("a"), word.weight("b"), word.weight("c")) == (0.0, 25.0, None)


def test_time_takes_overrides_away_and_nothing_else() -> None:
    word = Published(1, 1, (("a", 5.0),), frozenset("k"), (FREEZE,))
    assert aged(word, 4.0).overrides == (replace(FREEZE, left_s=6.0),)
    assert aged(word, 10.0) == replace(word, overrides=())


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        ("limit", "route:chat/max_queued_requests", RouteLimit("chat", "max_queued_requests")),
        (
            "limit",
            "route:team/embed/max_queued_tokens",
            RouteLimit("team/embed", "max_queued_tokens"),
        ),
        ("limit", "alpha/requests_per_min", None),
        ("freeze", "route:chat/max_queued_requests", None),
    ],
)
def test_a_limit_of_a_route_says_so_in_its_target(
    kind: OverrideKind, target: str, expected: RouteLimit | None
) -> None:
    assert Override(kind, target, 1.0, "ops-1", "a test", 10.0).of_route == expected
