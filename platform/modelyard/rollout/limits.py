"""The hard limits of a plan, all of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from modelyard.config.rollout import SafetyLimits
from modelyard.rollout import gates
from modelyard.rollout.columns import Columns, Floats
from modelyard.rollout.event_share import Events, events_of
from modelyard.rollout.histogram import position
from modelyard.rollout.limit import Limit
from modelyard.rollout.seen import Seen
from modelyard.rollout.strata import Strata
from modelyard.rollout.verdict import Verdict

_SLOW: Final = 0.05  # a p95 is within its limit if so many, at most, are beyond it


class Limits:
    """Of the share of errors, and of the p95s that the plan names."""

    def __init__(self, strata: Strata, plan: SafetyLimits) -> None:
        self._strata = strata
        self._errors = Limit(plan.errors_percent / 100)
        seconds = {"ttft": plan.ttft_p95_s, "e2e": plan.e2e_p95_s}
        self._seconds = {kind: most for kind, most in seconds.items() if most is not None}
        self._latencies = {kind: Limit(_SLOW) for kind in self._seconds}
        self._seen = {kind: Seen() for kind in self._seconds}

    def begin(self) -> None:
        for limit in (self._errors, *self._latencies.values()):
            limit.begin()

    def take(self, columns: Columns, failures: Events, share: Floats, weight: float) -> None:
        """failures: of these columns. share: see EventShare; weight: of the canary, 0 to 1."""
        answered = int((columns.canary & ~columns.failed).sum())
        self._errors.take(failures, answered, share, weight)
        for kind, limit in self._latencies.items():
            positions = columns.ttft if kind == "ttft" else columns.e2e
            slow = positions > position(np.array([self._seconds[kind]], dtype=np.float64))[0]
            events = events_of(columns, slow, self._seen[kind], self._strata)
            others = int((columns.canary & ~np.isnan(positions) & ~slow).sum())
            limit.take(events, others, share, weight)

    def verdicts(self, step: gates.Step) -> tuple[Verdict, ...]:
        """Errors first."""
        return (
            gates.limit_errors(step, self._errors),
            *(
                gates.limit_latency(step, kind, limit, self._seconds[kind])
                for kind, limit in self._latencies.items()
            ),
        )

    def state(self) -> dict[str, Any]:
        return {
            "errors": self._errors.state(),
            "seconds": self._seconds,
            "latencies": {kind: one.state() for kind, one in self._latencies.items()},
            "seen": {kind: one.state() for kind, one in self._seen.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """A limit that changed asks another question: its evidence begins anew."""
        self._errors.restore(state["errors"])
        for kind, most in self._seconds.items():
            if state["seconds"].get(kind) == most:
                self._latencies[kind].restore(state["latencies"][kind])
                self._seen[kind].restore(state["seen"][kind])
