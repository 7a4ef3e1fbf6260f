"""Is the canary's share of good answers lower by less than the margin? Scores, and when to look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOOKS: Final = 3
# O'Brien and Fleming's constant for 3 looks at one-sided 5 % (Jennison and Turnbull, 2000, table
# 2.3): the bound at a share t of the plan is this over the root of t.
_CONSTANT: Final = 1.710


@dataclass(frozen=True, slots=True)
class Pairs:
    """better: only the canary's answer was good; worse: only the control arm's."""

    pairs: int = 0
    better: int = 0
    worse: int = 0


@dataclass(frozen=True, slots=True)
class Votes:
    """Of a step, one a conversation."""

    stable_good: int = 0
    stable: int = 0
    canary_good: int = 0
    canary: int = 0


def judgements_needed(margin_points: float) -> int:
    """The fewest that a plan must ask for: with fewer, a canary whose every answer is as good as
    the control arm's would not pass at the last look. (Its z is n times the margin, for the
    variance of no difference is taken as that of one.) An equal model needs more to pass often.
    """
    return math.ceil(_CONSTANT / (margin_points / 100) - 1e-9)


def look_at(number: int, planned: int) -> int:
    """How many judgements the `number`-th look (from 1) waits for."""
    return math.ceil(planned * number / LOOKS)


def bound(samples: int, planned: int) -> float:
    """Of the z score, at so many of the planned judgements."""
    return _CONSTANT / math.sqrt(min(samples / planned, 1.0))


def paired_z(pairs: Pairs, margin: float, last: bool) -> float:
    """Of "worse by the margin", positive for the canary; margin is a share, 0 to 1.

    Tango's score (1998), which holds its level with few discordant pairs, at the early looks. The
    last look uses the plain variance (McNemar's): it promotes an equal model more often, 95 of 100
    with 450 pairs instead of 93. Its price: a canary worse by exactly the margin is promoted in 5.3
    to 6.8 % of rollouts (measured, by how many pairs differ), where 5 % is nominal.
    """
    n, b, c = pairs.pairs, pairs.better, pairs.worse
    if last:
        variance = max(b + c - (b - c) ** 2 / n, 1.0)
    else:
        linear = -b - c - (2 * n - b + c) * margin
        root = math.sqrt(linear * linear - 8 * n * c * margin * (1 + margin))
        variance = n * (2 * (root - linear) / (4 * n) - margin * (1 + margin))
    return (b - c + n * margin) / math.sqrt(variance)


def unpaired_z(steps: Sequence[Votes], margin: float) -> float:
    """As paired_z, of two samples. Each step is compared within itself (Mantel and Haenszel's
    weights): the arms' shares change from step to step, and so may what is asked."""
    difference = variance = total = 0.0
    for votes in steps:
        if not (votes.stable and votes.canary):
            continue
        weight = votes.stable * votes.canary / (votes.stable + votes.canary)
        difference += weight * (votes.canary_good / votes.canary - votes.stable_good / votes.stable)
        variance += weight**2 * (
            _variance(votes.stable_good, votes.stable) + _variance(votes.canary_good, votes.canary)
        )
        total += weight
    return (difference + total * margin) / math.sqrt(variance) if variance else 0.0


def _variance(good: int, judged: int) -> float:
    share = (good + 0.5) / (judged + 1)
    return share * (1 - share) / judged
