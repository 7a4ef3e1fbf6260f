"""What both arms of a rollout do, drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from modelyard.simulate.rollout_conversations import Talks, are_on_canary
from modelyard.simulate.rollout_drawn import Drawn

Floats = NDArray[np.float64]

_FIRST_S: Final = 0.3  # median of the time to the first token
_PER_TOKEN_S: Final = 0.02
_PACE_SIGMA: Final = 0.3
_P95_Z: Final = 1.645
_MEDIAN_TOKENS: Final = 148.0


@dataclass(frozen=True, slots=True)
class Arm:
    """errors and refused: shares of its requests. first: factor on the time to the first token;
    pace: on each further token's. body: on both where they are ordinary, none at the p95 and
    beyond. longer: on the number of tokens, and so on the time they take.
    """

    errors: float = 0.01
    refused: float = 0.0
    first: float = 1.0
    pace: float = 1.0
    body: float = 1.0
    longer: float = 1.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """rate_per_s: of both arms. sigma: of the first tokens' logarithm, and tokens_sigma of the
    answers' lengths (Azure's conversations: 0.86). turns: of a conversation, on average; 1: none
    are told. alike: of the variance of luck, lengths and durations, the part that a conversation's
    turns share; 1: a conversation fails as a whole or not at all. incident: from when, until when
    (seconds), and the share of errors on both arms. late: from when the canary is another.
    """

    stable: Arm = Arm()
    canary: Arm = Arm()
    rate_per_s: float = 40.0
    sigma: float = 0.5
    tokens_sigma: float = 0.86
    turns: float = 1.0
    alike: float = 0.5
    paid: float = 0.3
    incident: tuple[float, float, float] | None = None
    late: tuple[float, Arm] | None = None


class Stream:
    """The requests of one run, in the order in which they end."""

    def __init__(self, traffic: Traffic, rng: Generator) -> None:
        self._traffic = traffic
        self._rng = rng
        self._salt = int(rng.integers(2**62))
        late = traffic.late[1] if traffic.late is not None else traffic.canary
        self._arms = (traffic.stable, traffic.canary, late)

    def ticks(
        self, weight: float, began: float, lasts_s: float, tick_s: float
    ) -> Iterator[tuple[float, Drawn]]:
        """The moment at the end of each tick, and what ended in it; `weight` goes to the canary."""
        count = max(1, round(lasts_s / tick_s))
        sizes = self._rng.poisson(self._traffic.rate_per_s * tick_s, count)
        times = began + tick_s * np.repeat(np.arange(1, count + 1), sizes)
        everything = self._draw(weight, times)
        ends = np.cumsum(sizes)
        for index in range(count):
            rows = slice(int(ends[index] - sizes[index]), int(ends[index]))
            yield began + tick_s * (index + 1), everything.part(rows)

    def _draw(self, weight: float, times: Floats) -> Drawn:
        traffic, rng, total = self._traffic, self._rng, len(times)
        talks = Talks.drawn(traffic.turns, traffic.rate_per_s, times, rng)
        if talks is None:
            canary = rng.random(total) < weight
            normal = rng.standard_normal((4, total))
        else:
            canary = are_on_canary(talks.keys, self._salt, weight)[talks.of]
            normal = talks.normal(4, traffic.alike, rng)
        which = canary.astype(np.int64)
        if traffic.late is not None:
            which[canary & (times > traffic.late[0])] = 2
        failed = self._failed(normal[0], which, times)
        refused = ~failed & (rng.random(total) < self._of("refused", which))
        ttft_s, e2e_s, tokens = self._answers(normal, which)
        return Drawn(
            canary=canary,
            paid=rng.random(total) < traffic.paid,
            failed=failed,
            refused=refused,
            conversation=talks.keys[talks.of] if talks is not None else np.zeros(total, np.int64),
            ttft_s=ttft_s,
            e2e_s=e2e_s,
            tokens=tokens,
        )

    def _failed(self, luck: Floats, which: NDArray[np.int64], times: Floats) -> NDArray[np.bool_]:
        unlucky = np.array([_quantile(arm.errors) for arm in self._arms])[which]
        if self._traffic.incident is not None:
            start, end, share = self._traffic.incident
            unlucky[(times > start) & (times <= end)] = _quantile(share)
        result: NDArray[np.bool_] = luck < unlucky
        return result

    def _answers(
        self, normal: Floats, which: NDArray[np.int64]
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Seconds to the first token and to the end, and tokens."""
        _, first, length, pace = normal
        body = np.log(self._of("body", which))
        ttft_s = (
            _FIRST_S
            * self._of("first", which)
            * np.exp(self._traffic.sigma * first + body * _ordinary(first))
        )
        tokens = np.round(
            _MEDIAN_TOKENS * self._of("longer", which) * np.exp(self._traffic.tokens_sigma * length)
        )
        per_token_s = (
            _PER_TOKEN_S
            * self._of("pace", which)
            * np.exp(_PACE_SIGMA * pace + body * _ordinary(length))
        )
        return ttft_s, ttft_s + tokens * per_token_s, tokens.astype(np.int64)

    def _of(self, name: str, which: NDArray[np.int64]) -> Floats:
        result: Floats = np.array([getattr(arm, name) for arm in self._arms])[which]
        return result


def _ordinary(z: Floats) -> Floats:
    """1 up to the median, 0 from the p95 on."""
    result: Floats = np.clip(1 - z / _P95_Z, 0.0, 1.0)
    return result


def _quantile(share: float) -> float:
    if share <= 0:
        return -math.inf
    return NormalDist().inv_cdf(share) if share < 1 else math.inf
