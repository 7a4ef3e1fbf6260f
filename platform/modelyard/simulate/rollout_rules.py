"""What others do, for comparison: rules on the share of errors, looked at each minute."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from modelyard.simulate.rollout_traffic import Traffic

Floats = NDArray[np.float64]

LOOKS: Final = 20
_LOOK_S: Final = 60.0
_POINTS: Final = 0.005
_ONE_IN_TWENTY: Final = 1.645
_OBRIEN_FLEMING: Final = 2.686  # 20 looks, one-sided .005


@dataclass(frozen=True, slots=True)
class Counts:
    """Since the step began: runs x looks."""

    failed: tuple[Floats, Floats]
    requests: tuple[Floats, Floats]

    def shares(self) -> tuple[Floats, Floats]:
        stable, canary = (
            failed / np.maximum(requests, 1)
            for failed, requests in zip(self.failed, self.requests, strict=True)
        )
        return stable, canary

    def z(self) -> Floats:
        """Of two proportions, pooled."""
        stable, canary = self.shares()
        pooled = sum(self.failed) / np.maximum(sum(self.requests), 1)
        spread = pooled * (1 - pooled) * sum(1 / np.maximum(one, 1) for one in self.requests)
        result: Floats = (canary - stable) / np.sqrt(np.maximum(spread, 1e-12))
        return result


@dataclass(frozen=True, slots=True)
class Rule:
    """fails: of counts, whether the rule turns back at each look (runs x looks)."""

    name: str
    fails: Callable[[Counts], NDArray[np.bool_]]


def point(counts: Counts) -> NDArray[np.bool_]:
    """The seed's: higher by half a point."""
    stable, canary = counts.shares()
    result: NDArray[np.bool_] = canary - stable > _POINTS
    return result


def peeking(counts: Counts) -> NDArray[np.bool_]:
    """A test for one look, at every look."""
    return counts.z() > _ONE_IN_TWENTY


def obrien_fleming(counts: Counts) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = counts.z() > _OBRIEN_FLEMING * np.sqrt(
        LOOKS / np.arange(1, LOOKS + 1)
    )
    return result


RULES: Final = (
    Rule("point rule, +0.5 points", point),
    Rule("z-test, p < .05 at each look", peeking),
    Rule("O'Brien-Fleming, 20 looks, .005", obrien_fleming),
)


@dataclass(frozen=True, slots=True)
class RuleShare:
    """rolled_back: share of the runs. median_s: of those that were."""

    rolled_back: float
    median_s: float


def share_of_rule(rule: Rule, traffic: Traffic, weight: float, runs: int, seed: int) -> RuleShare:
    """Of one step of LOOKS minutes."""
    fails = rule.fails(_counts(traffic, weight, runs, np.random.default_rng(seed)))
    back = fails.any(axis=1)
    minutes = fails.argmax(axis=1)[back] + 1
    median_s = float(np.median(minutes)) * _LOOK_S if len(minutes) else math.nan
    return RuleShare(float(back.mean()), median_s)


def _counts(traffic: Traffic, weight: float, runs: int, rng: Generator) -> Counts:
    failed, requests = [], []
    minutes = np.arange(LOOKS) * _LOOK_S
    for arm, part in ((traffic.stable, 1 - weight), (traffic.canary, weight)):
        errors = np.full(LOOKS, arm.errors)
        if traffic.incident is not None:
            start, end, share = traffic.incident
            errors[(minutes >= start) & (minutes < end)] = share
        sizes = rng.poisson(traffic.rate_per_s * part * _LOOK_S, (runs, LOOKS))
        requests.append(sizes.cumsum(axis=1).astype(np.float64))
        failed.append(rng.binomial(sizes, errors).cumsum(axis=1).astype(np.float64))
    return Counts((failed[0], failed[1]), (requests[0], requests[1]))
