"""Whether the replicas for the next weight are there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.rollout.capacity import Capacity, Demand, capacity_for


@pytest.mark.parametrize(
    ("percent", "requests", "needed"), [(25, 4, 1), (25, 5, 2), (100, 7, 7), (1, 1, 1), (5, 0, 0)]
)
def test_a_weight_needs_its_share_of_what_runs_and_waits(
    percent: float, requests: int, needed: int
) -> None:
    assert capacity_for(percent, Demand(1, 8, requests)).needed_slots == needed


def test_without_traffic_it_still_needs_one_ready_replica() -> None:
    assert not capacity_for(100, Demand(0, 0, 0)).enough
    assert capacity_for(100, Demand(1, 8, 0)).enough


def test_what_is_missing_is_said_in_slots() -> None:
    assert Capacity(1, 8, 9).words == "replicas of the canary: 8 of 9 slots are ready"
    assert Capacity(1, 8, 8).words == ""


@given(st.integers(1, 20), st.integers(1, 64), st.integers(0, 2000), st.floats(0.1, 100))
def test_the_replicas_that_are_asked_for_are_enough_and_one_less_is_not(
    ready: int, each: int, requests: int, percent: float
) -> None:
    found = capacity_for(percent, Demand(ready, ready * each, requests))
    wanted = found.needed_replicas
    assert wanted * each >= found.needed_slots
    assert wanted == 1 or (wanted - 1) * each < found.needed_slots
