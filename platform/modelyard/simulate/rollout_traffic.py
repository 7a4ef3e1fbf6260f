"""What both arms of a rollout do, drawn a tick at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from modelyard.rollout.columns import Columns
from modelyard.rollout.histogram import position

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arm:
    """errors: share of its requests. slower: factor on its durations. longer: on its tokens."""

    errors: float = 0.01
    slower: float = 1.0
    longer: float = 1.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """rate_per_s: of both arms. sigma: of the durations' logarithm, and tokens_sigma of the
    tokens' (Azure's conversations: 0.86). turns: of a conversation, on average; 1: none are told.
    clumped: a conversation fails as a whole or not at all. incident: from when, until when
    (seconds), and the share of errors on both arms.
    """

    stable: Arm = Arm()
    canary: Arm = Arm()
    rate_per_s: float = 40.0
    sigma: float = 0.5
    tokens_sigma: float = 0.86
    turns: float = 1.0
    clumped: bool = False
    paid: float = 0.3
    incident: tuple[float, float, float] | None = None

    def ticks(
        self, rng: Generator, weight: float, began: float, lasts_s: float, tick_s: float
    ) -> Iterator[tuple[float, Columns]]:
        """The moment at the end of each tick, and what ended in it; `weight` goes to the canary."""
        count = round(lasts_s / tick_s)
        sizes = rng.poisson(self.rate_per_s * tick_s, count)
        times = began + tick_s * np.repeat(np.arange(1, count + 1), sizes)
        everything = self._draw(rng, weight, times)
        ends = np.cumsum(sizes)
        for index in range(count):
            rows = slice(int(ends[index] - sizes[index]), int(ends[index]))
            yield began + tick_s * (index + 1), _part(everything, rows)

    def _draw(self, rng: Generator, weight: float, times: Floats) -> Columns:
        total = len(times)
        conversation = self._conversations(rng, times)
        _, of = np.unique(conversation, return_inverse=True)
        if self.turns <= 1:
            of = np.arange(total)
        canary = rng.random(total)[of] < weight
        errors = np.where(canary, self.canary.errors, self.stable.errors)
        if self.incident is not None:
            start, end, share = self.incident
            errors[(times > start) & (times <= end)] = share
        luck = rng.random(total)
        failed = (luck[of] if self.clumped else luck) < errors
        normal = rng.standard_normal((3, total))
        # As a first token and the end of one answer are: late together, and not quite.
        normal[1] = 0.8 * normal[0] + 0.6 * normal[1]
        slower = np.where(canary, self.canary.slower, self.stable.slower)
        ttft, e2e = (slower * np.exp(self.sigma * one) for one in normal[:2])
        longer = np.where(canary, self.canary.longer, self.stable.longer)
        tokens = np.log1p(np.round(longer * np.exp(5 + self.tokens_sigma * normal[2])))
        return Columns(
            canary=canary,
            stratum=(rng.random(total) < self.paid).astype(np.int64),
            failed=failed,
            conversation=conversation,
            ttft=position(np.where(failed, np.nan, ttft)),
            e2e=position(np.where(failed, np.nan, 5 * e2e)),
            log_tokens=np.where(failed, np.nan, tokens),
        )

    def _conversations(self, rng: Generator, times: Floats) -> NDArray[np.int64]:
        """A turn belongs to one of those that are open, which are those of 100 seconds."""
        if self.turns <= 1:
            return np.zeros(len(times), dtype=np.int64)
        per_s = self.rate_per_s / self.turns
        return 1 + (times * per_s + rng.random(len(times)) * 100 * per_s).astype(np.int64)


def _part(columns: Columns, rows: slice) -> Columns:
    return Columns(
        columns.canary[rows],
        columns.stratum[rows],
        columns.failed[rows],
        columns.conversation[rows],
        columns.ttft[rows],
        columns.e2e[rows],
        columns.log_tokens[rows],
    )
