"""Many simulated rollouts, on all cores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import typer

from modelyard.simulate.parallel import run_all
from modelyard.simulate.rollout import Ending, Run, runs

T = TypeVar("T")

_PARTS: Final = 40  # each goes to one core
_TOLD: Final = 10


def all_runs(what: str, one: Run, first_seed: int, count: int) -> list[Ending]:
    return on_all_cores(what, partial(runs, one), first_seed, count)


def on_all_cores(
    what: str, part: Callable[[Sequence[int]], list[T]], first_seed: int, count: int
) -> list[T]:
    """What `part` gives for all seeds. Progress goes to stderr, also where that is a file."""
    size = math.ceil(count / _PARTS)
    end = first_seed + count
    seeds = [range(start, min(start + size, end)) for start in range(first_seed, end, size)]
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if done * _TOLD // len(seeds) > (done - 1) * _TOLD // len(seeds):
            typer.echo(f"{what}: {100 * done // len(seeds)} % of {count}", err=True)

    return [one for few in run_all([partial(part, few) for few in seeds], tell) for one in few]
