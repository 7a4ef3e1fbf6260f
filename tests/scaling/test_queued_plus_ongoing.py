"""The scaling rule: its examples, and what must hold whatever the load and the bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.lifecycle.silence import SILENT_S
from modelyard.scaling.queued_plus_ongoing import (
    STALE_AFTER_S,
    YOUNG_UNTIL_S,
    Decision,
    Signal,
    bounded,
    desired,
)
from modelyard.scaling.version_signal import Bound, VersionSignal


def signal(
    ongoing: float = 0,
    *,
    waiting: float = 0,
    target: int = 0,
    each: float = 24,
    age_s: float | None = 0.4,
    up_s: float = 600,
    **bounds: Any,
) -> Signal:
    return Signal(ongoing, each, target, VersionSignal(waiting, **bounds), age_s, up_s)


def by_ops(replicas: int) -> Bound:
    return Bound(replicas, "ops-1", 60.0)


REPLICAS = st.integers(0, 50)
LOAD = st.floats(0, 10_000, allow_nan=False)
BOUND = st.none() | st.builds(by_ops, REPLICAS)
VERSIONS = st.builds(
    VersionSignal,
    waiting=LOAD,
    wish=BOUND,
    floor=BOUND,
    ceiling=BOUND,
    freeze=BOUND,
)
SIGNALS = st.builds(
    Signal,
    ongoing=st.floats(-5, 10_000, allow_nan=False),
    target_ongoing_requests=st.floats(0.1, 1000),
    target=REPLICAS,
    version=VERSIONS,
    board_age_s=st.none() | st.floats(0, 60),
    board_up_s=st.floats(0, 60),
)
SEEING = SIGNALS.map(lambda made: replace(made, board_age_s=0.5, board_up_s=60.0))
UNFROZEN = SEEING.map(lambda made: replace(made, version=replace(made.version, freeze=None)))


def test_what_waits_counts_as_much_as_what_runs() -> None:
    # The seeds' example: what runs, alone, asks for 8 replicas; what is there asks for 11.
    assert desired(signal(160, each=20)).replicas == 8
    assert desired(signal(160, waiting=60, each=20)) == Decision(
        11, "60 waiting + 160 ongoing / 20"
    )


def test_an_idle_version_needs_no_replica_and_any_load_needs_one() -> None:
    assert desired(signal(target=2)) == Decision(0, "idle")
    assert desired(signal(0.01)).replicas == 1
    assert desired(signal(waiting=1)).replicas == 1


def test_a_late_metric_is_never_a_negative_load() -> None:
    assert desired(signal(-3.0, waiting=24)).replicas == 1


def test_a_wish_starts_a_version_without_any_load() -> None:
    assert desired(signal(wish=by_ops(1))) == Decision(1, "wished for while not loaded")
    assert desired(signal(48, wish=by_ops(1))).why == "0 waiting + 48 ongoing / 24"


def test_bounds_say_whose_they_are() -> None:
    assert desired(signal(floor=by_ops(2))) == Decision(2, "floor 2 by ops-1")
    assert desired(signal(240, ceiling=by_ops(3))) == Decision(3, "ceiling 3 by ops-1")


def test_a_floor_beats_a_ceiling() -> None:
    assert desired(signal(floor=by_ops(4), ceiling=by_ops(1))).replicas == 4


def test_a_freeze_keeps_the_target_whatever_is_asked() -> None:
    asked = signal(480, target=3, freeze=by_ops(0), floor=by_ops(9), wish=by_ops(9))
    assert desired(asked) == Decision(3, "frozen by ops-1")


@pytest.mark.parametrize(
    ("age_s", "up_s", "why"),
    [
        (None, 0.0, "held: no reading of the board yet"),
        (STALE_AFTER_S + 1, 600.0, "held: board silent for 4 s"),
        (0.4, YOUNG_UNTIL_S - 1, "held: board began 24 s ago"),
    ],
)
def test_without_a_whole_word_of_the_board_nothing_is_taken_away(
    age_s: float | None, up_s: float, why: str
) -> None:
    assert desired(signal(24, target=5, age_s=age_s, up_s=up_s)) == Decision(5, why)


def test_without_a_reading_rays_own_numbers_still_add() -> None:
    blind = signal(240, target=5, age_s=None)
    assert desired(blind) == Decision(10, "0 waiting + 240 ongoing / 24")


def test_a_queue_of_long_ago_is_not_counted() -> None:
    # What waited then is in Ray's own total by now: twice would be too much.
    assert desired(signal(48, waiting=48, target=2, age_s=30)).replicas == 2


def test_a_young_board_still_adds() -> None:
    assert desired(signal(waiting=48, target=1, up_s=0.1)).replicas == 2


def test_a_board_as_young_as_control_believes_none_takes_nothing_away() -> None:
    # Control says nothing of loaded models before it has looked: nobody knows of a floor.
    assert YOUNG_UNTIL_S > SILENT_S
    assert desired(signal(target=1, up_s=SILENT_S + 1)).replicas == 1


def test_the_configs_bounds_are_told() -> None:
    assert bounded(Decision(9, "load"), 1, 3) == Decision(3, "load, at most max_replicas 3")
    assert bounded(Decision(0, "idle"), 1, 3) == Decision(1, "idle, at least min_replicas 1")
    assert bounded(Decision(2, "load"), 1, 3) == Decision(2, "load")


@pytest.mark.parametrize("each", [0, -1, -0.5])
def test_a_target_must_be_positive(each: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        desired(signal(1, each=each))


@given(made=SIGNALS)
def test_never_a_negative_number_and_always_a_reason(made: Signal) -> None:
    decision = desired(made)
    assert decision.replicas >= 0
    assert decision.why


@given(made=SIGNALS, blind=st.sampled_from([(None, 0.0), (10.0, 600.0), (0.5, 1.0)]))
def test_a_blind_decision_never_takes_away(made: Signal, blind: tuple[float | None, float]) -> None:
    made = replace(made, board_age_s=blind[0], board_up_s=blind[1])
    assert desired(made).replicas >= made.target


@given(made=UNFROZEN)
def test_the_floor_is_kept_and_the_ceiling_too_unless_the_floor_is_higher(made: Signal) -> None:
    replicas = desired(made).replicas
    floor = made.version.floor.replicas if made.version.floor else 0
    assert replicas >= floor
    if made.version.ceiling:
        assert replicas <= max(floor, made.version.ceiling.replicas)


@given(made=SEEING, more=LOAD)
def test_more_load_never_needs_fewer(made: Signal, more: float) -> None:
    busier = replace(made, version=replace(made.version, waiting=made.version.waiting + more))
    assert desired(busier).replicas >= desired(made).replicas


@given(waiting=st.integers(0, 10**6), ongoing=st.integers(0, 10**6), each=st.integers(1, 1000))
def test_no_replica_holds_more_than_the_target_and_none_is_spare(
    waiting: int, ongoing: int, each: int
) -> None:
    replicas = desired(signal(ongoing, waiting=waiting, each=each)).replicas
    assert replicas * each >= waiting + ongoing
    assert (replicas - 1) * each < waiting + ongoing


@given(made=SEEING)
def test_a_decision_once_followed_is_made_again(made: Signal) -> None:
    # Otherwise the fleet would move for ever under a constant load.
    replicas = desired(made).replicas
    assert desired(replace(made, target=replicas)).replicas == replicas
