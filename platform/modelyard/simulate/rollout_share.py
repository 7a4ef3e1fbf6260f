"""What came of many runs, and whether that shows a goal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from modelyard.simulate.rollout import Ending
from modelyard.simulate.rollout_bounds import median_interval, share_interval

Says = Literal["met", "missed", "not shown"]


@dataclass(frozen=True, slots=True)
class Share:
    """Of `runs`. times_s: a run each, from the canary's fault to the end; inf where it was not
    rolled back. early: rolled back before the fault. gates: what rolled back. asked: how many had
    a human asked, and by which gates; asked_s: when."""

    runs: int
    rolled_back: int
    open: int
    early: int
    times_s: tuple[float, ...]
    gates: Counter[str]
    asked: int
    asked_by: Counter[str]
    asked_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return quantile(self.times_s, 0.5)


@dataclass(frozen=True, slots=True)
class Goal:
    """most and least: of the runs, rolled back. median_s: of all runs' times."""

    most: float = 1.0
    least: float = 0.0
    median_s: float = math.inf

    def parts(self, share: Share) -> tuple[tuple[str, Says], ...]:
        """What is wanted, and whether the bounds show it: what they allow either way is not."""
        said: list[tuple[str, Says]] = []
        interval = share_interval(share.rolled_back, share.runs)
        if self.most < 1:
            said.append((f"<= {100 * self.most:g} %", within(interval, 0.0, self.most)))
        if self.least > 0:
            said.append((f">= {100 * self.least:g} %", within(interval, self.least, 1.0)))
        if self.median_s < math.inf:
            median = within(median_interval(share.times_s), 0.0, self.median_s)
            said.append((f"median <= {self.median_s / 60:g} min", median))
        return tuple(said)

    def says(self, share: Share) -> Says:
        return worst(says for _, says in self.parts(share))


def within(interval: tuple[float, float], least: float, most: float) -> Says:
    """Whether an interval shows that what it is of lies between these."""
    low, high = interval
    if high < least or low > most:
        return "missed"
    return "met" if least <= low and high <= most else "not shown"


def worst(words: Iterable[Says]) -> Says:
    said = set(words)
    if "missed" in said:
        return "missed"
    return "not shown" if "not shown" in said else "met"


def share_of(endings: Sequence[Ending], since_s: float = 0.0) -> Share:
    """since_s: when the canary's fault begins."""
    back = [one for one in endings if one.end == "rolled_back"]
    asked = [one for one in endings if one.asked]
    return Share(
        runs=len(endings),
        rolled_back=len(back),
        open=sum(one.end == "open" for one in endings),
        early=sum(one.after_s <= since_s for one in back),
        times_s=tuple(
            one.after_s - since_s if one.end == "rolled_back" else math.inf for one in endings
        ),
        gates=Counter(one.gate for one in back),
        asked=len(asked),
        asked_by=Counter(gate for one in asked for gate in one.asked),
        asked_s=tuple(one.asked_s for one in asked),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value that so many of them do not exceed; nan of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
