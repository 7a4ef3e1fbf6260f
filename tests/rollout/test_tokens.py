"""The confidence sequence on answers' lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from modelyard.rollout.budget import log_threshold
from modelyard.rollout.columns import Columns
from modelyard.rollout.strata import Strata
from modelyard.rollout.tokens import TokenCounts, log_half_normal

REACHED = log_threshold("tokens")


def answers(
    rng: np.random.Generator, longer: float, n: int = 400, per_conversation: int = 1
) -> Columns:
    canary = np.repeat(rng.random(n // per_conversation) < 0.3, per_conversation)
    lengths = np.repeat(rng.normal(5, 0.9, n // per_conversation), per_conversation)
    nothing = np.full(n, math.nan)
    keys = np.repeat(rng.integers(1, 2**31, n // per_conversation), per_conversation)
    return Columns(
        canary=canary,
        stratum=np.zeros(n, dtype=np.int64),
        failed=np.zeros(n, dtype=np.bool_),
        conversation=keys if per_conversation > 1 else np.zeros(n, dtype=np.int64),
        ttft=nothing,
        e2e=nothing,
        log_tokens=lengths + math.log(longer) * canary,
    )


def counts(margin: float = 0.15) -> TokenCounts:
    one = TokenCounts(Strata(()), margin)
    one.begin()
    return one


@pytest.mark.parametrize("variance", [0.001, 0.01, 0.5])
def test_the_e_value_of_an_equal_mean_is_one_on_average(variance: float) -> None:
    # Beyond 9 deviations the prior's tail would need a grid of its own.
    spread = math.sqrt(variance)
    grid = np.linspace(-30, 30, 60_001) * spread
    density = np.exp(-(grid**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    values = np.array([math.exp(log_half_normal(x, variance, spread)) for x in grid.tolist()])
    assert float((values * density).sum() * (grid[1] - grid[0])) == pytest.approx(1, abs=1e-6)


def test_a_canary_twice_as_chatty_is_shown() -> None:
    one = counts()
    one.take(answers(np.random.default_rng(1), 2.0))
    assert one.against().log_e > REACHED
    assert one.log_inside() < 0


def test_a_canary_that_is_as_long_is_shown_to_be_inside() -> None:
    one = counts()
    one.take(answers(np.random.default_rng(1), 1.0, n=4000))
    assert one.log_inside() > REACHED
    assert one.against().log_e < 0


def test_answers_of_one_conversation_are_one_word() -> None:
    apart, together = counts(), counts()
    rows = answers(np.random.default_rng(1), 1.5, n=4000, per_conversation=20)
    together.take(rows)
    apart.take(
        Columns(
            rows.canary,
            rows.stratum,
            rows.failed,
            np.zeros_like(rows.conversation),
            rows.ttft,
            rows.e2e,
            rows.log_tokens,
        )
    )
    assert together.mean(1) == pytest.approx(apart.mean(1))
    assert apart.against().log_e > REACHED > together.against().log_e


def test_few_long_conversations_say_nothing_yet() -> None:
    one = counts()
    one.take(answers(np.random.default_rng(1), 4.0, n=4000, per_conversation=100))
    assert one.against().log_e < 0


def test_a_step_is_a_sample_of_its_own() -> None:
    one = counts()
    one.take(answers(np.random.default_rng(1), 1.0))
    one.begin()
    assert one.mean(1) is None
    one.take(answers(np.random.default_rng(2), 2.0))
    assert one.against().log_e > REACHED


def test_what_a_human_let_pass_in_one_step_is_not_held_against_the_next() -> None:
    one = counts()
    one.take(answers(np.random.default_rng(1), 2.5))
    one.begin()
    assert one.against().log_e < 0
