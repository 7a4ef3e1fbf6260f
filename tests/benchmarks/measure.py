"""Measuring: CPU seconds by process, paired ratios with their interval, tables."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

ROUNDS_MIN: Final = 4
RESAMPLES: Final = 4000
SEED: Final = 7  # of the resampling, so that one set of rounds always gives one interval


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of paired ratios and its 95 % interval (percentile bootstrap over the pairs)."""

    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        figures = f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"
        # Of so few the bootstrap gives the smallest and the largest: no interval of anything.
        return figures if self.rounds >= ROUNDS_MIN else f"{figures} ({self.rounds} rounds)"

    def verdict(self, bar: float, *, at_least: bool = False) -> str:
        """Whether the interval, or at least the median, is on the right side of a bar."""
        if self.rounds < ROUNDS_MIN:
            return f"{self.rounds} rounds are no verdict"
        worst, median, limit = self.high, self.median, bar
        if at_least:
            worst, median, limit = -self.low, -self.median, -bar
        if median > limit:
            return "MISSED"
        return "met" if worst <= limit else "median met, interval not"


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """ours/theirs round by round: what the machine did in a round falls on both sides of it."""
    return median_interval([a / b for a, b in zip(ours, theirs, strict=True)])


def median_interval(values: Sequence[float]) -> Ratio:
    """The median of values of one round each, with its interval."""
    draw = random.Random(SEED)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
    return Ratio(statistics.median(values), low, high, len(values))


def spread(values: Sequence[float], digits: int = 2) -> str:
    """`median (min..max)`."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"


class CpuMeter:
    """CPU seconds, user and system, by group of processes."""

    def __init__(self, processes: Sequence[tuple[psutil.Process, str]]) -> None:
        self._processes = processes
        self._seconds = dict.fromkeys((process for process, _ in processes), 0.0)

    def read(self) -> dict[str, float]:
        """Seconds so far. A process that is gone (Ray ends idle workers) keeps what it had."""
        by_group = dict.fromkeys((group for _, group in self._processes), 0.0)
        for process, group in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._seconds[process] = times.user + times.system
            by_group[group] += self._seconds[process]
        return by_group


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    head = psutil.Process(pid)
    return [head, *head.children(recursive=True)]


def busy_s(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {group: after[group] - before[group] for group in after}


def machine() -> dict[str, Any]:
    """What a figure depends on: when, and on which class of machine."""
    memory_gib = round(psutil.virtual_memory().total / 2**30)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {_cpu_model()}, {memory_gib} GiB",
        "load_1_min_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table, aligned for the terminal."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print(f"\n{title}\n\n" + "\n".join(lines), flush=True)


def write_json(path: Path | None, record: Mapping[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(record, indent=1) + "\n")
