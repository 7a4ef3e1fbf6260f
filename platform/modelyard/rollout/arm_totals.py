"""Sums of a step, of which verdicts and figures are made."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout import histogram
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.columns import Columns, Floats
from modelyard.rollout.packing import dump, load
from modelyard.rollout.strata import Strata

STABLE: Final = 0
CANARY: Final = 1


class ArmTotals:
    """Sums of a step, by arm and stratum."""

    _FIELDS: Final = (
        *("requests", "failed", "refused", "cancelled", "_tokens", "_answers", "_ttft", "_e2e"),
        *("compared", "matches"),
    )

    def __init__(self, strata: Strata) -> None:
        self._strata = strata
        self.begin()

    def begin(self) -> None:
        shape = (2, self._strata.count)
        self.requests: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.failed: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.refused: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.cancelled: NDArray[np.int64] = np.zeros(2, dtype=np.int64)
        self._tokens: Floats = np.zeros(2)
        self._answers: NDArray[np.int64] = np.zeros(2, dtype=np.int64)
        self._ttft: NDArray[np.int32] = np.zeros((*shape, histogram.BUCKETS), dtype=np.int32)
        self._e2e: NDArray[np.int32] = np.zeros((*shape, histogram.BUCKETS), dtype=np.int32)
        self.compared = 0
        self.matches = 0

    def take(self, columns: Columns) -> None:
        arm, stratum = columns.canary.astype(np.int64), columns.stratum
        np.add.at(self.requests, (arm, stratum), 1)
        failed = columns.failed
        np.add.at(self.failed, (arm[failed], stratum[failed]), 1)
        refused = columns.refusals
        np.add.at(self.refused, (arm[refused], stratum[refused]), 1)
        for counts, positions in ((self._ttft, columns.ttft), (self._e2e, columns.e2e)):
            known = ~np.isnan(positions)
            np.add.at(counts, (arm[known], stratum[known], histogram.bucket(positions[known])), 1)
        known = ~np.isnan(columns.log_tokens)
        np.add.at(self._tokens, arm[known], np.expm1(columns.log_tokens[known]))
        np.add.at(self._answers, arm[known], 1)
        self.cancelled += columns.cancelled
        self.compared += columns.compared
        self.matches += columns.matches

    def errors(self, arm: int, slice_: int = 0) -> tuple[int, int]:
        """Failed (with what was refused), and requests; of a slice."""
        members = self._strata.members[slice_]
        return int(self.failed[arm] @ members), int(self.requests[arm] @ members)

    def harms(self, arm: int) -> tuple[int, int]:
        """Failed without what was refused, and requests."""
        failed, requests = self.errors(arm)
        return failed - int(self.refused[arm].sum()), requests

    def tokens_per_answer(self, arm: int) -> float | None:
        answers = int(self._answers[arm])
        return float(self._tokens[arm]) / answers if answers else None

    def seconds(self, kind: str, arm: int, slice_: int = 0) -> NDArray[Any]:
        """The histogram of `ttft` or `e2e`."""
        counts = self._ttft if kind == "ttft" else self._e2e
        result: NDArray[Any] = counts[arm, self._strata.members[slice_] > 0].sum(axis=0)
        return result

    def figures(self, arm: int, name: str, good: int, judged: int) -> ArmFigures:
        failed, requests = self.errors(arm)
        ttft, e2e = self.seconds("ttft", arm), self.seconds("e2e", arm)
        return ArmFigures(
            arm=name,
            requests=requests,
            failed=failed,
            cancelled=int(self.cancelled[arm]),
            error_share=failed / requests if requests else None,
            ttft_p50_s=histogram.quantile_s(ttft, 0.5),
            ttft_p95_s=histogram.quantile_s(ttft, 0.95),
            e2e_p50_s=histogram.quantile_s(e2e, 0.5),
            e2e_p95_s=histogram.quantile_s(e2e, 0.95),
            tokens_per_answer=self.tokens_per_answer(arm),
            matches=self.matches if arm == CANARY else 0,
            compared=self.compared if arm == CANARY else 0,
            good=good,
            judged=judged,
        )

    def state(self) -> dict[str, Any]:
        return dump(self, self._FIELDS)

    def restore(self, state: dict[str, Any]) -> None:
        load(self, self._FIELDS, state)
