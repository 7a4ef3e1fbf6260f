"""The rollouts' gates: their goals, and small versions of them.

Each goal has its proof that it can be missed: the seed's point rule, in the gates' place, on the
same traffic.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from modelyard.config.rollout import QualityGate
from modelyard.rollout.evidence import Evidence
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.rollout.verdict import GateState, Verdict
from modelyard.simulate import rollout_gates
from modelyard.simulate.rollout import NAME, Run, run, runs
from modelyard.simulate.rollout_bounds import share_interval
from modelyard.simulate.rollout_exact import chances
from modelyard.simulate.rollout_point import by_point_rule
from modelyard.simulate.rollout_quality import (
    EQUAL,
    INFERIOR,
    QUALITY,
    QualityRow,
    decisions,
)
from modelyard.simulate.rollout_rows import (
    AA,
    AA_TURNS,
    CHATTY,
    ERRORS,
    FALSE,
    SHARED_INCIDENT,
    SLOW,
    WEIGHT,
    Row,
    chosen,
    one_step,
    turns,
)
from modelyard.simulate.rollout_rules import RULES, share_of_rule
from modelyard.simulate.rollout_runs import all_runs
from modelyard.simulate.rollout_share import Goal, share_of
from modelyard.simulate.rollout_traffic import Arm, Stream, Traffic


def short(traffic: Traffic, **changes: object) -> Run:
    """25 % for three minutes: ten canary requests a second."""
    plan = Run().plan.model_copy(
        update={"steps_percent": (25.0, 100.0), "hold_s": 180.0, **changes}
    )
    return Run(traffic, plan, tick_s=5.0, passed_at=100.0)


SAME = short(Traffic())
INCIDENT = short(Traffic(incident=(20.0, 120.0, 0.3)))
ERRORS_UP = short(Traffic(canary=Arm(errors=0.04)))


def test_a_run_is_its_seeds() -> None:
    assert run(ERRORS_UP, 3) == run(ERRORS_UP, 3)
    assert len({run(ERRORS_UP, seed).after_s for seed in range(4)}) > 1


def test_the_same_version_goes_all_the_way() -> None:
    whole = Run(plan=SAME.plan, tick_s=10.0)
    ending = run(whole, 1)
    assert ending.end == "passed"
    assert ending.after_s == pytest.approx(2 * 180.0, abs=20)


@pytest.mark.parametrize(
    ("gates", "canary"),
    [
        ({"errors"}, Arm(errors=0.05)),
        ({"ttft", "e2e"}, Arm(first=1.8, pace=1.8)),
        ({"errors"}, Arm(refused=0.2)),
    ],
    ids=["errors", "slower", "refused"],
)
def test_a_worse_one_is_rolled_back(gates: set[str], canary: Arm) -> None:
    one = replace(short(Traffic(canary=canary)), way="outcomes")
    endings = runs(one, range(3))
    assert {ending.gate for ending in endings} <= gates


def test_a_chatty_one_is_slower_too_and_a_human_is_asked_where_that_is_on_hold() -> None:
    by_default = run(short(CHATTY), 1)
    assert (by_default.end, by_default.gate) == ("rolled_back", "e2e")
    held = chosen(["chatty-hold"])[0].run
    gates = held.plan.gates
    ending = run(short(CHATTY, gates=gates), 1)
    assert ending.end == "passed"
    assert ending.asked == {"tokens", "e2e"}


@pytest.mark.parametrize("traffic", [Traffic(canary=Arm(errors=0.04)), turns(Traffic(), 5)])
def test_arrays_and_records_that_are_saved_and_read_give_the_same_verdicts(
    traffic: Traffic,
) -> None:
    plan = SAME.plan
    arrays, records = Evidence(plan), Evidence(plan)
    for evidence in (arrays, records):
        evidence.begin_step(25.0, 0.0)
    stream = Stream(traffic, np.random.default_rng(5))
    for number, (now, drawn) in enumerate(stream.ticks(0.25, 0.0, 120.0, 5.0)):
        arrays.take_columns(drawn.columns(), now)
        records.take(OutcomeBatch(number, drawn.outcomes(NAME)), now)
        records = Evidence.decode(records.encode(), plan)
        assert [said(one) for one in records.verdicts()] == [said(one) for one in arrays.verdicts()]
    assert records.samples == arrays.samples > 0


def said(one: Verdict) -> tuple[object, ...]:
    figures = (one.stable, one.canary, one.evidence)
    return one.gate, one.state, one.samples, *(pytest.approx(figure) for figure in figures)


@pytest.mark.parametrize("one", [SAME, ERRORS_UP, short(turns(Traffic(canary=Arm(0.06)), 5))])
def test_both_ways_end_alike(one: Run) -> None:
    other = replace(one, way="outcomes")
    assert runs(one, range(3)) == runs(other, range(3))


FAST = [
    pytest.param(SAME, FALSE, 30, id="same"),
    pytest.param(INCIDENT, FALSE, 20, id="incident"),
]


@pytest.mark.parametrize(("one", "goal", "count"), FAST)
def test_few_runs_do_not_miss_the_goal_and_the_point_rule_does(
    one: Run, goal: Goal, count: int
) -> None:
    assert goal.says(share_of(runs(one, range(count)))) != "missed"
    assert goal.says(share_of(runs(by_point_rule(one), range(count)))) == "missed"


@pytest.mark.parametrize("one", [ERRORS_UP, short(Traffic(canary=Arm(first=1.5, pace=1.5)))])
def test_few_runs_of_a_worse_version_do_not_miss_the_goal(one: Run) -> None:
    goal = Goal(least=0.9, median_s=120.0)
    assert goal.says(share_of(runs(one, range(10)))) != "missed"
    assert goal.says(share_of(runs(SAME, range(10)))) == "missed"


def test_the_point_rule_on_the_same_traffic_turns_back_as_many_as_the_seed_says() -> None:
    step = replace(one_step(Traffic()), tick_s=20.0)
    rule = share_of(runs(by_point_rule(step), range(100)))
    assert 0.3 < rule.rolled_back / rule.runs < 0.6


def test_the_seeds_point_rule_turns_back_four_of_ten_equal_versions() -> None:
    shares = [share_of_rule(rule, Traffic(), WEIGHT, 4000, 1).rolled_back for rule in RULES]
    assert shares == pytest.approx([0.428, 0.23, 0.0135], abs=0.025)


def test_the_command_runs_one_row_and_says_which_goal_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = typer.Typer()
    app.command()(rollout_gates.main)
    monkeypatch.setattr(rollout_gates, "all_runs", lambda _, one, seed, count: runs(one, [seed]))
    for goal, status in ((Goal(most=0.99), 0), (Goal(least=0.99), 1)):
        row = Row("tiny", 1, "equal", replace(SAME, tick_s=20.0), 1, goal)
        monkeypatch.setattr(rollout_gates, "ROWS", (row,))
        answer = CliRunner().invoke(app, ["--row", "tiny", "--runs", "1", "--first-seed", "4"])
        assert answer.exit_code == (0 if status == 0 else 1), answer.output
        assert ("missed" in answer.output) == (status == 1)
        assert "0: 0.00 % [0.00 %, 97.50 %]" in answer.output
    assert CliRunner().invoke(app, ["--row", "unknown"]).exit_code == 2


@pytest.mark.parametrize("row", QUALITY, ids=lambda row: row.key)
def test_judged_pairs_meet_their_goals_exactly(row: QualityRow) -> None:
    exact = chances(row.pairing, QualityGate())
    assert exact.promoted + exact.failed + exact.undecided == pytest.approx(1.0, abs=1e-9)
    assert row.says(exact) == "met"


def test_fewer_pairs_miss_the_goal() -> None:
    assert EQUAL.says(chances(EQUAL.pairing, QualityGate(judgements=335))) == "missed"
    assert INFERIOR.says(chances(INFERIOR.pairing, QualityGate(margin_points=9.0))) == "missed"


@pytest.mark.parametrize("row", [EQUAL, INFERIOR], ids=lambda row: row.key)
def test_the_gate_decides_as_often_as_it_exactly_should(row: QualityRow) -> None:
    gate = QualityGate()
    states = decisions(row.pairing, range(100), gate)
    low, high = share_interval(states.count(GateState.PASSING), len(states))
    assert low <= chances(row.pairing, gate).promoted <= high


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", [AA, AA_TURNS, ERRORS, SLOW, SHARED_INCIDENT], ids=lambda row: row.key
)
def test_the_gates_meet_their_goals(row: Row) -> None:
    share = share_of(all_runs(row.key, row.run, row.first_seed, row.runs), row.since_s)
    assert row.goal.says(share) == "met", share


@pytest.mark.slow
@pytest.mark.parametrize("row", [AA, SHARED_INCIDENT], ids=lambda row: row.key)
def test_the_point_rule_misses_the_goals_that_the_gates_meet(row: Row) -> None:
    share = share_of(all_runs(row.key, by_point_rule(row.run), row.first_seed, 100))
    assert row.goal.says(share) == "missed", share
