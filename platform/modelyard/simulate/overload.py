"""The seeds' 130 % experiment on the production queue: `python -m modelyard.simulate.overload`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from modelyard.simulate.experiment import Figures, run_rows
from modelyard.simulate.goals import GOALS, SEEDS
from modelyard.simulate.rows import ROWS, trace_rows
from modelyard.simulate.show import progress, show

COLUMNS = (
    "policy",
    "in\ntime/s",
    "in over-\nload/s",
    "late\n%",
    "high\n%",
    "light\nshed %",
    "not\nstarted",
    "cut",
    "p99\nwait s",
    "recovery\ns",
)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each row.")] = SEEDS,
    trace: Annotated[
        list[Path] | None,
        typer.Option(help="CSV of recorded lengths; may be repeated: each is a tenant."),
    ] = None,
) -> None:
    """8 slots of 0.4 s, 26/s for 120 s, then 14/s until 300 s; useful within 2 s.

    Exit status 1 where a goal is missed; 0 with fewer seeds than the goals are for.
    """
    rows = ROWS if not trace else (*ROWS, *trace_rows(tuple(trace)))
    with progress("runs", len(rows) * seeds) as done:
        figures = run_rows(rows, seeds, done=done)
    by_name = {row.name: one for row, one in zip(rows, figures, strict=True)}
    show(
        f"130 % for 120 s, then 70 %: means of {seeds} seeds, "
        f"{figures[0].offered:.0f} requests each",
        COLUMNS,
        [(name, *_cells(one)) for name, one in by_name.items()],
    )
    few = seeds < SEEDS
    title = f"Goals (of {seeds} seeds; the goals are for {SEEDS})" if few else "Goals"
    show(title, ("policy", "figure", "is", "goal", ""), _goals(by_name, few))
    raise typer.Exit(0 if few or all(goal.met(by_name) for goal in GOALS) else 1)


def _cells(one: Figures) -> tuple[str, ...]:
    return (
        f"{one.in_time_per_s:.2f}",
        f"{one.overload_per_s:.2f}",
        f"{one.late_percent:.2f}",
        f"{one.high_percent:.2f}",
        f"{one.second_shed_percent:.2f}",
        f"{one.never_started:.0f}",
        f"{one.cut:.0f}",
        f"{one.p99_wait_s:.2f}",
        f"{one.recovery_s:.2f}",
    )


def _goals(figures: Mapping[str, Figures], few: bool) -> list[tuple[str, ...]]:
    return [
        (
            goal.row.name,
            goal.what,
            f"{goal.value(figures):.3f}",
            f"{'>=' if goal.at_least else '<='} {goal.bound:g}",
            "met" if goal.met(figures) else "not met" if few else "MISSED",
        )
        for goal in GOALS
    ]


if __name__ == "__main__":
    typer.run(main)
