"""The hard limits of a plan, all of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from modelyard.config.rollout import SafetyLimits
from modelyard.rollout import gates
from modelyard.rollout.columns import Bools, Columns, Floats
from modelyard.rollout.events import events_of
from modelyard.rollout.histogram import position
from modelyard.rollout.limit import Limit
from modelyard.rollout.packing import dump, load
from modelyard.rollout.seen import SeenInWindow
from modelyard.rollout.step import Step
from modelyard.rollout.strata import Strata
from modelyard.rollout.verdict import Verdict

_SLOW: Final = 0.05  # a p95 is within its limit if so many, at most, are beyond it
_ERRORS: Final = "errors"
# Shorter than the gates' windows: a few agents that fail at every turn have one event in each, and
# a window with a good beginning takes long to turn.
_WINDOW_S: Final = 300.0


class Limits:
    """Of the share of errors, and of the p95s that the plan names."""

    _FIELDS: Final = ("_began",)

    def __init__(self, strata: Strata, plan: SafetyLimits) -> None:
        self._strata = strata
        seconds = {"ttft": plan.ttft_p95_s, "e2e": plan.e2e_p95_s}
        self._seconds = {kind: most for kind, most in seconds.items() if most is not None}
        self._limits = {_ERRORS: Limit(plan.errors_percent / 100)}
        self._limits |= {kind: Limit(_SLOW) for kind in self._seconds}
        self._seen = {kind: SeenInWindow() for kind in self._limits}
        self._began = 0.0

    def begin_window(self, now: float) -> None:
        self._began = float(now)
        for kind, limit in self._limits.items():
            limit.begin_window(now)
            self._seen[kind].begin_window()

    def take(self, columns: Columns, share: Floats, weight: float, now: float) -> None:
        """share: see log_share; weight: of the canary, 0 to 1."""
        if now - self._began >= _WINDOW_S:
            self.begin_window(now)
        for kind, limit in self._limits.items():
            happened, among = self._happened(kind, columns)
            events = events_of(columns, happened, among, self._seen[kind], self._strata)
            limit.take(events, share, weight, now)

    def verdicts(self, step: Step) -> tuple[Verdict, ...]:
        """Errors first."""
        return tuple(
            gates.limit_errors(step, limit)
            if kind == _ERRORS
            else gates.limit_latency(step, kind, limit, self._seconds[kind])
            for kind, limit in self._limits.items()
        )

    def _happened(self, kind: str, columns: Columns) -> tuple[Bools, Bools]:
        """To which requests, and among which. A refused one is its client's fault on any version:
        it is compared with the control arm and is no harm by itself."""
        if kind == _ERRORS:
            return columns.failed & ~columns.refusals, np.ones(len(columns.failed), dtype=np.bool_)
        positions = columns.ttft if kind == "ttft" else columns.e2e
        most = position(np.array([self._seconds[kind]], dtype=np.float64))[0]
        return positions > most, ~np.isnan(positions)

    def state(self) -> dict[str, Any]:
        return {
            **dump(self, self._FIELDS),
            "seconds": self._seconds,
            "limits": {kind: one.state() for kind, one in self._limits.items()},
            "seen": {kind: one.state() for kind, one in self._seen.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """A limit that changed asks another question: its evidence begins anew."""
        load(self, self._FIELDS, state)
        for kind, limit in self._limits.items():
            if kind == _ERRORS or state["seconds"].get(kind) == self._seconds[kind]:
                limit.restore(state["limits"][kind])
                self._seen[kind].restore(state["seen"][kind])
