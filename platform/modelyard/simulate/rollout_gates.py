"""What the gates of a rollout cost and see: `python -m modelyard.simulate.rollout_gates`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Final

import typer

from modelyard.config.rollout import QualityGate
from modelyard.simulate.rollout import Share, run, share_of
from modelyard.simulate.rollout_quality import Decisions, decisions
from modelyard.simulate.rollout_rows import QUALITY, QUALITY_RUNS, ROWS, WEIGHT, QualityRow, Row
from modelyard.simulate.rollout_rules import RULES, share_of_rule
from modelyard.simulate.show import progress, show

_RULE_RUNS: Final = 4000
_COLUMNS: Final = (
    "situation",
    "runs",
    "rolled\nback",
    "median\nmin",
    "held for\na human",
    *("point rule\n+0.5 points", "z-test\neach minute", "O'Brien-\nFleming"),
    "goal",
)


def main(
    runs_percent: Annotated[
        float, typer.Option(min=0.01, max=1000, help="Of the runs that the goals are for.")
    ] = 100.0,
) -> None:
    """40 requests a second, 1 % errors; production's gates beside three rules on errors.

    Exit status 1 where a goal is missed; 0 with fewer runs than the goals are for.
    """
    counts = [max(1, math.ceil(row.runs * runs_percent / 100)) for row in ROWS]
    with progress("rollouts", sum(counts)) as done:
        shares = [_share(row, count, done) for row, count in zip(ROWS, counts, strict=True)]
    show(
        f"Rollouts at 40 requests a second; one step is {100 * WEIGHT:g} % for 20 minutes",
        _COLUMNS,
        [_cells(row, share) for row, share in zip(ROWS, shares, strict=True)],
    )
    gate = QualityGate()
    quality_runs = max(1, math.ceil(QUALITY_RUNS * runs_percent / 100))
    judged = [decisions(row.pairing, quality_runs, 1, gate) for row in QUALITY]
    plan = f"{gate.judgements} pairs, margin {gate.margin_points:g} points"
    show(
        f"Quality: {plan}, {quality_runs} runs",
        ("the canary is", "promoted", "failed", "for a human", "goal"),
        [_quality_cells(row, one) for row, one in zip(QUALITY, judged, strict=True)],
    )
    met = all(row.met(share) for row, share in zip(ROWS, shares, strict=True)) and all(
        row.met(one) for row, one in zip(QUALITY, judged, strict=True)
    )
    raise typer.Exit(0 if met or runs_percent < 100 else 1)


def _share(row: Row, count: int, done: Callable[[], None]) -> Share:
    endings = []
    for seed in range(count):
        endings.append(run(row.run, seed))
        done()
    return share_of(endings)


def _cells(row: Row, share: Share) -> tuple[str, ...]:
    rules = ["-"] * len(RULES)
    if row.rules:
        traffic = row.run.traffic
        rules = [_rule(share_of_rule(rule, traffic, WEIGHT, _RULE_RUNS, 1)) for rule in RULES]
    return (
        row.run.name,
        str(share.runs),
        _percent(share.rolled_back),
        _minutes(share.median_s),
        _percent(share.held),
        *rules,
        _met(row.met(share), asked=row.most < 1 or row.least > 0),
    )


def _quality_cells(row: QualityRow, one: Decisions) -> tuple[str, ...]:
    figures = (one.promoted, one.failed, one.undecided)
    asked = row.most < 1 or row.least > 0
    return (row.pairing.name, *(_percent(figure) for figure in figures), _met(row.met(one), asked))


def _rule(share: Share) -> str:
    return f"{_percent(share.rolled_back)} ({_minutes(share.median_s)})"


def _met(met: bool, asked: bool) -> str:
    return ("met" if met else "MISSED") if asked else "-"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _minutes(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds / 60:.1f}"


if __name__ == "__main__":
    typer.run(main)
