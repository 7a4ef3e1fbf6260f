"""Judged pairs through production's quality gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from modelyard.config.rollout import QualityGate
from modelyard.rollout.outcome import Judgement
from modelyard.rollout.quality import Quality
from modelyard.rollout.verdict import GateState
from modelyard.simulate.rollout import NAME
from modelyard.simulate.rollout_exact import Chances, Pairing
from modelyard.simulate.rollout_rows import FIRST_SEED, MOST_RUNS
from modelyard.simulate.rollout_share import Says, within

_AT_ONCE: Final = 25  # pairs that come together


@dataclass(frozen=True, slots=True)
class QualityRow:
    """most and least: of the runs, promoted."""

    key: str
    number: int
    name: str
    pairing: Pairing
    runs: int = 2000
    most: float = 1.0
    least: float = 0.0

    @property
    def first_seed(self) -> int:
        return FIRST_SEED + MOST_RUNS * self.number

    def says(self, exact: Chances) -> Says:
        return within((exact.promoted, exact.promoted), self.least, self.most)


EQUAL: Final = QualityRow("equal", 60, "equal, 10 % discordant", Pairing(0.05, 0.05), least=0.95)
INFERIOR: Final = QualityRow("inferior", 62, "worse by 8 points", Pairing(0.03, 0.11), most=0.005)
QUALITY: Final = (
    EQUAL,
    INFERIOR,
    QualityRow("equal-6", 61, "equal, 6 % discordant", Pairing(0.03, 0.03), least=0.95),
    QualityRow("margin", 63, "worse by the margin, 5 points", Pairing(0.03, 0.08)),
    QualityRow("worse-15", 64, "worse by 15 points", Pairing(0.02, 0.17), most=0.005),
)


def decisions(pairing: Pairing, seeds: Sequence[int], gate: QualityGate) -> list[GateState]:
    """A state a seed: passing is promoted, waiting is for a human."""
    return [_run(pairing, np.random.default_rng(seed), gate) for seed in seeds]


def _run(pairing: Pairing, rng: Generator, gate: QualityGate) -> GateState:
    quality = Quality(gate)
    draws = rng.random(gate.judgements)
    for first in range(0, gate.judgements, _AT_ONCE):
        judgements = [
            judgement
            for number, draw in enumerate(draws[first : first + _AT_ONCE], first)
            for judgement in _pair(number, float(draw), pairing)
        ]
        quality.take(judgements, NAME)
        verdict = quality.verdict()
        if verdict is not None and verdict.state is not GateState.WAITING:
            return verdict.state
    return GateState.WAITING


def _pair(number: int, draw: float, pairing: Pairing) -> tuple[Judgement, Judgement]:
    better = draw < pairing.better
    worse = pairing.better <= draw < pairing.better + pairing.worse
    return (
        Judgement(NAME, "stable", f"{number}", "", not better, "replay", f"{number}"),
        Judgement(NAME, "canary", f"{number}", "", not worse, "replay", f"{number}"),
    )
