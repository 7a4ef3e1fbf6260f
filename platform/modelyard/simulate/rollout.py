"""Whole rollouts in virtual time, decided by production's own Evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from modelyard.config.rollout import Rollout
from modelyard.rollout.evidence import Evidence
from modelyard.rollout.verdict import GateState, Verdict
from modelyard.simulate.rollout_traffic import Traffic


@dataclass(frozen=True, slots=True)
class Run:
    """A rollout that is seen every tick_s; the plan's last step is left out where `until` says so.

    steps: percent. lasts_s: of a step; a step that has not its samples by then goes on.
    """

    name: str
    traffic: Traffic = field(default_factory=Traffic)
    plan: Rollout = field(default_factory=lambda: Rollout(id="simulated"))
    steps: tuple[float, ...] = (1, 5, 25, 50, 100)
    step_s: float = 600.0
    tick_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Ending:
    """gate: what rolled it back, "" for none; held: what asked for a human on the way."""

    gate: str
    after_s: float
    held: frozenset[str]


def run(one: Run, seed: int) -> Ending:
    """Deterministic, for a seed."""
    rng = np.random.default_rng(seed)
    evidence = Evidence(one.plan)
    now = 0.0
    held: set[str] = set()
    for percent in one.steps:
        evidence.begin_step(percent, now)
        waited_s = 0.0
        while waited_s < one.step_s or evidence.samples < one.plan.min_samples:
            lasts_s = one.step_s if waited_s == 0 else 60.0
            ticks = one.traffic.ticks(rng, percent / 100, now, lasts_s, one.tick_s)
            for now, columns in ticks:
                evidence.take_columns(columns, now)
                failing = _failing(evidence.verdicts())
                back = failing - _on_hold(one.plan)
                held |= failing - back
                if back:
                    return Ending(min(back), now, frozenset(held))
            waited_s += lasts_s
    return Ending("", now, frozenset(held))


def runs(one: Run, count: int, first_seed: int = 0) -> list[Ending]:
    return [run(one, first_seed + seed) for seed in range(count)]


@dataclass(frozen=True, slots=True)
class Share:
    """rolled_back and held: shares of the runs. median_s: of those that were rolled back."""

    runs: int
    rolled_back: float
    held: float
    median_s: float


def share_of(endings: Iterable[Ending]) -> Share:
    all_ = list(endings)
    times = [one.after_s for one in all_ if one.gate]
    return Share(
        len(all_),
        len(times) / len(all_),
        sum(bool(one.held) for one in all_) / len(all_),
        float(np.median(times)) if times else float("nan"),
    )


def _failing(verdicts: Iterable[Verdict]) -> frozenset[str]:
    return frozenset(one.gate for one in verdicts if one.state is GateState.FAILING)


def _on_hold(plan: Rollout) -> frozenset[str]:
    gates = plan.gates
    kinds = ("errors", "ttft", "e2e", "tokens", "quality")
    return frozenset(
        kind
        for kind in kinds
        if (gate := getattr(gates, kind)) is not None and gate.on_fail == "hold"
    )
