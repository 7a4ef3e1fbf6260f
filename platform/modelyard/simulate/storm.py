"""The retry storm on the production queue: `python -m modelyard.simulate.storm`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import typer

from modelyard.simulate.parallel import run_all
from modelyard.simulate.show import progress, show
from modelyard.simulate.storm_rows import OBEYING, STORMS, StormFigures

MOST_ATTEMPTS: Final = 1.10  # for each call, of clients that obey
COLUMNS: Final = (
    "load, cost of an attempt: callers",
    "calls\n/s",
    "attempts\n/call",
    "attempts\n/s",
    "refused\n/s",
    "useful\n/s",
    "answered\n/s",
    "median\ns",
)


def main(seeds: Annotated[int, typer.Option(min=1, help="Runs of each row.")] = 5) -> None:
    """8 slots of 0.4 s for 120 s; useful within 2 s, callers wait 10 s.

    Exit status 1 where clients that obey send more than 1.1 attempts for each call.
    """
    runs = [partial(storm.run, seed) for storm in STORMS for seed in range(1, seeds + 1)]
    with progress("runs", len(runs)) as done:
        figures = run_all(runs, done)
    means = [StormFigures.mean(figures[i : i + seeds]) for i in range(0, len(figures), seeds)]
    rows = list(zip((storm.name for storm in STORMS), means, strict=True))
    show(
        f"Refused callers: means of {seeds} seeds",
        COLUMNS,
        [(name, *_cells(one)) for name, one in rows],
    )
    obeyed = [one.attempts_per_call for name, one in rows if name.endswith(OBEYING[0])]
    raise typer.Exit(0 if max(obeyed) <= MOST_ATTEMPTS else 1)


def _cells(one: StormFigures) -> tuple[str, ...]:
    return (
        f"{one.calls_per_s:.1f}",
        f"{one.attempts_per_call:.2f}",
        f"{one.attempts_per_s:.0f}",
        f"{one.refused_per_s:.1f}",
        f"{one.useful_per_s:.2f}",
        f"{one.answered_per_s:.2f}",
        f"{one.median_s:.2f}",
    )


if __name__ == "__main__":
    typer.run(main)
