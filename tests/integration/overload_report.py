"""What an overload run shows, from its clients' view and from the request log."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tests.integration.offered_load import Answered, Run, refusals

BASELINE_STEP_S: Final = 0.25
BASELINE_WINDOW_S: Final = 1.0
PIECE_S: Final = 5.0
ON_TIME_S: Final = 0.1
SETTLE_S: Final = 15.0  # after the load has fallen: what comes later is the baseline


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of the request log. at_s: when it arrived, from the start of the run. file: that of
    the ingress that had it."""

    file: str
    at_s: float
    tenant: str
    status: int
    queued_s: float
    held_s: float


def read_log(folder: Path, run: Run) -> list[Logged]:
    """The requests of a run, by arrival."""
    found = [
        _logged(path.name, json.loads(line), run.began)
        for path in folder.glob("requests-*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return sorted((one for one in found if one.at_s >= 0), key=lambda one: one.at_s)


def _logged(file: str, line: Mapping[str, Any], began: float) -> Logged:
    queued_s = line.get("queued_ms", 0.0) / 1000
    held_s = line["duration_ms"] / 1000 - queued_s if line.get("attempt") else 0.0
    at_s = datetime.fromisoformat(line["ts"]).timestamp() - began
    return Logged(file, at_s, line.get("tenant", ""), line["status"], queued_s, held_s)


def saturation(run: Run) -> float:
    """Answers a second while every slot was busy: without the first and the last tenth."""
    ends = sorted(one.outcome.ended for one in run.answers if one.completed)
    cut = len(ends) // 10
    steady = ends[cut:-cut]
    return (len(steady) - 1) / (steady[-1] - steady[0])


def quantiles(values: Sequence[float], *parts: float) -> list[float | None]:
    ordered = sorted(values)
    if not ordered:
        return [None for _ in parts]
    return [round(ordered[min(int(part * len(ordered)), len(ordered) - 1)], 3) for part in parts]


@dataclass(frozen=True, slots=True)
class Goodput:
    """Of the requests that were due in a window. late_percent: of the answers."""

    offered_per_s: float
    good_per_s: float
    of_capacity_percent: float
    of_offered_percent: float
    late_percent: float
    refused: dict[str, int]

    @classmethod
    def of(
        cls, answers: Sequence[Answered], seconds: float, capacity_per_s: float, deadline_s: float
    ) -> Goodput:
        done = [one for one in answers if one.completed]
        good = [one for one in done if one.latency_s <= deadline_s]
        return cls(
            round(len(answers) / seconds, 2),
            round(len(good) / seconds, 2),
            round(100 * len(good) / seconds / capacity_per_s, 1),
            round(100 * len(good) / max(1, len(answers)), 1),
            round(100 * (len(done) - len(good)) / max(1, len(done)), 2),
            refusals(answers),
        )


def undisturbed(run: Run, from_s: float, to_s: float) -> list[tuple[float, float]]:
    """The pieces of a span in which the clients themselves ran on time.

    Where they did not, something else had the machine's cores: the platform's as well.
    """
    pieces = int((to_s - from_s) / PIECE_S)
    spans = [(from_s + n * PIECE_S, from_s + (n + 1) * PIECE_S) for n in range(pieces)]
    return [span for span in spans if all(one.late_s <= ON_TIME_S for one in run.since(*span))]


def retry_afters(answers: Sequence[Answered]) -> list[float]:
    return [one.outcome.retry_after_s for one in answers if one.outcome.retry_after_s is not None]


def mean_wait_s(lines: Sequence[Logged], from_s: float, to_s: float) -> float:
    """Of those that got a slot."""
    waits = [one.queued_s for one in lines if from_s <= one.at_s < to_s and one.held_s]
    return statistics.fmean(waits) if waits else 0.0


def back_after_s(lines: Sequence[Logged], fell_at_s: float, end_s: float) -> float | None:
    """Seconds from the fall of the load until a window's mean wait is one of the usual ones.

    Usual is what 95 % of the windows show once the load has been low for a while.
    """
    usual = sorted(_windows(lines, fell_at_s + SETTLE_S, end_s))
    limit_s = usual[int(0.95 * len(usual))]
    for step, wait_s in enumerate(_windows(lines, fell_at_s, end_s)):
        if wait_s <= limit_s:
            return step * BASELINE_STEP_S
    return None


def _windows(lines: Sequence[Logged], from_s: float, to_s: float) -> Iterator[float]:
    at_s = from_s
    while at_s + BASELINE_WINDOW_S <= to_s:
        yield mean_wait_s(lines, at_s, at_s + BASELINE_WINDOW_S)
        at_s += BASELINE_STEP_S


def mean_held_s(lines: Sequence[Logged]) -> dict[str, float]:
    """By ingress, the one with most requests first: what a replica's refusals cost shows here."""
    by_file: dict[str, list[float]] = {}
    for one in lines:
        by_file.setdefault(one.file, []).append(one.held_s)
    ordered = sorted(by_file.items(), key=lambda item: -len(item[1]))
    return {file: round(statistics.fmean(held), 3) for file, held in ordered}


def busy_percent(lines: Sequence[Logged], from_s: float, to_s: float, slots: int) -> float:
    """Of the slots' time, by when a request began: how much of it somebody held one."""
    held_s = sum(one.held_s for one in lines if from_s <= one.at_s + one.queued_s < to_s)
    return round(100 * held_s / (slots * (to_s - from_s)), 1)


def show(title: str, figures: Mapping[str, Any]) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        shown = json.dumps(asdict(value)) if isinstance(value, Goodput) else value
        print(f"  {name}: {shown}", flush=True)
