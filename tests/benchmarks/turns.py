"""Targets take turns under one load, so that whatever the machine does falls on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from tests.benchmarks.load import Job, Load, Loader
from tests.benchmarks.measure import CpuMeter, busy_s

IDLE_S: Final = 5.0

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Turn:
    """One target's window: CPU ms per request by group of processes, and what the client saw."""

    cpu_ms: dict[str, float]
    load: Load

    def path_ms(self, groups: Sequence[str]) -> float:
        return sum(self.cpu_ms[group] for group in groups)

    def cores(self, group: str) -> float:
        """How many cores a group kept busy. Near 0 for whoever is not under load."""
        return self.cpu_ms[group] * self.load.requests / 1000 / self.load.seconds


class Bench:
    """The means to measure one window."""

    def __init__(self, meter: CpuMeter, loader: Loader) -> None:
        self._meter = meter
        self._loader = loader

    def turn(self, job: Job) -> Turn:
        before = self._meter.read()
        load = self._loader.run(job)
        busy = busy_s(before, self._meter.read())
        return Turn({group: s * 1000 / load.requests for group, s in busy.items()}, load)

    def idle_percent(self) -> dict[str, float]:
        """Percent of a core that each group uses while nothing is asked of it."""
        before = self._meter.read()
        time.sleep(IDLE_S)
        busy = busy_s(before, self._meter.read())
        return {group: round(100 * s / IDLE_S, 1) for group, s in sorted(busy.items())}


def take_turns(
    targets: Sequence[Target], rounds: int, run: Callable[[Target, int], Turn]
) -> dict[Target, list[Turn]]:
    """`rounds` windows of each target. `run` gets the round's number as the seed of its load."""
    found: dict[Target, list[Turn]] = {target: [] for target in targets}
    for number in range(rounds):
        first = number % len(targets)  # nobody is always the one that comes after the other
        for target in (*targets[first:], *targets[:first]):
            found[target].append(run(target, number + 1))
    return found
