"""The quality gate: what counts, and when it looks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from modelyard.config.rollout import QualityGate
from modelyard.rollout.noninferiority import (
    Pairs,
    Votes,
    bound,
    judgements_needed,
    paired_z,
    unpaired_z,
)
from modelyard.rollout.outcome import Judgement, OutcomeArm
from modelyard.rollout.quality import Quality
from modelyard.rollout.verdict import GateState, Verdict


def judged(
    unit: str, good: bool, arm: OutcomeArm = "canary", pair: str = "", conversation: str = ""
) -> Judgement:
    return Judgement("r1", arm, unit, conversation, good, "judge", pair)


def both(first: int, count: int, stable: bool = True, canary: bool = True) -> list[Judgement]:
    return [
        one
        for number in range(first, first + count)
        for one in (
            judged(f"{number}", stable, "stable", f"{number}"),
            judged(f"{number}", canary, "canary", f"{number}"),
        )
    ]


def gate(judgements: int = 90) -> Quality:
    return Quality(QualityGate(judgements=judgements))


def verdict(quality: Quality) -> Verdict:
    one = quality.verdict()
    assert one is not None
    return one


def test_equal_answers_pass() -> None:
    quality = gate()
    quality.take(both(0, 90), "r1")
    assert verdict(quality).state is GateState.PASSING
    assert (verdict(quality).stable, verdict(quality).canary) == (1.0, 1.0)


def test_worse_answers_fail_at_the_first_look() -> None:
    quality = gate()
    quality.take([*both(0, 18), *both(18, 12, canary=False)], "r1")
    assert verdict(quality).state is GateState.FAILING
    assert verdict(quality).samples == 30


def test_a_decision_stands() -> None:
    quality = gate()
    quality.take(both(0, 30, canary=False), "r1")
    quality.take(both(30, 60, stable=False), "r1")
    assert verdict(quality).state is GateState.FAILING


def test_what_stays_undecided_asks_for_a_human() -> None:
    quality = gate()
    # Two worse of 30 at each look: about the margin.
    for first in (0, 30, 60):
        quality.take([*both(first, 28), *both(first + 28, 2, canary=False)], "r1")
    assert verdict(quality).state is GateState.WAITING
    assert verdict(quality).words == "undecided at 90 of 90 judgements: a human decides"
    assert verdict(quality).samples == 90


def test_it_does_not_look_between_its_looks() -> None:
    quality = gate()
    quality.take(both(0, 29, canary=False), "r1")
    assert verdict(quality).state is GateState.WAITING
    assert verdict(quality).words == "29 of 90 judgements; the next look is at 30"


def test_a_unit_counts_once_for_each_arm() -> None:
    quality = gate()
    for _ in range(3):
        quality.take([judged("a", False), judged("a", True, "stable")], "r1")
    assert (quality.counted(0), quality.counted(1)) == ((1, 1), (0, 1))


def test_a_conversation_has_one_vote() -> None:
    quality = gate()
    arms: tuple[OutcomeArm, ...] = ("stable", "canary")
    for arm in arms:
        quality.take([judged(f"{n}", True, arm, conversation=f"{arm}-c") for n in range(9)], "r1")
    assert verdict(quality).samples == 1
    assert quality.counted(1) == (9, 9)


def test_half_a_pair_is_none() -> None:
    quality = gate()
    quality.take(both(0, 3)[:-1], "r1")
    assert verdict(quality).samples == 2


def test_a_shadow_copy_is_the_canarys() -> None:
    quality = gate()
    quality.take([judged("a", True, "stable", "p"), judged("b", False, "shadow", "p")], "r1")
    assert verdict(quality).samples == 1
    assert quality.counted(1) == (0, 1)


@pytest.mark.parametrize("stranger", [None, 1, judged("a", True, "elsewhere")])  # type: ignore[arg-type]
def test_what_is_malformed_is_left_out(stranger: Judgement) -> None:
    quality = gate()
    quality.take([stranger], "r1")
    quality.take([judged("a", True)], "another")
    assert quality.counted(1) == (0, 0)


def test_the_order_within_a_batch_decides_nothing() -> None:
    def counted(batch: Iterable[Judgement]) -> tuple[object, ...]:
        quality = gate()
        quality.take(batch, "r1")
        return quality.counted(0), quality.counted(1), verdict(quality)

    batch = [*both(0, 2, canary=False), judged("0", True), judged("9", True, conversation="c")]
    assert len({counted(order) for order in permutations(batch)}) == 1


def test_answers_that_share_no_prompt_are_two_samples() -> None:
    quality = gate(900)
    arms: tuple[OutcomeArm, ...] = ("stable", "canary")
    for arm in arms:
        quality.take([judged(f"{arm}{n}", n % 10 > 0, arm) for n in range(900)], "r1")
    assert verdict(quality).state is GateState.PASSING


def test_two_samples_are_compared_within_their_step() -> None:
    """Questions became harder as the canary's share grew: no fault of the canary's."""
    steps = [Votes(900, 1000, 45, 50), Votes(250, 500, 250, 500)]
    assert unpaired_z(steps, 0.05) > 1.6
    pooled = [Votes(1150, 1500, 295, 550)]
    assert unpaired_z(pooled, 0.05) < -5


def test_tangos_score_is_mcnemars_without_a_margin() -> None:
    assert paired_z(Pairs(100, 12, 5), 1e-12, last=False) == pytest.approx(7 / 17**0.5)


def test_the_bounds_are_obrien_and_flemings() -> None:
    assert [round(bound(n, 450), 2) for n in (150, 300, 450)] == [2.96, 2.09, 1.71]


def test_another_margin_is_looked_at_anew_with_the_same_judgements() -> None:
    quality = gate()
    quality.take(both(0, 90), "r1")
    state = quality.state()
    changed = Quality(QualityGate(judgements=3000))
    changed.restore(state)
    assert verdict(quality).state is GateState.PASSING
    assert verdict(changed).state is GateState.WAITING
    assert verdict(changed).samples == 90


def test_a_look_is_at_just_its_number_whatever_the_batches() -> None:
    """The first 30 pairs are clearly worse; the 60 that come in the same batch are not asked."""
    together, apart = gate(), gate()
    rows = sorted(
        [*both(1000, 30, canary=False), *both(2000, 60, stable=False)],
        key=lambda one: (one.unit, one.arm),
    )
    together.take(rows, "r1")
    for one in rows:
        apart.take([one], "r1")
    assert verdict(together) == verdict(apart)
    assert verdict(together).state is GateState.FAILING


def test_what_was_paired_at_the_first_look_is_paired_at_the_last() -> None:
    quality = gate()
    quality.take(both(0, 30), "r1")
    for arm in ("stable", "canary"):
        quality.take([judged(f"{arm}{n}", True, arm) for n in range(400)], "r1")
    assert verdict(quality).samples == 30


@pytest.mark.parametrize("margin_points", [1.0, 3.0, 5.0, 12.0])
def test_with_fewer_judgements_than_are_needed_no_canary_could_pass(margin_points: float) -> None:
    needed = judgements_needed(margin_points)
    for judgements, passes in ((needed, True), (needed - 1, False)):
        one = Quality(
            QualityGate.model_construct(margin_points=margin_points, judgements=judgements)
        )
        one.take(both(0, judgements), "r1")
        assert (verdict(one).state is GateState.PASSING) is passes
