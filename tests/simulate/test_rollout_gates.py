"""The rollouts' gates: their goals, and small versions of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from modelyard.config.rollout import QualityGate
from modelyard.simulate import rollout_gates, rollout_rows
from modelyard.simulate.rollout import Run, run, runs, share_of
from modelyard.simulate.rollout_quality import decisions
from modelyard.simulate.rollout_rows import (
    CLUMPED,
    EQUAL,
    ERRORS,
    INCIDENT,
    INFERIOR,
    QUALITY_RUNS,
    SLOWER,
    WEIGHT,
    QualityRow,
    Row,
)
from modelyard.simulate.rollout_rules import RULES, share_of_rule
from modelyard.simulate.rollout_traffic import Arm, Traffic


def short(one: Run) -> Run:
    return replace(one, steps=(25.0, 100.0), step_s=120.0, tick_s=5.0)


def test_a_run_is_its_seeds() -> None:
    one = short(ERRORS.run)
    assert run(one, 3) == run(one, 3)


def test_the_same_version_is_promoted() -> None:
    assert not any(ending.gate for ending in runs(short(Run("same")), 5))


@pytest.mark.parametrize(
    ("gate", "canary"), [("errors", Arm(errors=0.04)), ("e2e", Arm(slower=1.8))]
)
def test_a_worse_one_is_rolled_back(gate: str, canary: Arm) -> None:
    endings = runs(short(Run("worse", Traffic(canary=canary))), 5)
    assert {ending.gate for ending in endings} <= {gate, "ttft" if gate == "e2e" else gate}
    assert max(ending.after_s for ending in endings) < 240


def test_a_chatty_one_is_held_for_a_human() -> None:
    ending = run(short(Run("chatty", Traffic(canary=Arm(longer=2.0)))), 1)
    assert (ending.gate, ending.held) == ("", frozenset({"tokens"}))


def test_an_incident_on_both_arms_turns_nothing_back() -> None:
    one = short(Run("incident", Traffic(incident=(20.0, 80.0, 0.3))))
    assert not any(ending.gate for ending in runs(replace(one, steps=(25.0,)), 5))


def test_conversations_stay_on_their_arm_within_a_step() -> None:
    rows = next(
        columns
        for _, columns in Traffic(turns=5.0).ticks(np.random.default_rng(1), 0.3, 0.0, 60.0, 60.0)
    )
    arms = {(int(key), bool(arm)) for key, arm in zip(rows.conversation, rows.canary, strict=True)}
    assert len(arms) == len({key for key, _ in arms}) < len(rows.canary)


def test_the_seeds_point_rule_turns_back_four_of_ten_equal_versions() -> None:
    shares = [share_of_rule(rule, Traffic(), WEIGHT, 4000, 1).rolled_back for rule in RULES]
    assert shares == pytest.approx([0.428, 0.23, 0.0135], abs=0.025)


def test_the_command_says_which_goal_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    app.command()(rollout_gates.main)
    for most, status in ((1.0, 0), (-1.0, 1)):
        row = Row(short(Run("equal")), 1, most=most)
        monkeypatch.setattr(rollout_gates, "ROWS", (row,))
        monkeypatch.setattr(rollout_gates, "QUALITY", ())
        answer = CliRunner().invoke(app, [])
        assert answer.exit_code == status, answer.output
        assert ("MISSED" in answer.output) == (status == 1)


@pytest.mark.parametrize(("row", "most"), [(EQUAL, 1.0), (INFERIOR, 0.02)])
def test_few_judged_pairs_decide_as_many_do(row: QualityRow, most: float) -> None:
    promoted = decisions(row.pairing, 100, 1, QualityGate()).promoted
    assert row.least - 0.08 <= promoted <= most


@pytest.mark.slow
def test_of_two_thousand_equal_versions_one_in_a_hundred_at_most_is_rolled_back() -> None:
    row = rollout_rows.AA
    share = share_of(runs(row.run, row.runs))
    assert share.runs >= 2000
    assert row.met(share), share


@pytest.mark.slow
@pytest.mark.parametrize("row", [ERRORS, SLOWER, INCIDENT, CLUMPED], ids=lambda row: row.run.name)
def test_the_gates_meet_their_goals(row: Row) -> None:
    share = share_of(runs(row.run, row.runs))
    assert row.met(share), share


@pytest.mark.slow
@pytest.mark.parametrize("row", [EQUAL, INFERIOR], ids=lambda row: row.pairing.name)
def test_judged_pairs_meet_their_goals(row: QualityRow) -> None:
    one = decisions(row.pairing, QUALITY_RUNS, 1, QualityGate())
    assert row.met(one), one
