"""The commands: their table, and their exit status."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from modelyard.simulate import overload, storm
from modelyard.simulate.goals import Goal
from modelyard.simulate.rows import BEST_BOUND
from modelyard.simulate.storm_rows import STORMS


def run(command: object, *arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(command)  # type: ignore[type-var]
    answer = CliRunner().invoke(app, arguments)
    return answer.exit_code, answer.output


@pytest.mark.parametrize(("bound", "status"), [(12.0, 0), (20.0, 1)])
def test_overload_says_which_goal_is_missed(
    bound: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = Goal(BEST_BOUND, "in time/s", lambda figures: figures.in_time_per_s, bound)
    monkeypatch.setattr(overload, "ROWS", (BEST_BOUND,))
    monkeypatch.setattr(overload, "GOALS", (goal,))
    monkeypatch.setattr(overload, "SEEDS", 1)
    code, output = run(overload.main, "--seeds", "1")
    assert code == status
    assert ("MISSED" in output) is bool(status)
    assert "bounded queue, 10" in output


def test_a_goal_is_not_missed_by_fewer_seeds_than_it_is_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goal = Goal(BEST_BOUND, "in time/s", lambda figures: figures.in_time_per_s, 20.0)
    monkeypatch.setattr(overload, "ROWS", (BEST_BOUND,))
    monkeypatch.setattr(overload, "GOALS", (goal,))
    code, output = run(overload.main, "--seeds", "1")
    assert code == 0
    assert "MISSED" not in output
    assert "of 1 seeds; the goals are for 20" in output


@pytest.mark.parametrize(("most", "status"), [(1.10, 0), (1.0, 1)])
def test_storm_fails_where_obedient_clients_send_too_much(
    most: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storm, "STORMS", (STORMS[3],))
    monkeypatch.setattr(storm, "MOST_ATTEMPTS", most)
    code, output = run(storm.main, "--seeds", "1")
    assert code == status
    assert "40 processes that obey" in output


def test_no_seeds_is_a_usage_error() -> None:
    assert run(storm.main, "--seeds", "0")[0] == 2
