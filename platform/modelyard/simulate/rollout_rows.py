"""What is simulated of rollouts, and what it must come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from modelyard.simulate.rollout import Run, Share
from modelyard.simulate.rollout_quality import Decisions, Pairing
from modelyard.simulate.rollout_traffic import Arm, Traffic

WEIGHT: Final = 0.05
_MINUTE_S: Final = 60.0
_INCIDENT: Final = (300.0, 480.0, 0.3)  # from, until, and the share of errors


def one_step(name: str, traffic: Traffic, tick_s: float = 2.0) -> Run:
    """20 minutes at 5 % of 40 requests a second: 2 a second on the canary."""
    return Run(name, traffic, steps=(100 * WEIGHT,), step_s=20 * _MINUTE_S, tick_s=tick_s)


@dataclass(frozen=True, slots=True)
class Row:
    """runs: as many as its goal needs. rules: whether other rules see it (errors only)."""

    run: Run
    runs: int
    rules: bool = False
    most: float = 1.0
    least: float = 0.0
    median_s: float = math.inf

    def met(self, share: Share) -> bool:
        late = share.median_s > self.median_s
        return self.least <= share.rolled_back <= self.most and not late


AA: Final = Row(Run("the same version, 1 to 100 %", tick_s=10.0), 2000, most=0.01)
ERRORS: Final = Row(
    one_step("errors 1 -> 3 %", Traffic(canary=Arm(errors=0.03))),
    runs=1000,
    rules=True,
    least=0.99,
    median_s=6 * _MINUTE_S,
)
SLOWER: Final = Row(
    one_step("1.3 x slower, sigma .5", Traffic(canary=Arm(slower=1.3))),
    runs=500,
    least=0.99,
    median_s=5 * _MINUTE_S,
)
INCIDENT: Final = Row(
    one_step("3 minutes of 30 % errors on both", Traffic(incident=_INCIDENT), tick_s=10.0),
    runs=2000,
    rules=True,
    most=0.001,
)
CLUMPED: Final = Row(
    one_step("the same, whole conversations fail", Traffic(turns=5.0, clumped=True), 10.0),
    runs=500,
    most=0.01,
)
ROWS: Final = (
    AA,
    Row(one_step("the same version, 20 min at 5 %", Traffic(), 5.0), 500, rules=True, most=0.01),
    ERRORS,
    Row(one_step("errors 1 -> 2 %", Traffic(canary=Arm(errors=0.02))), 200, rules=True),
    Row(
        Run("errors 1 -> 3 %, from 1 to 100 %", Traffic(canary=Arm(errors=0.03))),
        runs=200,
        least=0.99,
    ),
    Row(one_step("errors 1 -> 10 %", Traffic(canary=Arm(errors=0.1))), 300, rules=True),
    INCIDENT,
    Row(
        Run("such an incident at 50 %", Traffic(incident=_INCIDENT), steps=(50.0,), step_s=1200.0),
        runs=300,
        most=0.01,
    ),
    SLOWER,
    Row(one_step("1.3 x slower, sigma .9", Traffic(sigma=0.9, canary=Arm(slower=1.3))), 200),
    Row(one_step("1.05 x slower (inside)", Traffic(canary=Arm(slower=1.05)), 5.0), 200, most=0.01),
    Row(
        one_step("errors 1 -> 3 %, 5 turns", Traffic(canary=Arm(errors=0.03), turns=5.0)),
        runs=200,
    ),
    CLUMPED,
    Row(one_step("1.3 x slower, 5 turns", Traffic(canary=Arm(slower=1.3), turns=5.0)), 200),
    Row(one_step("answers 2 x longer", Traffic(canary=Arm(longer=2.0)), 5.0), 100),
    Row(one_step("answers 1.05 x longer (inside)", Traffic(canary=Arm(longer=1.05)), 5.0), 200),
)


@dataclass(frozen=True, slots=True)
class QualityRow:
    pairing: Pairing
    most: float = 1.0
    least: float = 0.0

    def met(self, decisions: Decisions) -> bool:
        return self.least <= decisions.promoted <= self.most


QUALITY_RUNS: Final = 4000
EQUAL: Final = QualityRow(Pairing("equal, 10 % discordant", 0.05, 0.05), least=0.95)
INFERIOR: Final = QualityRow(Pairing("worse by 8 points", 0.03, 0.11), most=0.005)
QUALITY: Final[Sequence[QualityRow]] = (
    EQUAL,
    QualityRow(Pairing("equal, 6 % discordant", 0.03, 0.03), least=0.95),
    QualityRow(Pairing("worse by the margin, 5 points", 0.03, 0.08)),
    INFERIOR,
    QualityRow(Pairing("worse by 15 points", 0.02, 0.17), most=0.005),
)
