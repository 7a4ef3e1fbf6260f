"""What the gates of a rollout cost and see: `python -m modelyard.simulate.rollout_gates`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import typer

from modelyard.config.rollout import QualityGate
from modelyard.simulate import rollout_cells as cells
from modelyard.simulate.rollout_exact import chances
from modelyard.simulate.rollout_point import by_point_rule
from modelyard.simulate.rollout_quality import QUALITY, QualityRow, decisions
from modelyard.simulate.rollout_rows import FIRST_SEED, MOST_RUNS, ROWS, WEIGHT, Row
from modelyard.simulate.rollout_rules import RULES, share_of_rule
from modelyard.simulate.rollout_runs import all_runs, on_all_cores
from modelyard.simulate.rollout_share import Says, share_of, worst
from modelyard.simulate.rollout_traffic import Traffic

_RULE_RUNS: Final = 4000
_RULE_ROWS: Final = (
    ("the same version", Traffic()),
    ("errors 1 -> 3 %", next(row for row in ROWS if row.key == "errors").run.traffic),
    ("3 minutes of 30 % errors on both", next(r for r in ROWS if r.key == "incident").run.traffic),
)


def main(
    row: Annotated[
        list[str] | None, typer.Option(help="Of this key alone; may be given again.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, max=MOST_RUNS, help="Instead of a row's.")
    ] = None,
    first_seed: Annotated[int | None, typer.Option(min=0, help="Instead of a row's.")] = None,
) -> None:
    """Production's gates under production's state machine, in virtual time; Markdown on stdout.

    Exit status 1 where a goal is missed: its 95 % interval is on the other side. 2 for a key that
    no row has.
    """
    keys = set(row or ())
    if unknown := keys - {one.key for one in (*ROWS, *QUALITY)} - {"rules"}:
        typer.echo(f"no row {', '.join(sorted(unknown))}: see simulate/rollout_rows.py", err=True)
        raise typer.Exit(2)
    said: list[Says] = []
    for number, one in enumerate(one for one in ROWS if not keys or one.key in keys):
        if number == 0:
            _heading(cells.COLUMNS, first_seed)
        said.append(_simulate(one, runs or one.runs, first_seed))
    for number, judged in enumerate(one for one in QUALITY if not keys or one.key in keys):
        if number == 0:
            _heading(cells.QUALITY_COLUMNS, first_seed)
        said.append(_judge(judged, runs or judged.runs, first_seed))
    if not keys or "rules" in keys:
        _rules(runs or _RULE_RUNS, first_seed)
    raise typer.Exit(1 if worst(said) == "missed" else 0)


def _simulate(row: Row, count: int, first_seed: int | None) -> Says:
    seed = row.first_seed if first_seed is None else first_seed
    share = share_of(all_runs(row.key, row.run, seed, count), row.since_s)
    point = None
    if row.point:
        fewer = min(row.point, count)
        rule = by_point_rule(row.run)
        point = share_of(all_runs(f"{row.key}, point rule", rule, seed, fewer), row.since_s)
    typer.echo(cells.line(cells.of_row(row, share, point, seed)))
    return row.goal.says(share)


def _judge(row: QualityRow, count: int, first_seed: int | None) -> Says:
    seed = row.first_seed if first_seed is None else first_seed
    part = partial(decisions, row.pairing, gate=QualityGate())
    states = on_all_cores(row.key, part, seed, count)
    exact = chances(row.pairing, QualityGate())
    typer.echo(cells.line(cells.of_quality(row, exact, states, seed)))
    return row.says(exact)


def _rules(count: int, first_seed: int | None) -> None:
    """Others' rules on the errors of one step, each minute; without conversations."""
    seed = FIRST_SEED if first_seed is None else first_seed
    _heading(("one step, errors only", *(rule.name for rule in RULES)), first_seed)
    for name, traffic in _RULE_ROWS:
        shares = [share_of_rule(rule, traffic, WEIGHT, count, seed) for rule in RULES]
        typer.echo(cells.line((name, *(cells.of_rule(share) for share in shares))))


def _heading(columns: Sequence[str], first_seed: int | None) -> None:
    seeds = f"a row's own from {FIRST_SEED:,} on" if first_seed is None else f"from {first_seed:,}"
    typer.echo(f"\nSeeds: {seeds}; intervals: exact, 95 %.\n")
    typer.echo(cells.line(columns))
    typer.echo(cells.line(["---"] * len(columns)))


if __name__ == "__main__":
    typer.run(main)
