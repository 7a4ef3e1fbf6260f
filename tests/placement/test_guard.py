"""When nothing should move."""

from __future__ import annotations

import pytest

from placement.guard import Load, Peak, refusal

CALM = Load(in_flight={"a@1": 7, "b@1": 0}, slots={"a@1": 10, "b@1": 10})


def test_a_calm_platform_may_move() -> None:
    assert refusal(CALM, Peak()) == ""
    assert refusal(Load(), Peak()) == ""


def test_seventy_percent_of_all_slots_is_no_peak() -> None:
    assert refusal(Load(in_flight={"a@1": 7}, slots={"a@1": 10}), Peak()) == ""


@pytest.mark.parametrize(
    ("load", "word"),
    [
        (Load(known=False), "board"),
        (Load(frozen="key ops-1"), "frozen by key ops-1"),
        (Load(rollouts=("r1",)), "rollout r1"),
        (Load(waiting=1), "wait for a slot"),
        (Load(in_flight={"a@1": 10}, slots={"a@1": 10, "b@1": 90}), "a@1 has 10"),
        (Load(in_flight={"a@1": 1}), "0 slots"),
        (Load(in_flight={"a@1": 9, "b@1": 9}, slots={"a@1": 10, "b@1": 10}), "18 requests"),
    ],
)
def test_each_sign_of_a_peak_refuses_with_its_reason(load: Load, word: str) -> None:
    assert word in refusal(load, Peak())


def test_the_limits_are_the_callers() -> None:
    assert refusal(CALM, Peak(of_version=0.5)) != ""
    assert refusal(CALM, Peak(of_all=0.3)) != ""
