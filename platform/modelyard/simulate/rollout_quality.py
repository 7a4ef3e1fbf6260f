"""Judged pairs through production's quality gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from modelyard.config.rollout import QualityGate
from modelyard.rollout.outcome import Judgement
from modelyard.rollout.quality import Quality
from modelyard.rollout.verdict import GateState

_AT_ONCE: Final = 25  # pairs that come together


@dataclass(frozen=True, slots=True)
class Pairing:
    """Shares of pairs in which only one answer is good: the canary's, the control arm's."""

    name: str
    better: float
    worse: float


@dataclass(frozen=True, slots=True)
class Decisions:
    """Shares of the runs."""

    promoted: float
    failed: float
    undecided: float


def decisions(pairing: Pairing, runs: int, seed: int, gate: QualityGate) -> Decisions:
    rng = np.random.default_rng(seed)
    states = [_run(pairing, rng, gate) for _ in range(runs)]
    promoted, failed, undecided = (
        states.count(state) / runs
        for state in (GateState.PASSING, GateState.FAILING, GateState.WAITING)
    )
    return Decisions(promoted, failed, undecided)


def _run(pairing: Pairing, rng: Generator, gate: QualityGate) -> GateState:
    quality = Quality(gate)
    draws = rng.random(gate.judgements)
    for first in range(0, gate.judgements, _AT_ONCE):
        judgements = [
            judgement
            for number, draw in enumerate(draws[first : first + _AT_ONCE], first)
            for judgement in _pair(number, float(draw), pairing)
        ]
        quality.take(judgements, "simulated")
        verdict = quality.verdict()
        if verdict is not None and verdict.state is not GateState.WAITING:
            return verdict.state
    return GateState.WAITING


def _pair(number: int, draw: float, pairing: Pairing) -> tuple[Judgement, Judgement]:
    better = draw < pairing.better
    worse = pairing.better <= draw < pairing.better + pairing.worse
    return (
        Judgement("simulated", "stable", f"{number}", "", not better, "replay", f"{number}"),
        Judgement("simulated", "canary", f"{number}", "", not worse, "replay", f"{number}"),
    )
